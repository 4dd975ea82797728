"""Rates and differences as they stand in a sentence."""

from orbench.report.measures import ByLabels, Rate
from orbench.stats.core import Difference

WIDENED = " ‡"  # the mark of an interval that unscored rows widen


def percent(rate: Rate) -> str:
    """Return a rate with its interval: `12.3 % [10.0, 14.6]`, and a mark if it is widened."""
    return f"{100 * rate.mean.rate:.1f} % {rate.interval}" + WIDENED * rate.is_widened


def points(gap: Difference | ByLabels) -> str:
    """Return a difference with its interval: `+2.0 points [-1.0, 5.0]`."""
    return f"{100 * gap.difference:+z.1f} points {gap.interval}"
