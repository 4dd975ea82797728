"""Intervals, one mean, one difference, agreement. Imports nothing from orbench.

`intervals` and `agreement` are pure Python; stage scripts import the others in functions.
"""
