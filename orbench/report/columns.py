"""The columns of a report's CSVs: the only place that knows their names.

A new column is a line here, and one in docs/columns.md. Rates are in percent, differences in
percentage points.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from orbench.report.measures import (
    OVERALL,
    Associated,
    Association,
    Compared,
    Comparison,
    Counted,
    Details,
    Published,
    Rate,
    Standing,
)
from orbench.report.results import Corrected
from orbench.report.sentences import finding_of, notes_of, trend_words
from orbench.stats.intervals import Interval

T = TypeVar("T")


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table, and what stands in it for a row.

    Numbers, texts and None (not measured) stand in CSVs; in documents and on the page also a
    `Cell` of orbench.report.cells.
    """

    name: str  # in CSVs; in documents and on the page, if there is no title
    value: Callable[[T], object]
    title: str = ""
    is_on_page: bool = True  # else in documents alone: no table of the page scrolls sideways
    is_if_varied: bool = False  # the page leaves it out if it says the same in each row

    @property
    def heading(self) -> str:
        """Return what documents and the page call it."""
        return self.title or self.name


# -- values --------------------------------------------------------------------------------------


def joined(texts: Iterable[str]) -> str:
    """Join notes and the like."""
    return "; ".join(texts)


def api_categories(details: Details) -> str:
    """Return how often an API named which category: `cyber 12, bio 3`."""
    counts = [f"{name} {rows}" for name, rows in details.api_categories.items()]
    return ", ".join(counts)


def stands_in(comparison: Comparison) -> str:
    """Return in how many analyses a finding stands: `14 of 16`."""
    found = comparison.robustness
    return f"{found.held} of {found.analyses}" if found else ""


def judge_of(comparison: Comparison) -> str:
    """Return the judge of both results. Models may be compared across versions of the rules."""
    judged = comparison.a.result
    is_of_models = comparison.family.kind is Compared.MODELS
    return judged.judge_any_version if is_of_models else judged.judge


def shown(comparison: Comparison) -> str:
    """Return what a comparison of models shows, in words; of others whether there is a finding."""
    if comparison.family.kind is Compared.MODELS:
        return finding_of(comparison)
    return comparison.outcome.value


def _low(interval: Interval | None) -> float | None:
    return 100 * interval.low if interval else None


def _high(interval: Interval | None) -> float | None:
    return 100 * interval.high if interval else None


def _detail(value: Callable[[Details], object]) -> Callable[[Rate], object]:
    """Return what gets a detail of a rate; rates without details have none."""
    return lambda rate: value(rate.details) if rate.details else None


def _corrected(value: Callable[[Corrected], float]) -> Callable[[Rate], object]:
    """Return what gets a figure by people's labels, of overall rates."""

    def of_overall(rate: Rate) -> float | None:
        corrected = rate.result.corrected
        return 100 * value(corrected) if corrected and is_overall(rate) else None

    return of_overall


def is_overall(rate: Rate) -> bool:
    """Return whether it is the refusal rate over all prompts."""
    return rate.subset == OVERALL and rate.counted is Counted.REFUSED


def certain_percent(rate: Rate) -> float | None:
    """Return the share of the rules' verdicts that are certain; only of overall rates."""
    return 100 * rate.result.certain if is_overall(rate) else None


# -- results.csv -----------------------------------------------------------------------------------

N = Column[Rate]("n", lambda rate: rate.mean.prompts)
ROWS = Column[Rate]("rows", lambda rate: rate.mean.rows, "Rows", is_on_page=False)
UNSCORED = Column[Rate]("unscored", lambda rate: rate.unscored, "Unscored")
API_CATEGORIES = Column[Rate]("api_categories", _detail(api_categories), "Category: responses")
DESIGN_EFFECT = Column[Rate](
    "design_effect", lambda rate: rate.mean.design_effect, "Design effect", is_on_page=False
)
JUDGE = Column[Rate]("judge", lambda rate: rate.result.judge, "Judge", is_if_varied=True)
PROMPTS = Column[Rate]("prompts", lambda rate: rate.result.prompts, "Prompts", is_if_varied=True)
DATE = Column[Rate]("date", lambda rate: rate.result.date, "Date", is_on_page=False)
NOTES = Column[Rate]("notes", lambda rate: joined(notes_of(rate)), "Notes", is_on_page=False)

UNPAIRED = Column[Rate]("unpaired", lambda rate: rate.unpaired)
# What rate it is; the overall rates in results.json are all alike in this.
OF_SUBSETS: tuple[Column[Rate], ...] = (
    Column("subset", lambda rate: rate.subset.kind),
    Column("value", lambda rate: rate.subset.value),
    Column("category", lambda rate: rate.subset.category),
    Column("counted", lambda rate: rate.counted),
)

