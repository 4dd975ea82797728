"""Names of models: which server, which id, which key, which family."""

import asyncio
import csv
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbench.chat import Adaptation, Chat, Request, key_of, user
from orbench.models import (
    ALIASES,
    GENERATOR_FALLBACK,
    PROVIDERS,
    Model,
    alias_variable,
    family_of,
    generator,
    public_url,
    resolve,
)
from orbench.terminal import UserError
from tests.conftest import KEY, SHARED_DATA
from tests.server import Server, answer

# Names as users write them, with where they are served.
ENDPOINTS = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": ("https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY"),
    "gemini": (
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        "GEMINI_API_KEY",
    ),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "together": ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": ("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "ollama": ("http://localhost:11434/v1", "OLLAMA_API_KEY"),
    "vllm": ("http://localhost:8000/v1", "VLLM_API_KEY"),
}
LOOPBACK = "http://127.0.0.1:9/v1"


def found(name: str, **environment: str) -> tuple[str, str]:
    """The provider and the id that a name stands for."""
    model = resolve(name, environment=environment)
    assert model.asked == name
    return model.provider, model.id


# -- which server ------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ENDPOINTS)
def test_every_provider_is_reached_by_its_name_in_front(provider: str) -> None:
    model = resolve(f"{provider}/some/model-1", environment={})
    url, variable = ENDPOINTS[provider]
    name, protocol = f"{provider}/some/model-1", "messages" if provider == "anthropic" else "chat"
    assert model == Model(name, provider, "some/model-1", url, variable, protocol)


@pytest.mark.parametrize("provider", ENDPOINTS)
def test_every_provider_can_be_pointed_at_another_server(provider: str) -> None:
    environment = {f"{provider.upper()}_BASE_URL": LOOPBACK}
    model = resolve(f"{provider}/model-1", environment=environment)
    assert (model.base_url, model.key_variable) == (LOOPBACK, ENDPOINTS[provider][1])


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("gpt-3.5-turbo-0125", "openai"),
        ("gpt-5.4-mini", "openai"),
        ("chatgpt-4o-latest", "openai"),
        ("o1", "openai"),
        ("o3-mini", "openai"),
        ("o4-mini", "openai"),
        ("claude-3-opus-20240229", "anthropic"),
        ("gemini-1.5-pro", "gemini"),
        ("mistral-small-latest", "mistral"),
        ("open-mixtral-8x7b", "mistral"),
        ("open-mistral-7b", "mistral"),
        ("meta-llama/Llama-3-70b-chat-hf", "together"),
        ("deepseek-chat", "deepseek"),
        ("scripted", "scripted"),
        ("GPT-4o", "openai"),
    ],
)
def test_a_bare_name_has_the_provider_that_is_plain_from_it(name: str, provider: str) -> None:
    assert found(name) == (provider, name)


@pytest.mark.parametrize("name", ["my-model", "qwen2.5-72b", "nobody/model", "", "/", "openai/"])
def test_a_name_without_a_plain_provider_is_an_error_that_says_what_to_write(name: str) -> None:
    with pytest.raises(UserError) as raised:
        resolve(name, environment={})
    assert "provider/" in str(raised.value)
    assert "\n" not in str(raised.value)
    if name == "my-model":
        assert all(provider in str(raised.value) for provider in ENDPOINTS)
        assert "--base_url" in str(raised.value)


def test_with_a_server_of_ones_own_any_name_goes_there() -> None:
    model = resolve("my-model", environment={"OPENAI_BASE_URL": LOOPBACK})
    assert (model.provider, model.id, model.base_url) == ("openai", "my-model", LOOPBACK)


def test_a_base_url_serves_any_model_with_any_key_variable() -> None:
    plain = resolve("org/model-1", base_url=LOOPBACK, environment={})
    assert plain == Model("org/model-1", "custom", "org/model-1", LOOPBACK, "OPENAI_API_KEY")
    own = resolve("model-1", base_url=LOOPBACK, key_variable="MY_KEY", environment={})
    assert (own.key_variable, own.provider) == ("MY_KEY", "custom")
    known = resolve("gemini/gemini-1.5-pro", base_url=LOOPBACK, environment={})
    assert (known.provider, known.id) == ("gemini", "gemini-1.5-pro")
    assert known.key_variable == "GEMINI_API_KEY"
    assert known.settings.empty_is_refusal
    assert not plain.settings.empty_is_refusal


