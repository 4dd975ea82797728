"""Comparisons that are corrected together: nothing but their difference is tested."""

from collections.abc import Sequence
from math import nan
from typing import NamedTuple

import numpy as np

from orbench.report.measures import Compared, Comparison, Family, Outcome, Rate
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, Difference


class Contrast(NamedTuple):
    """Two rates, and how they differ: a minus b."""

    a: Rate
    b: Rate
    gap: Difference


def tested(kind: Compared, contrasts: Sequence[Contrast]) -> list[Comparison]:
    """Return the comparisons; those by category are a family of their own."""
    families = np.array(["category" if a.subset.category else "" for a, _, _ in contrasts])
    p = np.array([gap.p for _, _, gap in contrasts])
    for name in set(families):
        p[families == name] = holm(p[families == name])
    found = []
    for (a, b, gap), p_holm, name in zip(contrasts, p.tolist(), families.tolist(), strict=True):
        family = Family(kind, name, int(np.sum(families == name)))
        outcome = Outcome.FINDING if p_holm < ALPHA else Outcome.NO_DIFFERENCE
        found.append(Comparison(a, b, family, gap, p_holm, nan, nan, outcome))
    return found
