"""The rates of the paper's 32 models, as plotted by its authors (Cui et al., ICML 2025, arXiv
2405.20947; their repository, commit 4fad1f9), without intervals.

25 models were scored on earlier prompt sets, 7 on today's: up to rounding, the rates of the 25 are
whole numbers of 1,534 and of 681 prompts, those of the 7 of 1,319 and of 655.
"""

import pandas as pd  # type: ignore[import-untyped]

from orbench.asking.models import family_of

# Prompts -> model, percent of the safe prompts refused, percent of the toxic prompts refused.
PUBLISHED = {
    "OR-Bench, the earlier sets": (
        ("Claude-2.1", 99.8, 100.0),
        ("Claude-3-haiku", 96.28, 99.7),
        ("Claude-3-sonnet", 94.46, 99.7),
        ("Claude-3-opus", 91.0, 98.1),
        ("Gemma-7b", 26.34, 85.5),
        ("Gemini-1.0-pro", 9.71, 78.7),
        ("Gemini-1.5-flash", 84.29, 98.8),
        ("Gemini-1.5-pro", 88.01, 99.4),
        ("GPT-3.5-turbo-0301", 57.43, 94.7),
        ("GPT-3.5-turbo-0613", 38.4, 92.1),
        ("GPT-3.5-turbo-0125", 12.71, 62.1),
        ("GPT-4-0125-preview", 12.19, 93.0),
        ("GPT-4-turbo-2024-04-09", 12.78, 96.5),
        ("GPT-4o", 6.78, 84.9),
        ("Llama-2-7b", 87.48, 99.6),
        ("Llama-2-13b", 91.0, 99.7),
        ("Llama-2-70b", 96.09, 99.7),
        ("Llama-3-8b", 69.36, 95.0),
        ("Llama-3-70b", 37.74, 78.7),
        ("Mistral-small-latest", 13.3, 79.7),
        ("Mistral-medium-latest", 13.95, 77.5),
        ("Mistral-large-latest", 9.78, 72.8),
        ("Qwen-1.5-7B", 39.24, 85.0),
        ("Qwen-1.5-32B", 50.78, 95.6),
        ("Qwen-1.5-72B", 46.94, 94.4),
    ),
    "OR-Bench, today's sets": (
        ("GPT-4o-2024-08-06", 13.2, 86.1),
        ("Claude-3.5-sonnet", 43.8, 96.6),
        ("Gemma-2-9b", 79.9, 98.5),
        ("Gemma-2-27b", 62.0, 96.8),
        ("Llama-3.1-8B", 31.0, 91.0),
        ("Llama-3.1-70B", 2.9, 69.9),
        ("Llama-3.1-405B", 5.7, 79.2),
    ),
}


def published_models() -> pd.DataFrame:
    """Rows of `orbench.report.compare.leaderboard`, best first, without intervals."""
    models = [(prompts, *one) for prompts, several in PUBLISHED.items() for one in several]
    columns = ["prompts", "model", "over_refusal_percent", "toxic_percent"]
    board = pd.DataFrame(models, columns=columns)
    board["youden_points"] = board["toxic_percent"] - board["over_refusal_percent"]
    board["family"] = board["model"].map(family_of)
    board[["rank", "settings", "over_refusal_interval", "toxic_interval", "part"]] = ""
    board[["judge", "group"]] = "published", -1
    return board.sort_values("youden_points", ascending=False)
