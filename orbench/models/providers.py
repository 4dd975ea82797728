"""Which server a model is on, which key it needs, which family it belongs to.

A model is named `provider/model-id`, by a bare id that shows the provider, or by an alias. The
environment can move a provider (`OPENAI_BASE_URL`) and an alias (`ORBENCH_MODEL_GPT4`). The tables
are in providers.toml.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from orbench.base.messages import FROM_FILE, UserError, did_you_mean
from orbench.base.toml_files import toml_beside
from orbench.base.words import Json, Texts, Values, Words

# The protocols, see orbench.models.requests.
CHAT = "chat"
COMPLETIONS = "completions"
RESPONSES = "responses"
MESSAGES_API = "messages"

# Addresses of this machine and of private networks (RFC 1918, RFC 4193).
LOCAL = re.compile(
    r"https?://(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[::1|\[f[cd])"
)


class Provider(NamedTuple):
    """A service, and how it is asked."""

    base_url: str
    key_variable: str = ""  # empty: no key needed
    concurrency: int = 64  # requests in flight unless --concurrency says otherwise
    many_at_once: bool = False  # are answered as fast as one, also by a user's own server
    key_needed: bool = True
    empty_is_refusal: bool = False  # an answer without a candidate is a block, not a fault
    batches: bool = False  # has a batch service that `orbench.asking.batch` speaks
    protocol: str = CHAT  # a key of PROTOCOLS
    extra_body: Mapping[str, Any] = {}  # in every body, unless --extra_body says otherwise
    renamed: Mapping[str, str] = {}  # parameters that have another name here
    begins: Words = ()  # how the bare ids of its models begin


_TABLES = toml_beside(__file__)
PROVIDERS = {name: Provider(**entry) for name, entry in _TABLES["providers"].items()}
ALIASES: Texts = _TABLES["aliases"]
OWN_FIELDS = set(_TABLES["own_fields"])
IN_PROCESS = ("scripted", "smollm2")  # part of the run itself: the name stands for an address
# Stages 1 and 2 without --model: Mixtral, as in the paper, if its provider's key is set, else this.
GENERATOR_ALIAS = "mixtral"
GENERATOR_FALLBACK = "openai/gpt-5.4-mini"

# OpenAI's models without a chat endpoint: in the openai package's ResponsesModel, not in ChatModel
# (openai/types/shared/).
ONLY_RESPONSES = re.compile(
    r"^(?:o\d|gpt-[\d.]+)-pro|codex|deep-research|computer-use|daybreak|rosalind|-cyber|astra"
)
# OpenAI's models whose chat endpoint rejects max_tokens.
OPENAI_REASONS = re.compile(r"^(?:o\d|gpt-[5-9])(?!.*chat)")
# Models that think before they answer by default: a limit made for answers would cut it off.
# Claude does from 5 on (platform.claude.com/docs/en/about-claude/models/whats-new-opus-5).
THINKS = re.compile(
    r"\bo[134](?:$|-)|gpt-[5-9](?!.*chat)|gpt-oss|claude-(?:[a-z]+-)?[5-9](?!\d)|claude-mythos|"
    r"gemini-(?:2\.5|[3-9])|deepseek-(?:r\d|reasoner|v[4-9])|qwq|qwen3(?!guard)(?!.*instruct)|"
    r"magistral|grok-(?:[4-9]|3-mini)|glm-(?:4\.[5-9]|[5-9])|minimax-m|phi-4.*reason|"
    r"kimi-k[3-9]|thinking|reasoning",
    re.IGNORECASE,
)


class Model(NamedTuple):
    """A model and the endpoint that serves it. It holds the name of the key's variable, no key."""

    asked: str  # as the user wrote it
    provider: str  # a key of PROVIDERS, or "custom" with --base_url
    id: str  # as the endpoint is told
    base_url: str
    key_variable: str  # empty: no key needed
    protocol: str = CHAT  # a key of PROTOCOLS

    @property
    def settings(self) -> Provider:
        """Return what is known about the provider; the defaults for a custom one."""
        return PROVIDERS.get(self.provider, Provider(self.base_url, self.key_variable))

    def named(self, values: Values) -> Json:
        """Return parameters under the names that they have at this endpoint."""
        names = self.settings.renamed
        if self.provider == "openai" and self.protocol == CHAT and OPENAI_REASONS.search(self.id):
            names = {"max_tokens": "max_completion_tokens"}
        return {names.get(name, name): value for name, value in values.items()}

    @property
    def address(self) -> str:
        """Return the endpoint in one spelling, for keys and records."""
        return self.base_url.rstrip("/").replace("://127.0.0.1", "://localhost")

    @property
    def moved_by(self) -> str:
        """Return `, by OPENAI_BASE_URL in .env` if a file moved the provider; "" otherwise."""
        variable = address_variable(self.provider)
        if variable in FROM_FILE and self.base_url == os.environ.get(variable):
            return f", by {variable} in {FROM_FILE[variable]}"
        return ""

    @property
    def key_needed(self) -> bool:
        """Return whether to stop without a key: not at the user's own address with no own key."""
        provider = PROVIDERS.get(self.provider, PROVIDERS["openai"])
        own_key = self.key_variable != provider.key_variable
        return provider.key_needed and (own_key or self.base_url == provider.base_url)

    @property
    def family(self) -> str:
        """See `family_of`."""
        return family_of(self.id)


