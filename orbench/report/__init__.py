"""Rates, comparisons, tables, pictures and a page, from the results of stages 4 and 5."""