RATES: tuple[Column[Rate], ...] = (
    Column("model", lambda rate: rate.result.model),
    Column("settings", lambda rate: rate.result.settings),
    Column("family", lambda rate: rate.result.family),
    Column("side", lambda rate: rate.result.side.name),
    PROMPTS,
    Column("prompt_set", lambda rate: rate.result.prompt_set),
    JUDGE,
    Column("judge_version", lambda rate: rate.result.judge_version),
    DATE,
    *OF_SUBSETS,
    N,
    ROWS,
    UNSCORED,
    Column("rate_percent", lambda rate: 100 * rate.mean.rate),
    Column("low_percent", lambda rate: 100 * rate.mean.low),
    Column("high_percent", lambda rate: 100 * rate.mean.high),
    Column("low_all_percent", lambda rate: _low(rate.with_unscored)),
    Column("high_all_percent", lambda rate: _high(rate.with_unscored)),
    Column("direct_percent", _detail(lambda details: 100 * details.direct)),
    Column("indirect_percent", _detail(lambda details: 100 * details.indirect)),
    Column("api_percent", _detail(lambda details: 100 * details.api)),
    Column("cut_off_percent", _detail(lambda details: 100 * details.cut_off)),
    Column("after_text_percent", _detail(lambda details: 100 * details.after_text)),
    API_CATEGORIES,
    Column("flip_percent", _detail(lambda details: 100 * details.flips)),
    Column("corrected_percent", _corrected(lambda found: found.rate)),
    Column("corrected_low_percent", _corrected(lambda found: found.interval.low)),
    Column("corrected_high_percent", _corrected(lambda found: found.interval.high)),
    Column("certain_percent", certain_percent),
    DESIGN_EFFECT,
    UNPAIRED,
    NOTES,
)

# -- comparison.csv --------------------------------------------------------------------------------

N_IN_COMMON = Column[Comparison]("n", lambda pair: pair.gap.a.prompts)
N_A = Column[Comparison]("n_a", lambda pair: pair.a.mean.prompts, "n A", is_on_page=False)
N_B = Column[Comparison]("n_b", lambda pair: pair.b.mean.prompts, "n B", is_on_page=False)
P = Column[Comparison]("p", lambda pair: pair.gap.p, is_on_page=False)
P_HOLM = Column[Comparison]("p_holm", lambda pair: pair.p_holm, "p (Holm)")
P_WORST = Column[Comparison]("p_worst", lambda pair: pair.p_worst, "p (worst case)")
FINDING = Column[Comparison]("finding", shown, "Finding")
STANDS_IN = Column[Comparison]("stands_in", stands_in, "Stands in")
JUDGE_OF_BOTH = Column[Comparison]("judge", judge_of, "Judge", is_if_varied=True)

COMPARISONS: tuple[Column[Comparison], ...] = (
    Column("compared", lambda pair: pair.family.kind),
    Column("counted", lambda pair: pair.a.counted),
    Column("side", lambda pair: pair.a.result.side.name),
    Column("subset", lambda pair: pair.a.subset.kind),
    Column("value", lambda pair: pair.a.subset.value),
    Column("category", lambda pair: pair.a.subset.category),
    JUDGE_OF_BOTH,
    Column("model_a", lambda pair: pair.a.result.model),
    Column("settings_a", lambda pair: pair.a.result.settings),
    Column("prompts_a", lambda pair: pair.a.result.prompts),
    Column("model_b", lambda pair: pair.b.result.model),
    Column("settings_b", lambda pair: pair.b.result.settings),
    Column("prompts_b", lambda pair: pair.b.result.prompts),
    N_IN_COMMON,
    N_A,
    N_B,
    Column("rate_a_percent", lambda pair: 100 * pair.gap.a.rate),
    Column("rate_b_percent", lambda pair: 100 * pair.gap.b.rate),
    Column("difference_points", lambda pair: 100 * pair.gap.difference),
    Column("low_points", lambda pair: 100 * pair.gap.low),
    Column("high_points", lambda pair: 100 * pair.gap.high),
    Column("detectable_points", lambda pair: 100 * pair.detectable),
    P,
    P_HOLM,
    P_WORST,
    FINDING,
    STANDS_IN,
)

# -- associations.csv ------------------------------------------------------------------------------


def against(found: Association) -> str:
    """Return the second model that a word sets a model apart from."""
    return found.against.label if found.against else ""


def goes_with(found: Association) -> str:
    """Return what a word goes with: refused or answered prompts."""
    return "refused" if found.z > 0 else "answered"