def test_the_base_url_on_the_command_line_beats_the_one_in_the_environment() -> None:
    environment = {"OPENAI_BASE_URL": "http://other:1/v1", "ORBENCH_MODEL_GPT4": "groq/x"}
    assert resolve("gpt4", base_url=LOOPBACK, environment=environment).base_url == LOOPBACK


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "localhost:8000/v1",
        "ftp://host/v1",
        "http://",
        "http:///v1",
        "http://[::1/v1",
        "http://host:port/v1",
        "http://host:99999/v1",
        "http://two..dots/v1",
        f"http://{'a' * 300}/v1",
        "http://ho st/v1",
        "http://host/\x00",
        "scripted/",
    ],
)
def test_what_is_no_base_url_is_turned_down_in_one_line(url: str) -> None:
    for given_as in ({"base_url": url}, {"environment": {"OPENAI_BASE_URL": url}}):
        with pytest.raises(UserError, match="is no base URL") as raised:
            resolve("gpt-4o", **{"environment": {}, **given_as})  # type: ignore[arg-type]
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/v1", "https://a-b.example.org", "http://[::1]:80/v1", LOOPBACK]
)
def test_what_is_a_base_url_is_taken_as_it_is(url: str) -> None:
    assert resolve("gpt-4o", base_url=url, environment={}).base_url == url


# -- aliases -----------------------------------------------------------------------------------


def test_the_aliases_are_the_pinned_judges_of_the_paper() -> None:
    assert found("gpt4") == ("openai", "gpt-4-turbo-2024-04-09")
    assert found("llama3") == ("together", "meta-llama/Llama-3-70b-chat-hf")
    assert found("gemini-1.5") == ("gemini", "gemini-1.5-pro")
    assert found("mixtral") == ("openrouter", "mistralai/mixtral-8x7b-instruct")


@pytest.mark.parametrize("alias", ALIASES)
def test_every_alias_can_be_pointed_elsewhere(alias: str) -> None:
    assert found(alias, **{alias_variable(alias): "ollama/other"}) == ("ollama", "other")
    assert found(alias, **{alias_variable(alias): "gpt-4o"}) == ("openai", "gpt-4o")
    assert found(alias, **{alias_variable(alias): ""}) == found(alias)


def test_the_variable_of_an_alias_is_one_that_a_shell_takes() -> None:
    assert alias_variable("gemini-1.5") == "ORBENCH_MODEL_GEMINI_1_5"
    assert alias_variable("gpt4") == "ORBENCH_MODEL_GPT4"


def test_an_alias_that_points_nowhere_is_named() -> None:
    with pytest.raises(UserError, match="nowhere"):
        resolve("gpt4", environment={"ORBENCH_MODEL_GPT4": "nowhere"})


def test_seeds_come_from_mixtral_where_its_key_is_set() -> None:
    assert generator({}) == GENERATOR_FALLBACK
    assert generator({"OPENAI_API_KEY": KEY}) == GENERATOR_FALLBACK
    mixtral = generator({"OPENAI_API_KEY": KEY, "OPENROUTER_API_KEY": KEY})
    assert found(mixtral) == ("openrouter", "mistralai/mixtral-8x7b-instruct")
    moved = {"ORBENCH_MODEL_MIXTRAL": "ollama/mixtral"}
    assert found(generator(moved), **moved) == ("ollama", "mixtral")
    resolve(GENERATOR_FALLBACK, environment={})


# -- keys --------------------------------------------------------------------------------------


def test_every_provider_has_an_endpoint_in_the_table_above() -> None:
    assert set(ENDPOINTS) == set(PROVIDERS) - {"scripted", "smollm2"}


LOCKED = [name for name, one in PROVIDERS.items() if one.key_needed and one.key_variable]


@pytest.mark.parametrize("provider", LOCKED)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_named(
    monkeypatch: pytest.MonkeyPatch, provider: str, value: str | None
) -> None:
    variable = ENDPOINTS[provider][1]
    monkeypatch.delenv(variable, raising=False)
    if value is not None:
        monkeypatch.setenv(variable, value)
    with pytest.raises(UserError) as raised:
        key_of(resolve(f"{provider}/model-1", environment={}))
    assert str(raised.value).startswith(f"{variable} is not set")
    assert "\n" not in str(raised.value)


