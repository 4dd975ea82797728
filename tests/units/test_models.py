"""What the name of a model says, which endpoint it is on, and which key that endpoint gets."""

import json
import os
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from orbench.base.messages import UserError
from orbench.models.adaptation import Adaptation
from orbench.models.client import connect, options_of
from orbench.models.errors import cleaned, key_of, reply_of, shown
from orbench.models.providers import THINKS, Model, family_of, generator, resolve
from orbench.models.requests import Prices, Request, Tokens, message, user
from orbench.models.substitutes import is_same_model
from tests.units.test_answers import table

NAMES = table("models.toml")


@pytest.fixture(autouse=True)
def _nothing_set() -> Iterator[None]:
    with mock.patch.dict(os.environ, clear=True):
        yield


def each(name: str) -> list[tuple[str, str]]:
    """The cases of a table that lists several for each key."""
    return [(key, value) for key, values in NAMES[name].items() for value in values]


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "wanted"), NAMES["endpoints"].items())
def test_a_name_stands_for_an_endpoint(name: str, wanted: str) -> None:
    model = resolve(name)
    facts = [model.provider, model.id, model.address, model.protocol, model.key_variable or "-"]
    assert " ".join(facts) == wanted
    assert model.asked == name


@pytest.mark.parametrize(("provider", "id_"), each("bare"))
def test_a_bare_id_shows_its_provider_or_is_unknown(provider: str, id_: str) -> None:
    if provider:
        assert (resolve(id_).provider, resolve(id_).id) == (provider, id_)
        return
    with pytest.raises(UserError, match=f"^unknown provider for '{id_}'; write provider/{id_} "):
        resolve(id_)
    with mock.patch.dict(os.environ, OPENAI_BASE_URL="http://own.test/v1"):
        assert resolve(id_)[1:4] == ("openai", id_, "http://own.test/v1")


def test_the_line_on_an_unknown_provider_names_all_and_what_was_meant() -> None:
    with pytest.raises(UserError) as error:
        resolve("gorq/x")
    assert str(error.value) == (
        "unknown provider for 'gorq/x'; write provider/gorq/x (providers: openai, anthropic, "
        "gemini, mistral, together, openrouter, groq, deepseek, xai, ollama, vllm, scripted, "
        "smollm2); for your own server set OPENAI_BASE_URL. Did you mean groq/x?"
    )


@pytest.mark.parametrize("name", ["", " ", "openai/", "/", "a/"])
def test_a_name_without_an_id_is_none(name: str) -> None:
    with pytest.raises(UserError, match=f"^'{name}' names no model; write provider/model-id$"):
        resolve(name)


def test_the_environment_moves_providers_and_aliases_and_a_base_url_beats_both() -> None:
    moved = {
        "XAI_BASE_URL": "http://xai.test/v1/",
        "ORBENCH_MODEL_MY_JUDGE_2": "grok-moved",
        "ORBENCH_MODEL_MIXTRAL": "",
        "GEMINI_BASE_URL": "",
    }
    with mock.patch.dict(os.environ, moved):
        assert resolve("my.judge-2")[1:4] == ("xai", "grok-moved", "http://xai.test/v1/")
        assert resolve("mixtral").provider == "openrouter"
        assert resolve("gemini/a").address.startswith("https://generativelanguage")
        own = resolve("xai/a", base_url="http://own.test/v1", key_variable="MY_KEY")
    assert own == ("xai/a", "xai", "a", "http://own.test/v1", "MY_KEY", "chat")
    custom = resolve("some/a", base_url="http://own.test/v1")
    assert custom[1:5] == ("custom", "some/a", "http://own.test/v1", "OPENAI_API_KEY")
    assert options_of(resolve("anthropic/a", base_url="http://own.test/v1")) == {}


@pytest.mark.parametrize(("setting", "model"), NAMES["generators"].items())
def test_generators_take_mixtral_where_its_key_or_alias_is_set(setting: str, model: str) -> None:
    with mock.patch.dict(os.environ, [setting.split("=")]):
        assert generator() == model


