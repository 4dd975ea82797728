"""Agreement of judges and of people: the figures, against the libraries that know them."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa  # type: ignore[import-untyped]

from orbench.stats.agreement import TwoRaters, krippendorffs_alpha, two_raters

COUNT = st.integers(0, 30)
MAYBE = st.sampled_from([True, False, None])


@settings(deadline=None)
@given(st.tuples(COUNT, COUNT, COUNT, COUNT))
def test_cohens_kappa_is_that_of_statsmodels_and_within_its_interval(
    cells: tuple[int, int, int, int],
) -> None:
    found = TwoRaters(*cells).kappa(sum(cells))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cohens_kappa([cells[:2], cells[2:]]).kappa if sum(cells) else float("nan")
    if found is None:
        assert expected != expected  # NaN: all votes are the same, or there is none
    else:
        kappa, low, high = found
        assert kappa == pytest.approx(expected, abs=1e-12) and low <= kappa <= high <= 1


def test_kappas_interval_is_that_of_the_agreement_at_the_effective_size() -> None:
    raters = TwoRaters(40, 5, 5, 50)
    # Wilson's interval of 90 of 100 is .8256 to .9448; by chance they agree in .505
    ends = [(end - 0.505) / 0.495 for end in (0.9, 0.8256, 0.9448)]
    assert raters.kappa(100) == pytest.approx(ends, abs=1e-4)
    _, low, high = raters.kappa(50) or (0, 0, 0)
    assert low < ends[1] < ends[2] < high
    kappa, low, high = TwoRaters(50, 0, 0, 50).kappa(100) or (0, 0, 0)
    assert kappa == high == 1 and 0.9 < low < 0.95  # no error seen is not certainty


@given(st.lists(st.tuples(MAYBE, MAYBE, MAYBE), max_size=30))
def test_a_missing_vote_counts_nowhere(rows: list[tuple[bool | None, ...]]) -> None:
    found = two_raters([row[0] for row in rows], [row[2] for row in rows])
    both = [(row[0], row[2]) for row in rows if None not in (row[0], row[2])]
    kinds = [(True, True), (True, False), (False, True), (False, False)]
    assert list(found) == [both.count(kind) for kind in kinds]


def by_definition(rows: list[tuple[bool | None, ...]]) -> float | None:
    """1 - observed / expected disagreement, over all ordered pairs of values that can be paired."""
    units = [[vote for vote in row if vote is not None] for row in rows]
    units = [unit for unit in units if len(unit) > 1]
    values = [vote for unit in units for vote in unit]
    observed = sum(sum(a != b for a in unit for b in unit) / (len(unit) - 1) for unit in units)
    expected = sum(a != b for a in values for b in values)
    return 1 - (len(values) - 1) * observed / expected if expected else None


@given(st.lists(st.tuples(MAYBE, MAYBE, MAYBE, MAYBE), max_size=20))
def test_alpha_of_a_panel_with_missing_votes_is_what_its_definition_says(
    rows: list[tuple[bool | None, ...]],
) -> None:
    alpha, n = krippendorffs_alpha(rows)
    expected = by_definition(rows)
    assert alpha is None if expected is None else alpha == pytest.approx(expected)
    assert n == sum(len(row) - row.count(None) > 1 for row in rows)