def side_of(found: Association) -> str:
    """Return the side that an association was found on."""
    return found.of_side or found.result.side.name


def example(number: int) -> Callable[[Association], object]:
    """Return what gets a prompt with a word, from 0."""
    return lambda found: found.examples[number] if number < len(found.examples) else None


def _only(
    kind: Associated, value: Callable[[Association], object]
) -> Callable[[Association], object]:
    """Return what gets a value of one kind; other kinds have none."""
    return lambda found: value(found) if found.kind is kind else None


def _scaled(found: Association, figure: float) -> float:
    """Return a figure in points, a trend's; in percent, an AUC's; log-odds stay what they are."""
    return figure if found.kind is Associated.WORD else 100 * figure


SEEDS = Column[Association]("n", lambda found: found.n)
TREND = Column[Association]("trend", _only(Associated.TREND, trend_words), "Trend")
WITH = Column[Association]("goes_with", _only(Associated.WORD, goes_with), "Side")
AGAINST = Column[Association]("against", against, "Against")
REFUSED = Column[Association](
    "refused", _only(Associated.WORD, lambda found: found.refused), "Refused"
)
ANSWERED = Column[Association](
    "answered", _only(Associated.WORD, lambda found: found.answered), "Answered"
)
Q = Column[Association]("p_adjusted", lambda found: found.p_adjusted, "q (Benjamini-Hochberg)")
EXAMPLES = (
    Column[Association]("example_1", example(0), "Example 1"),
    Column[Association]("example_2", example(1), "Example 2"),
)

ASSOCIATIONS: tuple[Column[Association], ...] = (
    Column("associated", lambda found: found.kind),
    Column("model", lambda found: found.result.model),
    Column("settings", lambda found: found.result.settings),
    Column("side", side_of),
    Column("prompts", lambda found: found.result.prompts),
    Column("judge", lambda found: found.result.judge),
    AGAINST,
    Column("value", lambda found: found.value),
    WITH,
    SEEDS,
    REFUSED,
    ANSWERED,
    Column("estimate", lambda found: _scaled(found, found.estimate)),
    Column("low", lambda found: found.interval and _scaled(found, found.interval.low)),
    Column("high", lambda found: found.interval and _scaled(found, found.interval.high)),
    Column("higher_percent", lambda found: 100 * found.higher),
    Column("lower_percent", lambda found: 100 * found.lower),
    Column("z", lambda found: found.z),
    Column("p", lambda found: found.p),
    Q,
    Column("p_worst", lambda found: found.p_worst),
    TREND,
    *EXAMPLES,
    Column("example_3", example(2)),
)

# -- leaderboard.csv -------------------------------------------------------------------------------


def judge_of_standing(standing: Standing) -> str:
    """Return the judge of both sides."""
    return standing.first.judge


def _of_safe(value: Callable[[Rate], object]) -> Callable[[Standing], object]:
    """Return what gets a value of the safe side."""
    return lambda standing: value(standing.safe) if standing.safe else None


def _of_toxic(value: Callable[[Rate], object]) -> Callable[[Standing], object]:
    """Return what gets a value of the toxic side."""
    return lambda standing: value(standing.toxic) if standing.toxic else None


RANK = Column[Standing]("rank", lambda standing: str(standing.rank or ""))
SCORE = Column[Standing]("score", lambda standing: 100 * standing.score)

IN_SUMMARY = (RANK, SCORE)  # in results.json, before the columns of rates

BOARD: tuple[Column[Standing], ...] = (
    RANK,
    Column("model", lambda standing: standing.first.model),
    Column("settings", lambda standing: standing.first.settings),
    Column("prompts", lambda standing: standing.prompts),
    Column("judge", judge_of_standing),
    SCORE,
    Column("over_refusal_percent", _of_safe(lambda rate: 100 * rate.mean.rate)),
    Column("over_refusal_low_percent", _of_safe(lambda rate: _low(rate.with_unscored))),
    Column("over_refusal_high_percent", _of_safe(lambda rate: _high(rate.with_unscored))),
    Column("toxic_percent", _of_toxic(lambda rate: 100 * rate.mean.rate)),
    Column("toxic_low_percent", _of_toxic(lambda rate: _low(rate.with_unscored))),
    Column("toxic_high_percent", _of_toxic(lambda rate: _high(rate.with_unscored))),
)
# Of published models, the columns that they have.
PUBLISHED: tuple[Column[Published], ...] = (
    Column("model", lambda published: published.model),
    Column("prompts", lambda published: published.prompts),
    Column("judge", lambda published: "published"),
    Column("over_refusal_percent", lambda published: 100 * published.over_refusal),
    Column("toxic_percent", lambda published: 100 * published.toxic),
)
