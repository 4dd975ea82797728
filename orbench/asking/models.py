"""Which server a model is on, which key it needs, which family it belongs to: tables and readers.

A model is named `provider/model-id`, by a bare id that shows the provider, or by an alias. The
environment can move a provider (`OPENAI_BASE_URL`) and an alias (`ORBENCH_MODEL_GPT4`).
"""

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from orbench.asking.protocols import CHAT, MESSAGES_API, RESPONSES
from orbench.base.messages import UserError, did_you_mean


class Provider(NamedTuple):
    """A service, and how it is asked."""

    base_url: str
    key_variable: str  # empty: no key needed
    concurrency: int = 64  # requests in flight unless --concurrency says otherwise
    key_needed: bool = True
    empty_is_refusal: bool = False  # an answer without a candidate is a block, not a fault
    batches: bool = False  # has a batch service that `orbench.asking.batch` speaks
    protocol: str = CHAT  # a key of PROTOCOLS
    extra_body: Mapping[str, Any] = {}  # in every body, unless --extra_body says otherwise
    renamed: Mapping[str, str] = {}  # parameters that have another name here


GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"
PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", batches=True),
    "anthropic": Provider(
        "https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY", batches=True, protocol=MESSAGES_API
    ),
    "gemini": Provider(GEMINI, "GEMINI_API_KEY", empty_is_refusal=True),
    "mistral": Provider(
        "https://api.mistral.ai/v1", "MISTRAL_API_KEY", renamed={"seed": "random_seed"}
    ),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    # Without require_parameters it silently drops what a provider does not take
    # (openrouter.ai/docs/features/provider-routing).
    "openrouter": Provider(
        *("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        extra_body={"provider": {"require_parameters": True}},
    ),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    # Local servers queue what exceeds their slots; a long queue only runs into the timeout.
    "ollama": Provider("http://localhost:11434/v1", "OLLAMA_API_KEY", 4, key_needed=False),
    "vllm": Provider("http://localhost:8000/v1", "VLLM_API_KEY", key_needed=False),
    "scripted": Provider("scripted", ""),  # orbench/asking/scripted.py, offline
    "smollm2": Provider("smollm2", "", 8),  # orbench/asking/local.py, offline
}
# Part of the run itself: the name stands for an address.
IN_PROCESS = ("scripted", "smollm2")

# How bare model ids begin -> their provider.
PROVIDER_OF_NAME = {
    ("gpt-", "chatgpt-", "o1", "o3", "o4"): "openai",
    ("claude-",): "anthropic",
    ("gemini-",): "gemini",
    ("mistral-", "open-mistral-", "open-mixtral-", "ministral-", "magistral-"): "mistral",
    ("deepseek-",): "deepseek",
    ("meta-llama/",): "together",
}
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
# Behind a model's id: the date or number of a version, or a word for the newest one.
DATED = re.compile(r"[-@:](?:\d{3,8}|\d{4}-\d\d-\d\d|\d\d-\d{4}|latest|free)")

# Alias -> where it is served. The first three are the paper's judges (section 3).
ALIASES = {
    "gpt4": "openai/gpt-4-turbo-2024-04-09",
    "llama3": "together/meta-llama/Llama-3-70b-chat-hf",
    "gemini-1.5": "gemini/gemini-1.5-pro",
    "mixtral": "openrouter/mistralai/mixtral-8x7b-instruct",
}
# Stages 1 and 2 without --model: Mixtral, as in the paper, if its provider's key is set, else this.
GENERATOR_ALIAS = "mixtral"
GENERATOR_FALLBACK = "openai/gpt-5.4-mini"

# Family -> pattern in a model id; the first hit wins. Fine-tunes carry several names
# (`deepseek-r1-distill-llama-8b`), and the maker of the fine-tune comes first. Gemma counts as
# Gemini, as in the paper's tables.
FAMILIES = {
    "DeepSeek": r"deepseek",
    "GPT-3.5": r"gpt-3\.5",
    "GPT-4": r"gpt-4|gpt4|chatgpt-4o",
    "GPT": r"gpt-\d|\bo[134]\b|\bo[134]-|chatgpt",
    "Claude": r"claude",
    "Gemini": r"gemini|gemma",
    "Llama-2": r"llama-?2",
    "Llama-3": r"llama-?3",
    "Llama": r"llama",
    "Mistral": r"mistral|mixtral|ministral|magistral|codestral",
    "Qwen": r"qwen|qwq",
    "Grok": r"grok",
    "Phi": r"\bphi-?\d",
    "Command": r"command-|c4ai|cohere",
    "Kimi": r"kimi|moonshot",
    "GLM": r"\bglm",
    "SmolLM": r"smollm",
    "scripted": r"scripted",
}


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
        """What is known about the provider; the defaults for a custom one."""
        return PROVIDERS.get(self.provider, Provider(self.base_url, self.key_variable))

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters under the names that they have at this endpoint."""
        names = self.settings.renamed
        reasons = self.protocol == CHAT and OPENAI_REASONS.search(self.id)
        if self.provider == "openai" and reasons:
            names = {"max_tokens": "max_completion_tokens"}
        return {names.get(name, name): value for name, value in values.items()}

    @property
    def address(self) -> str:
        """The endpoint in one spelling, for keys and records."""
        return self.base_url.rstrip("/").replace("://127.0.0.1", "://localhost")

    @property
    def key_needed(self) -> bool:
        """Whether to stop without a key: not at the user's own address without its own key."""
        provider = PROVIDERS.get(self.provider, PROVIDERS["openai"])
        own_key = self.key_variable != provider.key_variable
        return provider.key_needed and (own_key or self.base_url == provider.base_url)

    @property
    def family(self) -> str:
        """See `family_of`."""
        return family_of(self.id)

    @property
    def scripted(self) -> bool:
        """Whether this is the offline scripted model, whose answers measure nothing."""
        return self.provider == "scripted"


