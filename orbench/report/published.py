"""The rates of the paper's 32 models, as plotted by its authors (Cui et al., ICML 2025, arXiv
2405.20947; their repository, commit 4fad1f9), without intervals.

25 models were scored on earlier prompt sets, 7 on today's: up to rounding, the rates of the 25 are
whole numbers of 1,534 and of 681 prompts, those of the 7 of 1,319 and of 655.
"""

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.toml_files import toml_beside

SETS = ("or-bench-hard-1k", "or-bench-toxic")  # today's names


def published_models() -> DataFrame:
    """Rows of `orbench.report.compare.leaderboard`, best first, without intervals."""
    published = toml_beside(__file__)
    models = [(prompts, *one) for prompts, several in published.items() for one in several]
    columns = ["prompts", "model", "over_refusal_percent", "toxic_percent"]
    board = DataFrame(models, columns=columns)
    board["youden_points"] = board["toxic_percent"] - board["over_refusal_percent"]
    board["short"] = board["model"]
    board[["rank", "settings", "over_refusal_interval", "toxic_interval", "part", "why"]] = ""
    board[["judge", "group"]] = "published", -1
    return board.sort_values("youden_points", ascending=False)
