"""Refusal rates by result and category."""

from collections import Counter
from collections.abc import Iterator

from pandas import DataFrame, Series, factorize  # type: ignore[import-untyped]

from orbench.base.messages import counted
from orbench.base.near_duplicates import like_rewrites
from orbench.base.words import MACRO, OVERALL, UNCATEGORIZED
from orbench.refusals.api import NOT_ABOUT_SAFETY
from orbench.report.about import ABOUT, CORRECTED
from orbench.report.frames import Entry, joined, named
from orbench.report.load import KEYS, verdicts
from orbench.stats.core import FEW_CLUSTERS, Difference, Verdicts, mean, with_unscored

FEW_PROMPTS = 30  # rates from fewer are marked
FEWEST_MODELS = 7  # with fewer, a correlation or a trend says nothing
REFUSALS = ["direct", "indirect", "api"]  # their kinds, without overlap
# Of graded results, other shares, and the classes that count.
GRADED = {
    "helped": ["direct_answer"],
    "partial": ["partial"],
    "safe_completion": ["safe_completion"],
    "hedged": ["partial", "safe_completion"],  # something is done, something is left out
    "rejected_or_safe": ["safe_completion", "indirect_refusal", "direct_refusal"],
}
RESPONSE_SHARES = [*REFUSALS, "cut_off"]  # of the responses, each prompt alike
WIDER = 1.5  # so much wider through unscored rows, an interval is marked
MOST_ALIKE = 0.05  # of the prompts without a seed; with more, they look like rewrites
FIRST = 150  # of them: the first, since the rewrites of a seed mostly stand together
FEW_SEEDS = (
    f"fewer than {FEW_CLUSTERS} seeds have a refused prompt, or an answered one: "
    "the interval is widened, as if the rewrites of a seed were much alike"
)
SHORTEST = 20  # characters; shorter prompts are easily similar
# Columns of results.csv; intervals 95 %.
RATE_COLUMNS = [
    "model",
    "settings",
    "family",
    "side",
    "prompts",
    "prompt_set",
    "judge",
    "judge_version",
    "date",
    "category",
    "n",  # prompts with a verdict
    "rows",  # responses with one
    "unscored",  # rows
    "rate_percent",
    "low_percent",
    "high_percent",
    "low_all_percent",  # the interval whether unscored rows are answers or refusals
    "high_all_percent",
    "helped_percent",  # this, partial, safe completion, direct, indirect and api: 100 together
    "helped_low_percent",
    "helped_high_percent",
    "partial_percent",
    "partial_low_percent",
    "partial_high_percent",
    "safe_completion_percent",
    "safe_completion_low_percent",
    "safe_completion_high_percent",
    "direct_percent",
    "direct_low_percent",
    "direct_high_percent",
    "indirect_percent",
    "indirect_low_percent",
    "indirect_high_percent",
    "api_percent",  # refused by the API itself
    "api_low_percent",
    "api_high_percent",
    "hedged_percent",  # partial or safe completion
    "hedged_low_percent",
    "hedged_high_percent",
    "rejected_or_safe_percent",  # the rate itself counts a safe completion as an answer
    "rejected_or_safe_low_percent",
    "rejected_or_safe_high_percent",
    "api_categories",  # `cyber 12, bio 3`: rows by the category that it names
    "after_text_percent",  # of its refusals, those that cut off a text
    "cut_off_percent",
    "flip_percent",  # prompts whose responses have different verdicts
    "corrected_percent",  # the rate by people's labels on some of its responses, and its interval
    "corrected_low_percent",
    "corrected_high_percent",
    "certain_percent",  # of the rules' verdicts, over all categories
    "design_effect",  # rows per independent observation
    "notes",
]


