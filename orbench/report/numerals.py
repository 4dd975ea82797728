"""Rates, differences and lists as they stand in a sentence."""

from collections.abc import Sequence

from orbench.report.measures import Rate
from orbench.stats.core import Difference
from orbench.stats.intervals import Interval

WIDENED = " ‡"  # the mark of an interval that unscored rows widen


def interval_words(interval: Interval) -> str:
    """Return an interval in percent: `[10.0, 14.6]`."""
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def percent(rate: Rate, mark: str = "") -> str:
    """Return a rate with its interval: `12.3 % [10.0, 14.6]`. mark: of a widened interval."""
    shown = f"{100 * rate.mean.rate:.1f} % {interval_words(rate.interval)}"
    return shown + mark if rate.is_widened else shown


def points(gap: Difference) -> str:
    """Return a difference with its interval: `+2.0 points [-1.0, 5.0]`."""
    ends = f"[{100 * gap.low:z.1f}, {100 * gap.high:z.1f}]"
    return f"{100 * gap.difference:+z.1f} points {ends}"


def listed(names: Sequence[str]) -> str:
    """Return `a, b and c`; of more than four names their number: `5 models`."""
    if len(names) > 4:
        return f"{len(names)} models"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