def test_a_missing_key_is_an_error_before_any_request(
    monkeypatch: pytest.MonkeyPatch, serve: Callable[..., Server]
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    server = serve(lambda body, seen: answer("never asked"))
    model = resolve("model-1", base_url=server.url, key_variable="MY_KEY", environment={})
    with pytest.raises(UserError, match="MY_KEY is not set"):
        asyncio.run(Chat(5.0, Adaptation()).open(model))
    with pytest.raises(UserError, match="MY_KEY is not set"):
        asyncio.run(Chat(5.0, Adaptation()).send(Request(model, [user("hello")], {})))
    assert server.requests == []


def test_a_key_that_no_header_can_hold_is_named_and_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value in ("sk-…abc", "sk-a\nb", "sk-\x00"):
        if "\x00" in value:
            continue  # no environment can hold it
        monkeypatch.setenv("OPENAI_API_KEY", value)
        with pytest.raises(UserError, match="OPENAI_API_KEY") as raised:
            key_of(resolve("gpt-4o", environment={}))
        assert value not in str(raised.value)


def test_local_servers_need_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name in ("ollama/mixtral", "vllm/mistralai/Mixtral-8x7B-Instruct-v0.1", "scripted"):
        assert key_of(resolve(name, environment={}))


def test_no_key_is_in_what_a_model_a_request_or_a_client_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = resolve("gpt-4o", environment={"OPENAI_API_KEY": KEY})
    request = Request(model, [user("hello")], {"temperature": 0.0})
    chat = Chat(5.0, Adaptation())
    request.key()

    async def opened() -> str:
        try:
            return repr(await chat.open(model))
        finally:
            await chat.close()

    shown = [
        asyncio.run(opened()),
        repr(vars(chat)),
        repr(model),
        repr(request),
        str(request.body()),
    ]
    assert KEY not in "".join(shown)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:secret@host:8000/v1?key=secret#secret", "http://host:8000/v1"),
        ("https://me:sec@ret@host/v1/", "https://host/v1/"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("scripted", "scripted"),
    ],
)
def test_what_could_be_secret_in_a_url_is_not_shown(url: str, shown: str) -> None:
    assert public_url(url) == shown


@pytest.mark.parametrize(
    ("name", "url", "address"),
    [
        ("x", "http://127.0.0.1:8000/v1/", "http://localhost:8000/v1"),
        ("x", "http://[::1]/v1", "http://localhost/v1"),
        ("x", "HTTP://LocalHost:1/", "http://localhost:1"),
        ("x", "https://Gateway.example/v1//", "https://gateway.example/v1"),
        ("x", "http://127.0.0.1.example/v1", "http://127.0.0.1.example/v1"),
        ("vllm/x", "http://127.0.0.1:8000/v1", "http://localhost:8000/v1"),
        ("anthropic/x", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/"),
    ],
)
def test_an_address_has_one_spelling(name: str, url: str, address: str) -> None:
    assert resolve(name, base_url=url, environment={}).address == address


@pytest.mark.parametrize(
    "url", ["http://me:hidden@host/v1", "http://hidden@host/v1", "http://host/v1?key=hidden"]
)
def test_a_base_url_with_a_secret_in_it_is_turned_down_without_showing_it(url: str) -> None:
    with pytest.raises(UserError, match="no user, password, query") as raised:
        resolve("gpt-4o", base_url=url, environment={})
    assert "http://host/v1" in str(raised.value)
    assert "hidden" not in str(raised.value)
    with pytest.raises(UserError) as raised:
        resolve("gpt-4o", base_url=url.replace("http", "htp"), environment={})
    assert "hidden" not in str(raised.value)


# -- families ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("together/meta-llama/Llama-3-70b-chat-hf", "Llama-3"),
        ("Meta-Llama-3.1-8B-Instruct", "Llama-3"),
        ("llama2-70b", "Llama-2"),
        ("gpt-3.5-turbo-0125", "GPT-3.5"),
        ("gpt-4o-mini", "GPT-4"),
        ("gpt-5.4-mini", "GPT"),
        ("o3-mini", "GPT"),
        ("anthropic/claude-3-opus-20240229", "Claude"),
        ("gemma-2-27b", "Gemini"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "Mistral"),
        ("Qwen1.5-72B-Chat", "Qwen"),
        ("deepseek-r1-distill-llama-8b", "DeepSeek"),
        ("solo-1", ""),
        ("my-own-model", ""),
        ("", ""),
    ],
)
def test_a_model_is_of_its_makers_family(model: str, family: str) -> None:
    assert family_of(model) == family


RATES = SHARED_DATA / "published_overall_rates.csv"


@pytest.mark.skipif(not RATES.exists(), reason="the shared data are not here")
def test_the_families_of_the_papers_models_are_the_papers() -> None:
    with RATES.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 32
    assert {row["model"]: family_of(row["model"]) for row in rows} == {
        row["model"]: row["family"] for row in rows
    }


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))))
def test_any_name_resolves_or_is_turned_down_in_one_line(name: str) -> None:
    family_of(name)
    try:
        model = resolve(name, environment={})
    except UserError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert model.provider in PROVIDERS
        assert model.id
