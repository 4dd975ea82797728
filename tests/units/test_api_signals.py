"""How APIs say that they refuse: finish reasons, errors, marks in a body, and the categories."""

import json
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from openai.types.chat.chat_completion import Choice as ChatChoice
from openai.types.completion_choice import CompletionChoice
from openai.types.responses.response import IncompleteDetails, Response

from orbench.refusals.api import (
    Declared,
    api_refusal_signal,
    category_in,
    finish_meaning,
    refusal_in_body,
    refusal_in_error,
    refused_by,
)

FILE = Path(__file__).with_name("api_signals.toml")
SIGNALS = tomllib.loads(FILE.read_text(encoding="utf-8"))
VALUES = Path(__file__).with_name("finish_reasons.toml")
PROVIDERS = tomllib.loads(VALUES.read_text(encoding="utf-8"))


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
    assert category_of(refusal_in_error(status, parsed, "")) == category


def test_the_message_that_the_client_read_counts_too() -> None:
    assert refusal_in_error(400, None, "Content Exists Risk") == ("content_filter", "")
    assert refusal_in_error(400, None, "Content management") is None
    nested = "[" * 100_000
    assert refusal_in_error(400, "{" + nested, "no") is None


@pytest.mark.parametrize(("body", "text", "category"), SIGNALS["bodies"])
def test_a_mark_beside_an_answer_declares_a_refusal(body: str, text: str, category: str) -> None:
    assert category_of(refusal_in_body(json.loads(body), text)) == category


def category_of(declared: Declared | None) -> str:
    """The category of a refusal, - without one; a gateway's is named by its finish reason."""
    if declared is None:
        return "-"
    reason, category = declared
    assert reason in ("content_filter", "refusal", "gateway")
    assert category != "gateway" or refused_by(f"api:{reason}") == "gateway"
    return category


@pytest.mark.parametrize("source", PROVIDERS)
def test_each_value_that_a_provider_knows_has_its_meaning(source: str) -> None:
    for meaning, values in PROVIDERS[source].items():
        for value in values:
            assert (value, finish_meaning(value)[0]) == (value, meaning)


OF_OPENAI = {
    "chat": ChatChoice.model_fields["finish_reason"],
    "completions": CompletionChoice.model_fields["finish_reason"],
    "responses, status": Response.model_fields["status"],
    "responses, incomplete_details": IncompleteDetails.model_fields["reason"],
}


@pytest.mark.parametrize("name", OF_OPENAI)
def test_the_values_in_the_types_of_the_openai_package_are_listed(name: str) -> None:
    listed = set().union(*PROVIDERS[f"openai, {name}"].values())
    assert literals(OF_OPENAI[name].annotation) == listed


def literals(hint: Any) -> set[str]:
    """The texts of all Literals in a type."""
    found = set()
    for inner in get_args(hint):
        found |= {inner} if isinstance(inner, str) else literals(inner)
    return found
