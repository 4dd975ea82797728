"""The rates of the paper's 32 models, as plotted by its authors (Cui et al., ICML 2025, arXiv
2405.20947; their repository, commit 4fad1f9), without intervals.

25 models were scored on earlier prompt sets, 7 on today's: up to rounding, the rates of the 25 are
whole numbers of 1,534 and of 681 prompts, those of the 7 of 1,319 and of 655.
"""

from orbench.base.toml_files import toml_beside
from orbench.report.standings import Published, Standing

SETS = {"or-bench-hard-1k", "or-bench-toxic"}  # today's names


def published_models() -> list[Published]:
    """Return the models, best first."""
    models = []
    for prompts, several in toml_beside(__file__).items():
        for name, safe, toxic in several:
            models.append(Published(name, prompts, safe / 100, toxic / 100))
    return sorted(models, key=lambda one: -one.score)


def is_on_or_bench(standing: Standing) -> bool:
    """Return whether a model was measured on the sets of the published ones, or on parts of
    them.
    """
    sets = [result.prompts.partition(" ")[0] for result in standing.results]
    return SETS.issuperset(sets)