@pytest.mark.parametrize(("url", "address"), NAMES["addresses"].items())
def test_an_address_has_one_spelling(url: str, address: str) -> None:
    assert resolve("a", base_url=url).address == address


@pytest.mark.parametrize(("url", "seen"), NAMES["no_addresses"].items())
def test_what_is_no_address_is_shown_without_what_may_be_secret(url: str, seen: str) -> None:
    with pytest.raises(UserError) as error:
        resolve("a", base_url=url)
    assert str(error.value) == (
        f"{seen!r} is not a base URL such as http://localhost:8000/v1 "
        "(a key belongs in the environment, see --api_key_env)"
    )


# -- what follows from a name --------------------------------------------------------------------


@pytest.mark.parametrize(("which", "id_"), each("responses"))
def test_models_of_openais_without_a_chat_are_asked_for_responses(which: str, id_: str) -> None:
    assert (resolve(f"openai/{id_}").protocol == "responses") == (which == "only")
    assert resolve(f"groq/{id_}").protocol == "chat"


@pytest.mark.parametrize(("which", "id_"), each("max_completion_tokens"))
def test_openais_reasoning_models_have_another_name_for_the_limit(which: str, id_: str) -> None:
    name = "max_completion_tokens" if which == "wanted" else "max_tokens"
    assert resolve(f"openai/{id_}").named({"max_tokens": 5}) == {name: 5}
    assert resolve(f"groq/{id_}").named({"max_tokens": 5}) == {"max_tokens": 5}


def test_mistral_has_another_name_for_the_seed_wherever_it_is_served() -> None:
    model = resolve("mistral/m", base_url="http://own.test/v1")
    assert model.named({"seed": 3, "max_tokens": 5}) == {"random_seed": 3, "max_tokens": 5}


@pytest.mark.parametrize(("which", "id_"), each("thinks"))
def test_a_name_tells_whether_a_model_thinks(which: str, id_: str) -> None:
    assert bool(THINKS.search(id_)) == (which == "yes")


@pytest.mark.parametrize(("family", "id_"), each("families"))
def test_a_model_belongs_to_a_family(family: str, id_: str) -> None:
    assert family_of(id_) == family


RETURNED = table("returned_ids.toml")


@pytest.mark.parametrize(("kind", "same"), [("same", True), ("doubt", None), ("other", False)])
def test_ids_of_a_model_differ_in_no_series_version_tier_or_size(
    kind: str, same: bool | None
) -> None:
    wrong = []
    for asked, ids in RETURNED[kind].items():
        wrong += [(asked, id_) for id_ in ids if is_same_model(asked, id_) is not same]
    assert wrong == []


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "needed"), NAMES["needs_key"].items())
def test_a_key_is_needed_unless_the_endpoint_is_the_users_own(words: str, needed: bool) -> None:
    name, base_url, variable, *_ = [*words.split(), "", ""]
    model = resolve(name, base_url=base_url, key_variable=variable)
    assert model.key_needed is needed
    if needed:
        with pytest.raises(UserError) as error:
            connect(model, model.base_url, 1)
        assert str(error.value) == (
            f"{model.key_variable} is not set: put the key for {name} at {model.address} "
            "into the environment or .env"
        )


@pytest.mark.parametrize(("value", "key"), NAMES["copied_along"].items())
def test_what_was_copied_along_is_no_part_of_a_key(value: str, key: str) -> None:
    with mock.patch.dict(os.environ, GROQ_API_KEY=value):
        assert key_of(resolve("groq/a")) == key


@pytest.mark.parametrize("key", ["schlüssel", "a\tb"])
def test_a_key_that_cannot_be_one_stops_the_run(key: str) -> None:
    with (
        mock.patch.dict(os.environ, GROQ_API_KEY=key),
        pytest.raises(UserError, match="GROQ_API_KEY holds invalid characters; copy the key"),
    ):
        connect(resolve("groq/a"), "", 1)


def test_a_client_has_the_timeout_of_the_run_and_does_not_retry() -> None:
    with mock.patch.dict(os.environ, GROQ_API_KEY="k"):
        client = connect(resolve("groq/a"), "http://x.test/v1", 7.5)
    assert (client.timeout, client.max_retries, client.api_key) == (7.5, 0, "k")
    own = connect(resolve("a", base_url="http://x.test/v1"), "http://x.test/v1", 1)
    assert (own.api_key, str(own.base_url)) == ("none", "http://x.test/v1/")


