"""Differences as they stand in a sentence."""

from orbench.stats.core import Difference
from orbench.stats.labels import ByLabels


def points(gap: Difference | ByLabels) -> str:
    """Return a difference with its interval: `+2.0 points [-1.0, 5.0]`."""
    return f"{100 * gap.difference:+z.1f} points {gap.interval}"
