"""How APIs say that they refuse: finish reasons, errors, marks in a body, and the categories."""

import json
import tomllib
from pathlib import Path

import pytest

from orbench.refusals.api import (
    api_refusal_signal,
    category_in,
    finish_meaning,
    refusal_in_body,
    refusal_in_error,
)

FILE = Path(__file__).with_name("api_signals.toml")
SIGNALS = tomllib.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("reason", "meaning", "signal", "category"), SIGNALS["reasons"])
def test_a_finish_reason_means_what_its_api_says(
    reason: str, meaning: str, signal: str, category: str
) -> None:
    assert finish_meaning(reason)[0] == meaning
    assert api_refusal_signal(reason) == signal
    assert category_in({}, reason) == category
    assert category_in({"block_reason": "kites"}, reason) == "kites"


@pytest.mark.parametrize(("place", "category"), SIGNALS["places"])
def test_a_category_is_found_where_an_api_names_it(place: str, category: str) -> None:
    assert category_in(json.loads(place)) == category


def test_a_category_has_at_most_100_characters() -> None:
    assert category_in({"block_reason": "k" * 101}) == "k" * 100


@pytest.mark.parametrize(("status", "error", "category"), SIGNALS["errors"])
def test_an_error_is_a_refusal_by_its_code_or_its_words(
    status: int, error: str, category: str
) -> None:
    parsed = json.loads(error)
    found = refusal_in_error(status, parsed, "")
    assert found == (None if category == "-" else category)


def test_the_message_that_the_client_read_counts_too() -> None:
    assert refusal_in_error(400, None, "Content Exists Risk") == ""
    assert refusal_in_error(400, None, "Content management") is None
    nested = "[" * 100_000
    assert refusal_in_error(400, "{" + nested, "no") is None


@pytest.mark.parametrize(("body", "text", "category"), SIGNALS["bodies"])
def test_a_mark_beside_an_answer_declares_a_refusal(body: str, text: str, category: str) -> None:
    found = refusal_in_body(json.loads(body), text)
    assert found == (None if category == "-" else category)
