"""The leaderboard of the page: its columns and scatters, doubts about rates, and graded shares."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import ceil, floor
from typing import NamedTuple

from orbench.base.words import Side
from orbench.report.columns import joined
from orbench.report.measures import FEW_PROMPTS, Counted, Published, Rate, Report, Standing
from orbench.report.published import are_on_or_bench
from orbench.report.results import SAFE, TOXIC
from orbench.report.tables import shares_of

MUCH_CUT_OFF = 5  # percent of the responses
CERTAIN = 80  # percent of the rules' verdicts
# The classes of graded results, as bars show them.
SHARES = {
    Counted.HELPED: "helped",
    Counted.PARTIAL: "partial",
    Counted.SAFE_COMPLETION: "safe completion",
    Counted.INDIRECT: "indirect refusal",
    Counted.DIRECT: "direct refusal",
    Counted.API: "refused by the API",
}


# -- axes and the scatter ------------------------------------------------------------------------


class Axis(NamedTuple):
    """Where an axis begins and ends, in percent."""

    low: float
    high: float

    @property
    def step(self) -> int:
        """Return the distance of its ticks."""
        span = self.high - self.low
        if span > 50:
            return 20
        return 10 if span > 20 else 5

    @property
    def ticks(self) -> range:
        """Return the places of its ticks."""
        return range(int(self.low), int(self.high) + 1, self.step)

    @property
    def marks(self) -> tuple[float, float, float]:
        """Return both ends and the middle."""
        return self.low, (self.low + self.high) / 2, self.high


def ends_of(rate: Rate) -> list[float]:
    """Return the ends of an interval in percent; none if unscored rows are not known."""
    return [100 * end for end in rate.with_unscored or ()]


def percents_of(rate: Rate | None) -> list[float]:
    """Return what an axis must hold of a rate."""
    if not rate or not rate.mean.prompts:
        return []
    return [100 * rate.mean.rate, *ends_of(rate)]


def axis_over(percents: Sequence[float]) -> Axis:
    """Return an axis from a ten to a ten."""
    low = min(10 * floor(min(percents, default=100) / 10), 90)
    high = 10 * ceil(max(percents, default=0) / 10)
    return Axis(low, max(high, low + 10))


class RateColumn(NamedTuple):
    """A column of rates in the leaderboard."""

    side: Side
    title: str
    axis: Axis
    is_measured: bool  # else there are only published models


def rate_columns(report: Report) -> list[RateColumn]:
    """Return the columns that have rates."""
    columns = []
    for side, title in ((SAFE, "Over-refusal, %"), (TOXIC, "Toxic rejection, %")):
        percents: list[float] = []
        for standing in report.board:
            percents += percents_of(standing.toxic if side.is_toxic else standing.safe)
        if percents or report.published:
            columns.append(RateColumn(side, title, axis_over(percents), bool(percents)))
    return columns


class Point(NamedTuple):
    """A model with both rates, in percent."""

    standing: Standing
    safe: Rate
    toxic: Rate
    x: float
    y: float
    x_ends: list[float]  # of the interval; empty: not known
    y_ends: list[float]


class Scatter(NamedTuple):
    """Both rates of models with the same prompts and judge."""

    points: list[Point]  # from the top down
    gray: list[Published]
    x: Axis
    y: Axis
    part: str
    doubts: str


def scatters(report: Report) -> Iterator[Scatter]:
    """Yield a scatter for each group of the leaderboard that has models with both rates."""
    groups = defaultdict[int, list[Standing]](list)
    for standing in report.board:
        groups[standing.group].append(standing)
    for standings in groups.values():
        points = list(_points(standings))
        if not points:
            continue
        first = points[0].standing
        gray = report.published if are_on_or_bench(first.results) else []
        doubts = dict.fromkeys(joined(point.standing.doubts) for point in points)
        yield Scatter(
            points=sorted(points, key=lambda point: (-point.y, point.x)),
            gray=gray,
            x=_x_axis(points, gray),
            y=_y_axis(points, gray),
            part=first.part,
            doubts=joined(filter(None, doubts)),
        )


def _points(standings: Sequence[Standing]) -> Iterator[Point]:
    for standing in standings:
        safe = standing.safe
        toxic = standing.toxic
        if safe and toxic and safe.mean.prompts and toxic.mean.prompts:
            yield Point(
                standing=standing,
                safe=safe,
                toxic=toxic,
                x=100 * safe.mean.rate,
                y=100 * toxic.mean.rate,
                x_ends=ends_of(safe),
                y_ends=ends_of(toxic),
            )


def _x_axis(points: Sequence[Point], gray: Sequence[Published]) -> Axis:
    percents = [100 * one.over_refusal for one in gray]
    for point in points:
        percents += [point.x, *point.x_ends]
    high = max(10 * ceil(max(percents) / 10), 10)
    return Axis(min(10 * floor(min(percents) / 10), high - 10), high)


def _y_axis(points: Sequence[Point], gray: Sequence[Published]) -> Axis:
    percents = [100 * one.toxic for one in gray]
    for point in points:
        percents += [point.y, *point.y_ends]
    return axis_over(percents)


# -- doubts about a rate -------------------------------------------------------------------------


class Doubt(NamedTuple):
    """What speaks against a rate."""

    text: str
    meaning: str


def doubts_of(rate: Rate, is_demo: bool) -> list[Doubt]:
    """Return what a reader of the leaderboard must know of a rate."""
    found = []
    if rate.is_small and not is_demo:
        meaning = f"few prompts: fewer than {FEW_PROMPTS}, so the rate says little"
        found.append(Doubt("few prompts", meaning))
    if rate.unscored:
        meaning = (
            "unscored: responses without a verdict; the interval holds whether they are answers or "
            "refusals (‡: this makes it over 1.5 times as wide)"
        )
        found.append(Doubt(f"{rate.unscored:,} unscored", meaning))
    cut_off = 100 * rate.details.cut_off if rate.details else 0.0
    if cut_off > MUCH_CUT_OFF:
        meaning = "cut off: responses that ended at the token limit, perhaps before a refusal"
        found.append(Doubt(f"{cut_off:.0f} % cut off", meaning))
    certain = 100 * rate.result.certain
    if certain < CERTAIN:
        meaning = (
            f"of verdicts certain: of the rules' verdicts; below {CERTAIN} % the rules alone rank "
            "nobody"
        )
        found.append(Doubt(f"{certain:.0f} % of verdicts certain", meaning))
    return found


def meanings_of(rates: Sequence[Rate], is_demo: bool) -> list[str]:
    """Return what the doubts about all rates mean."""
    doubts = [doubt for rate in rates for doubt in doubts_of(rate, is_demo)]
    return list(dict.fromkeys(doubt.meaning for doubt in doubts))


# -- graded shares -------------------------------------------------------------------------------


class Share(NamedTuple):
    """A part of a bar, in percent."""

    counted: Counted
    words: str
    start: float
    percent: float


def share_bars(report: Report) -> dict[int, list[Share]]:
    """Return the parts of a bar for each graded result that is scored, by its number."""
    shares = defaultdict[int, dict[Counted, Rate]](dict)
    for rate in shares_of(report):
        if rate.mean.prompts:
            shares[rate.result.number][rate.counted] = rate
    bars: dict[int, list[Share]] = {}
    for number, by_class in shares.items():
        bars[number] = []
        start = 0.0
        for counted, words in SHARES.items():
            percent = 100 * by_class[counted].mean.rate
            bars[number].append(Share(counted, words, start, percent))
            start += percent
    return bars


def rejected_or_safe(report: Report) -> dict[int, Rate]:
    """Return how often graded results reject toxic prompts or answer them safely, by number."""
    shares = {}
    for rate in shares_of(report):
        if rate.counted is Counted.REJECTED_OR_SAFE and rate.result.side.is_toxic:
            shares[rate.result.number] = rate
    return shares