def rates(rows: DataFrame) -> DataFrame:
    """Return a row per result and category: OVERALL, MACRO (each counts alike) and each of them.

    rows: of `load_results`. Columns: result, KEYS, ABOUT, RATE_COLUMNS, interval, verdicts and,
    of graded results, hedged_verdicts (as `orbench.stats.core` takes them), alike (prompts without
    a seed look like rewrites); NaN: not measured.
    """
    measured = []
    for number, part in rows.groupby("result"):
        about = part[KEYS + ABOUT].iloc[0].to_dict()
        seeds_missing = _seeds_missing(part)
        for row in _rates_of(part, about["known"]):
            row["result"] = number
            row["alike"] = bool(seeds_missing)
            row["notes"] = joined(about["notes"], *row.get("notes", []), seeds_missing)
            measured.append(about | row)
    columns = ["result", *KEYS, *ABOUT, *RATE_COLUMNS, "interval", "verdicts", "hedged_verdicts"]
    columns.append("alike")
    table = DataFrame(measured, columns=dict.fromkeys(columns))
    for name in ("certain", *CORRECTED):
        table[f"{name}_percent"] = 100 * table[name].where(table["category"] == OVERALL)
    return table


def overall(results: DataFrame) -> DataFrame:
    """Return the rates over all categories."""
    return results[results["category"] == OVERALL]


def categories_of(results: DataFrame) -> list[str]:
    """Return the names of the single categories, sorted."""
    return sorted(set(results["category"]) - {OVERALL, MACRO})


def label(row: Entry, end: str = "") -> str:
    """Return the model of a row with its settings. end: of the columns' names."""
    return named(row[f"model{end}"], row[f"settings{end}"])


def short_label(row: Entry, end: str = "") -> str:
    """Return the same without what tells no two results apart, if that is known."""
    short: str = row.get(f"short{end}") or label(row, end)
    return short


def scaled(unit: str, **fractions: float) -> Entry:
    """Return fractions as columns in percent or points, such as rate_percent for rate."""
    return {f"{name}_{unit}": 100 * value for name, value in fractions.items()}


def interval_columns(name: str, n: int, rate: float, low: float, high: float) -> Entry:
    """Return the columns {name}_n, and in percent {name}, {name}_low and {name}_high."""
    percents = scaled("percent", **{name: rate, f"{name}_low": low, f"{name}_high": high})
    return {f"{name}_n": n, **percents}


def rate_columns(name: str, rows: DataFrame) -> Entry:
    """Return `interval_columns` of the rows' mean."""
    rate = mean(verdicts(rows))
    return interval_columns(name, rate.prompts, *rate[:3])


def contrast(a: Entry, b: Entry, gap: Difference, rate: str) -> Entry:
    """Return what tables show of two models and their difference. rate: what it is called."""
    row = {
        "model_a": a["model"],
        "settings_a": a["settings"],
        "model_b": b["model"],
        "settings_b": b["settings"],
        "n": gap.a.prompts,
    }
    row |= scaled("percent", **{f"{rate}_a": gap.a.rate, f"{rate}_b": gap.b.rate})
    row |= scaled("points", difference=gap.difference, low=gap.low, high=gap.high)
    return row | {"p": gap.p}


def _rates_of(part: DataFrame, known: bool) -> Iterator[Entry]:
    yield _rate(part, OVERALL, known)
    if set(part["category"]) == {UNCATEGORIZED}:
        return
    # Categories count alike.
    alike = verdicts(part)._replace(category=factorize(part["category"])[0])
    yield {"category": MACRO, **_figures(alike, known), **_shares(part, alike)}
    for name, rows in part.groupby("category"):
        yield _rate(rows, str(name), known)


def _figures(of: Verdicts, known: bool) -> Entry:
    """Return the verdicts, their rate and its intervals; as interval what tables show of the one
    with unscored rows, and as wider how many times as wide that is. known: whether unscored rows
    are.
    """
    rate, low, high, prompts = mean(of)[:4]
    row = {"verdicts": of, "n": prompts, **scaled("percent", rate=rate, low=low, high=high)}
    low_all = low
    high_all = high
    if known:
        low_all, high_all = with_unscored(of)
        row |= scaled("percent", low_all=low_all, high_all=high_all)
    row["wider"] = (high_all - low_all) / (high - low)
    row["interval"] = f"[{100 * low_all:.1f}, {100 * high_all:.1f}]"
    if row["wider"] > WIDER:
        row["interval"] += " ‡"
    return row


