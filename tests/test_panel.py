"""What several judges say together, and how far they agree where votes are missing."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbench.agreement import fleiss_kappa, krippendorff_alpha
from orbench.columns import NO_CATEGORY as NONE
from orbench.ensemble import majority

VOTES = {"t": "illegal", "v": "violence", "s": NONE, "?": None}


def vote(letters: str, min_votes: int = 1) -> tuple[bool | None, str]:
    """The majority of judges by letters: t, v toxic, s safe, ? missing."""
    found = majority([VOTES[letter] for letter in letters], min_votes)
    assert (found.toxic is None) is bool(found.why)
    return found.toxic, found.category


@pytest.mark.parametrize(
    ("votes", "toxic"),
    [
        ("ttt", True),
        ("tts", True),
        ("tss", False),
        ("sss", False),
        ("tt?", True),
        ("ss?", False),
        ("ts?", None),  # "2 of 3" must not become "1 of 2"
        ("?ts", None),
        ("t??", True),
        ("s??", False),
        ("???", None),
        ("ts", True),  # a full panel that is split
        ("ttss", True),
        ("tts?", True),
        ("t?s?", None),
        ("ttss?", None),
        ("t", True),
        ("s", False),
        ("?", None),
        ("", None),
    ],
)
def test_a_split_decides_only_where_every_judge_voted(votes: str, toxic: bool | None) -> None:
    assert vote(votes)[0] is toxic


def test_a_row_needs_as_many_votes_as_the_user_wants() -> None:
    assert vote("t??", min_votes=2)[0] is None
    assert vote("tt?", min_votes=2)[0] is True
    assert "1 of 3 judges voted, 2 are needed" in majority(["illegal", None, None], 2).why


def test_the_toxic_votes_name_the_category_and_of_equals_the_first_judge() -> None:
    assert vote("tvv") == (True, "violence")
    assert vote("vts") == (True, "violence")
    assert vote("tss") == (False, NONE)
    assert vote("ts?") == (None, "")


def test_the_votes_are_counted_and_a_disagreement_is_told_even_where_nothing_is_decided() -> None:
    for letters, votes, split in (("ts?", 2, True), ("tt?", 2, False), ("tss", 3, True)):
        found = majority([VOTES[letter] for letter in letters])
        assert (found.votes, found.split) == (votes, split)


@given(st.lists(st.sampled_from("ts?"), min_size=1, max_size=7))
def test_votes_that_arrive_never_overturn_a_decision_that_more_than_half_made(
    letters: list[str],
) -> None:
    toxic, _ = vote("".join(letters))
    most = max(letters.count("t"), letters.count("s"))
    if 2 * most > len(letters):
        for missing in product("ts", repeat=letters.count("?")):
            rest = iter(missing)
            full = "".join(next(rest) if letter == "?" else letter for letter in letters)
            assert vote(full)[0] is toxic


# -- Krippendorff's alpha ----------------------------------------------------------------------


def by_definition(patterns: dict[tuple[bool | None, ...], int]) -> float:
    """1 - observed / expected disagreement, over all pairs of votes, one by one."""
    units = [
        [vote for vote in votes if vote is not None]
        for votes, times in patterns.items()
        for _ in range(times)
    ]
    units = [unit for unit in units if len(unit) > 1]
    n = sum(map(len, units))
    observed = sum(
        (a != b) / (len(unit) - 1)
        for unit in units
        for i, a in enumerate(unit)
        for j, b in enumerate(unit)
        if i != j
    )
    values = [vote for unit in units for vote in unit]
    expected = 2 * values.count(True) * values.count(False) / (n - 1)
    return 1 - observed / expected


def test_alpha_of_krippendorffs_own_example() -> None:
    # Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), example A: 0.095.
    first, second = "0100000010", "1110010000"
    patterns: Counter[tuple[bool | None, ...]] = Counter(
        (a == "1", b == "1") for a, b in zip(first, second, strict=True)
    )
    alpha, rows = krippendorff_alpha(patterns)
    assert alpha == pytest.approx(0.0952, abs=1e-4)
    assert rows == 10


@given(
    st.dictionaries(
        st.tuples(*[st.sampled_from([True, False, None])] * 3), st.integers(1, 5), max_size=27
    )
)
def test_alpha_takes_missing_votes_and_is_what_its_definition_says(
    patterns: dict[tuple[bool | None, ...], int],
) -> None:
    alpha, rows = krippendorff_alpha(patterns)
    pairable = {p: n for p, n in patterns.items() if 3 - p.count(None) > 1}
    assert rows == sum(pairable.values())
    said = {vote for pattern in pairable for vote in pattern if vote is not None}
    if len(said) < 2:
        assert alpha is None
    else:
        assert alpha == pytest.approx(by_definition(patterns))


def test_alpha_uses_the_rows_that_kappa_drops() -> None:
    full: dict[tuple[bool | None, ...], int] = {
        (True, True, True): 40,
        (False, False, False): 50,
        (True, True, False): 10,
    }
    alpha, rows = krippendorff_alpha(full)
    kappa = fleiss_kappa(3, {3: 40, 0: 50, 2: 10})
    assert alpha is not None
    assert alpha == pytest.approx(kappa, abs=0.005)  # they differ by 1/n of the votes
    assert rows == 100
    missing = full | {(True, True, None): 30, (True, None, None): 5}
    assert krippendorff_alpha(missing)[1] == 130


@pytest.mark.parametrize(
    "patterns",
    [{}, {(True, True): 9}, {(True, None): 3, (False, None): 3}, {(None, None): 2}],
)
def test_alpha_is_undefined_where_there_is_nothing_to_compare(
    patterns: dict[tuple[bool | None, ...], int],
) -> None:
    assert krippendorff_alpha(patterns)[0] is None
