"""Intervals, means, differences, agreement. Stage scripts import what loads numpy in functions."""