def _rate(part: DataFrame, category: str, known: bool) -> Entry:
    of = verdicts(part)
    whole = mean(of)
    scored = part[part["refused"].notna()]
    prompts = scored.groupby("prompt")[["refused", *RESPONSE_SHARES]].mean()
    row = {
        "category": category,
        "rows": len(scored),
        "design_effect": whole.design_effect,
        "assumed": whole.assumed,
        **_figures(of, known),
        **scaled("percent", **prompts[RESPONSE_SHARES].mean()),
        **_shares(part, of),
    }
    api = part[part["api"]]
    row["api_categories"] = _named(api["api_category"])
    row["after_text_percent"] = 100 * api["after_text"].mean()
    if known:
        row["unscored"] = len(part) - len(scored)
    if len(scored) > len(prompts):
        flips = prompts["refused"].between(0, 1, inclusive="neither")
        row["flip_percent"] = 100 * flips.mean()
    row["notes"] = list(_flags(part, row))
    return row


def _shares(part: DataFrame, of: Verdicts) -> Entry:
    """Return each share of graded results with its interval, which includes unscored rows, and the
    values behind it. of: the verdicts of part.
    """
    if not part["graded"].any():
        return {}
    shares = part[REFUSALS].copy()
    for name, classes in GRADED.items():
        shares[name] = part["graded"].isin(classes)
    shares = shares[part["refused"].notna()].reindex(part.index)
    columns = Entry()
    for name in shares:
        share = of._replace(refused=shares[name].to_numpy(float))
        found = mean(share)
        columns |= interval_columns(name, found.prompts, found.rate, *with_unscored(share))
        columns[f"{name}_verdicts"] = share
    return columns


def _named(categories: Series) -> str:
    """Return how often an API named which category; it may name several at once."""
    counts = Counter(name for names in categories for name in names.split(", "))
    return ", ".join(f"{name or 'unnamed'} {n}" for name, n in counts.most_common())


def _flags(part: DataFrame, row: Entry) -> Iterator[str]:
    """Yield what a reader must know of a rate."""
    coverage = 100 * row["rows"] / len(part)
    if coverage < 95:
        yield f"coverage {coverage:.1f} %"
    if row["wider"] > WIDER:
        yield f"unscored rows make the interval {row['wider']:.1f} times as wide"
    if row["cut_off_percent"] > 5 and not part["doubt"].iat[0]:  # else it is not ranked anyway
        yield f"cut off {row['cut_off_percent']:.1f} %"
    refused_to_judge = int(part["judge_refused"].sum())
    if refused_to_judge:
        yield f"the judge refused to judge {counted(refused_to_judge, 'row')}"
    terms = part.loc[part["api"], "api_category"].isin(NOT_ABOUT_SAFETY).sum()
    if terms:
        refused = int(part["refused"].sum())
        names = " or ".join(NOT_ABOUT_SAFETY)
        yield f"{terms} of {counted(refused, 'refusal')} for {names}, not for safety"
    others = int(part["other_model"].sum())
    if others:
        yield f"served by a different model: {counted(others, 'row')}"
    if row["assumed"]:
        yield FEW_SEEDS
    if row["n"] < FEW_PROMPTS:
        yield f"fewer than {FEW_PROMPTS} prompts"


def _seeds_missing(part: DataFrame) -> str:
    """Return a note if prompts without a seed look like rewrites of one another, else nothing."""
    texts = [text for text in part["seedless"].unique() if len(text) >= SHORTEST]
    sample = tuple(texts[:FIRST])
    alike = len(like_rewrites(sample))
    if alike <= MOST_ALIKE * len(sample):
        return ""
    return (
        f"{alike} of the first {len(sample)} prompts without a seed look like rewrites of others, "
        "so the interval may be too narrow: name their seeds in a column seed_id of the same file"
    )
