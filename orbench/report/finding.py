"""The finding of a report in words, for people who read nothing else.

Ranks and the findings of `orbench.report.compare` decide what it claims; rates only illustrate it.
The words are in sections/finding.txt.
"""

from collections.abc import Iterator

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.report.about import DEMO_NOTE
from orbench.report.compare import NAME_ENDS, SETTINGS_DIFFER
from orbench.report.frames import Entries, Entry
from orbench.report.lines import lines_of


def findings(board: DataFrame, pairs: DataFrame) -> list[str]:
    """Return the finding on each group of models with the same prompts and judge, if they are few.

    board: `leaderboard`, without published models; pairs: `compare`.
    """
    comparisons = pairs.to_dict("records")
    groups = []
    for _, group in board.groupby("group", sort=False):
        groups.append(_shown_of(group.to_dict("records"), comparisons))
    return lines_of("finding.txt", groups=groups, demo=DEMO_NOTE)


def _shown_of(models: Entries, pairs: Entries) -> Entry:
    """Return what ranks and comparisons show of a group."""
    ranked = [model for model in models if model["ranked"]]
    results = {model[side] for model in ranked for side in ("safe", "toxic")}
    pairs = [pair for pair in pairs if {pair["result_a"], pair["result_b"]} <= results]
    stand = list(_standing(pairs))
    safe = [pair for pair in stand if pair["side"] == "over_refusal"]
    return {
        "models": models,
        "ranked": ranked,
        "leaders": [model for model in ranked if model["rank"].split("-")[0] == "1"],
        "stand": stand,  # of the pairs of ranked models
        "pairs": pairs,
        "remarks": list(dict.fromkeys(_remarks(pairs))),
        "least": _beyond_all(ranked, [pair["fewer"] for pair in safe]),
        "most": _beyond_all(ranked, [pair["more"] for pair in safe]),
    }


def _standing(pairs: Entries) -> Iterator[Entry]:
    """Yield the comparisons with a finding; fewer, more: the result that refuses fewer prompts and
    the other one.
    """
    for pair in pairs:
        if pair["stands"]:
            fewer, more = reversed(NAME_ENDS) if pair["difference_points"] > 0 else NAME_ENDS
            yield pair | {"fewer": pair[f"result{fewer}"], "more": pair[f"result{more}"]}


def _remarks(pairs: Entries) -> Iterator[str]:
    """Yield the remarks; names have settings where these differ."""
    for pair in pairs:
        for text in pair["remarks"].split("; "):
            if text and text != SETTINGS_DIFFER:
                yield text


def _beyond_all(models: Entries, results: list[float]) -> Entry:
    """Return the model whose safe result is among these once for each other model; {}: none.

    results: one for each comparison with a finding, on the same side of it.
    """
    for model in models:
        if results.count(model["safe"]) >= len(models) - 1:
            return model
    return {}