Models = Sequence[Model]


def resolve(
    name: str, *, base_url: str = "", key_variable: str = "", own_server: str = "OPENAI_BASE_URL"
) -> Model:
    """Return a model with its endpoint; base_url, key_variable: any other one. Raises UserError.

    own_server: what sets the address of a server of one's own, for the message.
    """
    if not name.strip() or name.endswith("/"):
        raise UserError(f"{name!r} names no model; write provider/model-id")
    target = os.environ.get(alias_variable(name), "") or ALIASES.get(name, name)
    provider, slash, id_ = target.partition("/")
    if not slash or provider not in PROVIDERS:
        id_ = target
        provider = "custom" if base_url else _provider_of(target, own_server)
    default = PROVIDERS.get(provider, PROVIDERS["openai"])
    protocol = default.protocol
    if base_url:
        protocol = CHAT
    elif provider == "openai" and ONLY_RESPONSES.search(id_):
        protocol = RESPONSES
    url = base_url or os.environ.get(address_variable(provider)) or default.base_url
    key_variable = key_variable or default.key_variable
    return Model(name, provider, id_, _checked(url), key_variable, protocol)


def generator() -> str:
    """Return the model of stages 1 and 2 if none is given."""
    if os.environ.get(alias_variable(GENERATOR_ALIAS)):
        return GENERATOR_ALIAS
    target = ALIASES[GENERATOR_ALIAS]
    if os.environ.get(resolve(target).key_variable):
        return target
    return GENERATOR_FALLBACK


def family_of(model: str) -> str:
    """Return `Llama-3` for `together/meta-llama/Llama-3-70b-chat-hf`; "" if unknown."""
    for family, pattern in _TABLES["families"].items():
        if re.search(pattern, model, re.IGNORECASE):
            return str(family)
    return ""


def alias_variable(alias: str) -> str:
    """Return the environment variable that moves an alias: ORBENCH_MODEL_GEMINI_1_5."""
    return "ORBENCH_MODEL_" + re.sub(r"[^A-Z0-9]", "_", alias.upper())


def address_variable(provider: str) -> str:
    """Return the environment variable that moves a provider: OPENAI_BASE_URL."""
    return f"{provider.upper()}_BASE_URL"


def _checked(url: str) -> str:
    """Return the base URL. Raises UserError for anything that is none."""
    if url in IN_PROCESS or re.fullmatch(r"https?://[\w.:\[\]-]+(?:/[^\s?#@]*)?", url):
        return url
    shown = url.rpartition("@")[2].partition("?")[0]  # what could be secret stays unseen
    example = "http://localhost:8000/v1 (a key belongs in the environment, see --api_key_env)"
    raise UserError(f"{shown!r} is not a base URL such as {example}")


def _provider_of(id_: str, own_server: str) -> str:
    """Return the provider of a bare model id. Raises UserError if the id does not show it."""
    if id_ in IN_PROCESS:
        return id_
    for name, provider in PROVIDERS.items():
        if id_.lower().startswith(tuple(provider.begins)):
            return str(name)
    if os.environ.get("OPENAI_BASE_URL"):
        return "openai"  # the user's own server: it knows the names of its models
    rest = id_.partition("/")[2]
    known = [f"{provider}/{rest}" for provider in PROVIDERS] if rest else [*ALIASES, *IN_PROCESS]
    names = f"write provider/{id_} (providers: {', '.join(PROVIDERS)})"
    server = f"for your own server set {own_server}"
    raise UserError(f"unknown provider for {id_!r}; {names}; {server}{did_you_mean(id_, known)}")