def resolve(name: str, *, base_url: str = "", key_variable: str = "") -> Model:
    """Find the endpoint of a model; base_url, key_variable: any other one. Raises UserError."""
    if not name.strip() or name.endswith("/"):
        raise UserError(f"{name!r} names no model; write provider/model-id")
    target = os.environ.get(alias_variable(name), "") or ALIASES.get(name, name)
    provider, slash, id_ = target.partition("/")
    known = bool(slash) and provider in PROVIDERS
    if not known:
        provider = "custom" if base_url else _provider_of(target)
        id_ = target
    default = PROVIDERS.get(provider, PROVIDERS["openai"])
    url = base_url or os.environ.get(f"{provider.upper()}_BASE_URL", "") or default.base_url
    only_responses = provider == "openai" and ONLY_RESPONSES.search(id_)
    protocol = RESPONSES if only_responses else default.protocol
    if base_url:
        protocol = CHAT
    return Model(name, provider, id_, _checked(url), key_variable or default.key_variable, protocol)


def generator() -> str:
    """The model of stages 1 and 2 if none is given."""
    if os.environ.get(alias_variable(GENERATOR_ALIAS)):
        return GENERATOR_ALIAS
    target = ALIASES[GENERATOR_ALIAS]
    served = os.environ.get(PROVIDERS[target.split("/")[0]].key_variable)
    return target if served else GENERATOR_FALLBACK


def family_of(model: str) -> str:
    """`Llama-3` for `together/meta-llama/Llama-3-70b-chat-hf`; "" if unknown."""
    found = (name for name, one in FAMILIES.items() if re.search(one, model, re.IGNORECASE))
    return next(found, "")


def is_same_model(asked: str, returned: str) -> bool:
    """Whether a returned id, if any, is that asked or a version: `gpt-4o-2024-08-06`, not -mini."""
    one, other = (name.lower().rpartition("/")[2] for name in (asked, returned))
    one, other = sorted((one.removesuffix("-latest"), other.removesuffix("-latest")), key=len)
    rest = other.removeprefix(one)
    version = rest != other and DATED.fullmatch(rest)
    return asked in IN_PROCESS or not one or rest == "" or bool(version)


def alias_variable(alias: str) -> str:
    """The environment variable that moves an alias: ORBENCH_MODEL_GEMINI_1_5."""
    return "ORBENCH_MODEL_" + re.sub(r"[^A-Z0-9]", "_", alias.upper())


def _checked(url: str) -> str:
    """The base URL. Raises UserError for anything that is none."""
    if url in IN_PROCESS or re.fullmatch(r"https?://[\w.:\[\]-]+(?:/[^\s?#@]*)?", url):
        return url
    shown = url.rpartition("@")[2].partition("?")[0]  # what could be secret stays unseen
    example = "http://localhost:8000/v1 (a key belongs in the environment, see --api_key_env)"
    raise UserError(f"{shown!r} is not a base URL such as {example}")


def _provider_of(id_: str) -> str:
    if id_ in IN_PROCESS:
        return id_
    for beginnings, provider in PROVIDER_OF_NAME.items():
        if id_.lower().startswith(beginnings):
            return provider
    if os.environ.get("OPENAI_BASE_URL"):
        return "openai"  # the user's own server: it knows the names of its models
    rest = id_.partition("/")[2]
    meant = did_you_mean(id_, [f"{provider}/{rest}" for provider in PROVIDERS] if rest else ALIASES)
    own = "for your own server set --base_url or OPENAI_BASE_URL"
    names = f"provider/{id_} (providers: {', '.join(PROVIDERS)})"
    raise UserError(f"unknown provider for {id_!r}; write {names}; {own}{meant}")
