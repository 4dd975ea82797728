"""Agreement of judges and of people: the figures, against the libraries that know them."""

import math
import warnings
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbench.agreement import Agreement, cohen_kappa, fleiss_kappa

VOTES = st.sampled_from([True, False])
MAYBE = st.sampled_from([True, False, None])


@settings(deadline=None)  # the first import of a library is slow
@given(st.lists(st.tuples(VOTES, VOTES), min_size=2, max_size=40))
def test_cohens_kappa_is_that_of_statsmodels(rows: list[tuple[bool, bool]]) -> None:
    raters = pytest.importorskip("statsmodels.stats.inter_rater")
    both, first, second, neither = (rows.count(pair) for pair in PAIRS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = raters.cohens_kappa([[both, first], [second, neither]]).kappa
    kappa = cohen_kappa(both, first, second, neither)
    assert math.isnan(expected) if kappa is None else kappa == pytest.approx(expected)


PAIRS = [(True, True), (True, False), (False, True), (False, False)]


@settings(deadline=None)  # the first import of a library is slow
@given(st.integers(2, 6).flatmap(lambda n: st.lists(st.integers(0, n).map(lambda k: (k, n - k)))))
def test_fleiss_kappa_is_that_of_statsmodels(rows: list[tuple[int, int]]) -> None:
    library = pytest.importorskip("statsmodels.stats.inter_rater")
    kappa = fleiss_kappa(sum(rows[0]) if rows else 3, Counter(yes for yes, _ in rows))
    if not rows:
        assert kappa is None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = library.fleiss_kappa(rows, method="fleiss")
    assert math.isnan(expected) if kappa is None else kappa == pytest.approx(expected)


def test_kappa_is_undefined_where_every_vote_is_the_same_or_none_is_there() -> None:
    assert cohen_kappa(10, 0, 0, 0) is None
    assert cohen_kappa(0, 0, 0, 0) is None
    assert fleiss_kappa(3, {3: 7}) is None
    assert fleiss_kappa(3, {}) is None
    assert fleiss_kappa(1, {1: 2, 0: 2}) is None
    same = Agreement(["a", "b"])
    same.add({"a": False, "b": False})
    assert "undefined" in "\n".join(same.lines())


@settings(deadline=None)  # the first import of a library is slow
@given(st.lists(st.fixed_dictionaries({"a": MAYBE, "b": MAYBE, "c": MAYBE}), max_size=30))
def test_a_missing_vote_counts_nowhere(rows: list[dict[str, bool | None]]) -> None:
    votes = Agreement(["a", "b", "c"])
    for row in rows:
        votes.add(row)
    for rater in votes.raters:
        said = [row[rater] for row in rows]
        assert all(votes.votes_of(rater)[v] == said.count(v) for v in (True, False, None))
        assert (rater in votes.silent) == (not said or set(said) == {None})
    for pair in votes.pairs():
        both = [(r[pair.first], r[pair.second]) for r in rows]
        both = [(one, other) for one, other in both if one is not None and other is not None]
        assert (pair.n, pair.agree) == (len(both), sum(one == other for one, other in both))


def test_fleiss_kappa_rests_on_the_rows_that_all_judges_at_work_voted_on() -> None:
    votes = Agreement(["a", "b", "silent"])
    for a, b in [(True, True), (True, False), (False, False), (False, False), (True, None)]:
        votes.add({"a": a, "b": b})
    kappa, n = votes.fleiss()
    assert n == 4
    assert kappa == fleiss_kappa(2, {2: 1, 1: 1, 0: 2})
    text = "\n".join(votes.lines())
    assert "all but silent, 4 rows" in text
    assert "silent has no vote at all" in text


def test_a_rater_with_few_votes_is_named() -> None:
    votes = Agreement(["steady", "nine", "lazy"])
    for i in range(10):
        votes.add({"steady": True, "nine": True if i else None, "lazy": True if i > 1 else None})
    warned = [line for line in votes.lines() if line.startswith("warning")]
    assert warned == ["warning: lazy voted on only 80.0% of 10 rows"]


def test_the_lines_name_each_pair_and_each_judges_toxic_rate() -> None:
    votes = Agreement(["gpt4", "llama3"])
    for gpt4, llama3, times in [(True, True, 4), (False, False, 4), (True, False, 2)]:
        for _ in range(times):
            votes.add({"gpt4": gpt4, "llama3": llama3})
    lines = votes.lines()
    assert lines[1].split() == ["gpt4", "-", "llama3", "10", "80.0%", "0.615"]
    assert lines[-2].split() == ["gpt4", "10", "60.0%", "0"]
    assert lines[-1].split() == ["llama3", "10", "40.0%", "0"]


def test_memory_does_not_grow_with_the_rows() -> None:
    votes = Agreement(["a", "b", "c"])
    for i in range(20_000):
        votes.add({"a": i % 2 == 0, "b": i % 3 == 0, "c": None})
    assert len(votes.patterns) <= 3**3