@pytest.mark.parametrize(("key", "texts"), NAMES["masked"].items())
def test_a_key_is_masked_and_a_short_one_as_a_word_alone(key: str, texts: list[str]) -> None:
    text, seen = texts
    with mock.patch.dict(os.environ, GROQ_API_KEY=key):
        assert shown(f" {text}\n", resolve("groq/a")) == seen
    nested = [{text: [text, 7, None]}]
    assert cleaned(nested, key) == [{seen: [seen, 7, None]}]


# -- the key of a request ------------------------------------------------------------------------


def request(model: Model | None = None, **changes: Any) -> Request:
    usual = {"messages": [user("Fold?")], "parameters": {"seed": 3, "max_tokens": 5}}
    return Request(model or resolve("m", base_url="http://127.0.0.1:1/v1"), **usual | changes)


def test_equal_requests_have_equal_keys() -> None:
    key = request().key
    assert len(key) == 16
    assert request(resolve("m", base_url="http://localhost:1/v1/")).key == key
    assert request(parameters={"max_tokens": 5, "seed": 3}).key == key


def test_other_requests_have_other_keys() -> None:
    others = [
        request(),
        request(resolve("m", base_url="http://localhost:2/v1")),
        request(resolve("n", base_url="http://localhost:1/v1")),
        request(messages=[user("Cut?")]),
        request(parameters={"seed": 4, "max_tokens": 5}),
        request(sample=1),
        request(protocol="responses"),
        request().again(),
        request().again().again(),
    ]
    assert len({other.key for other in others}) == len(others)


def test_the_key_of_a_request_stays_as_it_was_or_logs_are_lost() -> None:
    """Computed by hand: SHA-256 of the JSON of address, protocol, body and sample."""
    assert request().key.hex() == "837dd8a584794ecf3c1b24964b0b1f11"


def test_each_sample_has_its_own_seed_where_the_protocol_takes_one() -> None:
    assert request(sample=2).wanted() == {"seed": 5, "max_tokens": 5}
    assert request(sample=2, protocol="messages").wanted() == {"max_tokens": 5}
    assert request(parameters={}).wanted() == {}


# -- bodies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", NAMES["bodies"])
def test_each_protocol_has_its_own_names_for_parameters(case: str) -> None:
    parameters, wanted = map(json.loads, NAMES["bodies"][case])
    asked = request(protocol=case.partition(":")[0], parameters=parameters)
    body = json.dumps(asked.body(asked.wanted()))
    turns = json.dumps([user("Fold?")])
    assert json.loads(body.replace(turns, '"M"')) == {"model": "m", **wanted}


def test_messages_have_a_place_of_their_own_for_the_system_prompt() -> None:
    system = message("system", "Be kind.")
    body = request(protocol="messages", messages=[system, system, user("Fold?")]).body({})
    assert body["messages"] == [user("Fold?")] and body["system"] == "Be kind.\n\nBe kind."


# -- costs ---------------------------------------------------------------------------------------


def test_cached_tokens_have_a_price_of_their_own() -> None:
    tokens = Tokens(prompt=2000, cached=600, completion=1000)
    cost = (1400 * 1000 + 600 * 500 + 1000 * 2000) / 1e6
    assert tokens.cost(Prices(1000, 2000, 500)) == f"cost ${cost:.4f}"
    assert tokens.cost(None) == ""


def test_each_rejected_parameter_is_noted_once_whatever_was_rejected_before() -> None:
    adaptation = Adaptation()
    model = resolve("gpt-x")
    for names in (["seed"], ["seed", "temperature"]):
        adaptation.reject(model, names)
    assert adaptation.dropped(model) == ["seed", "temperature"]
    adaptation.answered.add(model)  # another request was under way before the first reply
    assert adaptation.learns(model, reply_of(400, "seed", model), ["seed"])
    assert [note.split()[2] for note in adaptation.notes] == ["seed:", "temperature:"]
