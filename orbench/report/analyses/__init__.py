"""Analyses behind the rates: pure functions that return rates, comparisons and associations."""
