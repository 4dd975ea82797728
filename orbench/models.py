"""Which server a model is on, which key it needs, which family it is of: tables and their readers.

A model is named `provider/model-id`, or by a bare id whose provider is plain from its name, or by
an alias. Models are retired all the time, so everything here is data: a provider's address can be
set in the environment (`OPENAI_BASE_URL`, `TOGETHER_BASE_URL`, ...), and so can an alias
(`ORBENCH_MODEL_GPT4=provider/model-id`).
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from orbench.protocols import CHAT, MESSAGES, RESPONSES
from orbench.terminal import UserError, did_you_mean


class Provider(NamedTuple):
    """A service, and how it is asked."""

    base_url: str
    key_variable: str  # empty: no key needed
    concurrency: int = 64  # requests in flight unless --concurrency says otherwise
    key_needed: bool = True
    empty_is_refusal: bool = False  # an answer without a candidate is a block, not a fault
    batches: bool = False  # has a batch service that `orbench.batch` speaks
    protocol: str = CHAT  # a key of PROTOCOLS
    extra_body: Mapping[str, Any] = {}  # in every body, unless --extra_body says otherwise


# Which have a batch service, by their documentation. As OpenAI's client speaks it: openai
# platform.openai.com/docs/guides/batch; groq console.groq.com/docs/batch (same lines, same
# endpoints). In ways of their own (`orbench.batch.service_of`): anthropic, mistral. Not: together,
# whose upload has the purpose "batch-api" and whose batch is wrapped in "job", with statuses in
# capitals (docs.together.ai/reference/batch-create); gemini, which makes batches through the openai
# client, but up- and downloads only through its own (ai.google.dev/gemini-api/docs/openai); vllm,
# whose server has neither endpoint (`vllm run-batch` reads files: --export_requests).
PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", batches=True),
    "anthropic": Provider(
        "https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY", batches=True, protocol=MESSAGES
    ),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        "GEMINI_API_KEY",
        empty_is_refusal=True,
    ),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY", batches=True),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    # Without require_parameters it drops what a provider does not take, and says nothing
    # (openrouter.ai/docs/features/provider-routing).
    "openrouter": Provider(
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        extra_body={"provider": {"require_parameters": True}},
    ),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY", batches=True),
    "deepseek": Provider("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    # Local servers queue what they cannot work on at once; a long queue only runs into the timeout.
    "ollama": Provider(
        "http://localhost:11434/v1", "OLLAMA_API_KEY", concurrency=4, key_needed=False
    ),
    "vllm": Provider("http://localhost:8000/v1", "VLLM_API_KEY", key_needed=False),
    "scripted": Provider("scripted", ""),  # orbench/scripted.py, offline
    "smollm2": Provider("smollm2", "", concurrency=8),  # orbench/local.py, offline
}
# Served by the run itself (orbench/local.py): the name stands in a request's key for the address,
# whose port differs from run to run.
IN_PROCESS = ("scripted", "smollm2")

# The beginning of a bare model id -> its provider.
PROVIDER_OF_NAME = {
    "gpt-": "openai",
    "chatgpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude-": "anthropic",
    "gemini-": "gemini",
    "mistral-": "mistral",
    "open-mistral-": "mistral",
    "open-mixtral-": "mistral",
    "ministral-": "mistral",
    "magistral-": "mistral",
    "deepseek-": "deepseek",
    "meta-llama/": "together",
}

# OpenAI's models without a chat endpoint: those that the openai package names in ResponsesModel and
# not in ChatModel (openai/types/shared/), and their kind.
ONLY_RESPONSES = re.compile(
    r"^(?:o\d|gpt-[\d.]+)-pro|codex|deep-research|computer-use|daybreak|rosalind|-cyber|astra"
)
# Models that may think before they answer without being told to: their thinking counts as output,
# and a limit made for answers would cut it off. Claude does from 5 on (platform.claude.com/docs/en/
# about-claude/models/whats-new-opus-5).
THINKS = re.compile(
    r"\bo[134](?:$|-)|gpt-[5-9](?!.*chat)|gpt-oss|claude-(?:[a-z]+-)?[5-9](?!\d)|claude-mythos|"
    r"gemini-(?:2\.5|[3-9])|deepseek-(?:r\d|reasoner|v[4-9])|qwq|qwen3(?!guard)(?!.*instruct)|"
    r"magistral|grok-(?:[4-9]|3-mini)|glm-(?:4\.[5-9]|[5-9])|minimax-m|phi-4.*reason|"
    r"kimi-k[3-9]|thinking|reasoning",
    re.IGNORECASE,
)
# Behind a model's id: the day or number of a version, or a word for the newest one.
VERSION = re.compile(r"[-@:](?:\d{3,8}|\d{4}-\d\d-\d\d|\d\d-\d{4}|latest|free)")

# Alias -> where it is served. The judges are the paper's pinned ones (section 3); their makers
# retire models, so an alias can be pointed elsewhere.
ALIASES = {
    "gpt4": "openai/gpt-4-turbo-2024-04-09",
    "llama3": "together/meta-llama/Llama-3-70b-chat-hf",
    "gemini-1.5": "gemini/gemini-1.5-pro",
    "mixtral": "openrouter/mistralai/mixtral-8x7b-instruct",
}

# Stages 1 and 2 without --model: Mixtral as in the paper where its provider's key is set, else
# this.
GENERATOR_ALIAS = "mixtral"
GENERATOR_FALLBACK = "openai/gpt-5.4-mini"

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999"


class Family(NamedTuple):
    """A family of models: how it is told from a model id, and how it is drawn."""

    name: str
    pattern: str
    colour: str
    marker: str  # matplotlib's


# The first hit wins. Fine-tunes carry several names (`deepseek-r1-distill-llama-8b`); the maker of
# the fine-tune comes first. Gemma counts as Gemini, as in the paper's tables.
FAMILIES = (
    Family("DeepSeek", r"deepseek", BLUE, "*"),
    Family("GPT-3.5", r"gpt-3\.5", GREEN, "^"),
    Family("GPT-4", r"gpt-4|gpt4|chatgpt-4o", BLACK, "v"),
    Family("GPT", r"gpt-\d|\bo[134]\b|\bo[134]-|chatgpt", GREEN, "<"),
    Family("Claude", r"claude", VERMILION, "o"),
    Family("Gemini", r"gemini|gemma", BLUE, "s"),
    Family("Llama-2", r"llama-?2", ORANGE, "D"),
    Family("Llama-3", r"llama-?3", PURPLE, "P"),
    Family("Llama", r"llama", ORANGE, "d"),
    Family("Mistral", r"mistral|mixtral|ministral|magistral|codestral", SKY, "X"),
    Family("Qwen", r"qwen|qwq", YELLOW, "h"),
    Family("Grok", r"grok", BLACK, ">"),
    Family("Phi", r"\bphi-?\d", SKY, "p"),
    Family("Command", r"command-|c4ai|cohere", VERMILION, "8"),
    Family("Kimi", r"kimi|moonshot", PURPLE, "H"),
    Family("GLM", r"\bglm", ORANGE, "s"),
    Family("SmolLM", r"smollm", GREEN, "d"),
    Family("scripted", r"scripted", GREY, "s"),
)
OTHER_FAMILY = Family("other", "", GREY, "o")


class Model(NamedTuple):
    """A model and the endpoint that serves it. Holds the name of the key's variable, never the
    key.
    """

    asked: str  # as the user wrote it
    provider: str  # a key of PROVIDERS, or "custom" with --base_url
    id: str  # as the endpoint is told
    base_url: str
    key_variable: str  # empty: no key needed
    protocol: str = CHAT  # a key of PROTOCOLS

    @property
    def endpoint(self) -> str:
        """The base URL without what could be secret (user, password, query): for keys and
        records.
        """
        return public_url(self.base_url)

    @property
    def address(self) -> str:
        """The endpoint in one spelling, for a request's key; a provider's as the table has it."""
        address, known = address_of(self.endpoint), PROVIDERS.get(self.provider)
        return known.base_url if known and address_of(known.base_url) == address else address

    @property
    def key_needed(self) -> bool:
        """Whether it is no use asking without a key: a server on this machine or in its network
        wants one only where the user named a variable for it.
        """
        provider = PROVIDERS.get(self.provider, PROVIDERS["openai"])
        named = self.key_variable != provider.key_variable
        return provider.key_needed and (named or not _is_local(self.address))

    @property
    def settings(self) -> Provider:
        """What is known about the provider; the defaults for a custom one."""
        return PROVIDERS.get(self.provider, Provider(self.base_url, self.key_variable))

    @property
    def family(self) -> str:
        """The model's family, see `family_of`."""
        return family_of(self.id)

    @property
    def thinks(self) -> bool:
        """Whether it may think before it answers without being told to."""
        return bool(THINKS.search(self.id))

    @property
    def in_process(self) -> bool:
        """Whether the run itself serves it."""
        return self.base_url in IN_PROCESS

    @property
    def scripted(self) -> bool:
        """Whether this is the offline stand-in, whose answers measure nothing."""
        return self.provider == "scripted"


def resolve(
    name: str,
    *,
    base_url: str = "",
    key_variable: str = "",
    protocol: str = "",
    environment: Mapping[str, str] | None = None,
) -> Model:
    """Find the endpoint of a model.

    base_url, key_variable: any other endpoint; the id goes to it as it is, but for the name of a
    provider in front. protocol: how it is asked; by default as its provider is, and any other
    endpoint in a chat.
    Raises UserError for a name whose provider is not plain.
    """
    environment = os.environ if environment is None else environment
    if not name.strip() or name.endswith("/"):
        raise UserError(f"{name!r} names no model; write provider/model-id")
    target = environment.get(alias_variable(name), "") or ALIASES.get(name, name)
    if base_url:
        provider, slash, rest = target.partition("/")
        known = provider if slash and provider in PROVIDERS else "custom"
        id_ = rest if known != "custom" else target
        default_key = PROVIDERS.get(known, PROVIDERS["openai"]).key_variable
        key_variable = key_variable or default_key
        return Model(name, known, id_, _checked(base_url), key_variable, protocol or CHAT)
    provider, slash, id_ = target.partition("/")
    if not slash or provider not in PROVIDERS:
        provider, id_ = _provider_of(target, environment), target
    default = PROVIDERS[provider]
    url = environment.get(f"{provider.upper()}_BASE_URL", "") or default.base_url
    only_responses = provider == "openai" and ONLY_RESPONSES.search(id_)
    protocol = protocol or (RESPONSES if only_responses else default.protocol)
    return Model(name, provider, id_, _checked(url), key_variable or default.key_variable, protocol)


def generator(environment: Mapping[str, str] | None = None) -> str:
    """The model of stages 1 and 2 when none is given."""
    environment = os.environ if environment is None else environment
    if environment.get(alias_variable(GENERATOR_ALIAS)):
        return GENERATOR_ALIAS
    target = ALIASES[GENERATOR_ALIAS]
    served = environment.get(PROVIDERS[target.split("/")[0]].key_variable)
    return target if served else GENERATOR_FALLBACK


def family_of(model: str) -> str:
    """The family of a model id, `Llama-3` for `together/meta-llama/Llama-3-70b-chat-hf`; "" if
    unknown.
    """
    for family in FAMILIES:
        if re.search(family.pattern, model, re.IGNORECASE):
            return family.name
    return ""


def is_same_model(asked: str, returned: str) -> bool:
    """Whether an answer's model id names the model that was asked, perhaps by its version: `gpt-4o`
    and `gpt-4o-2024-08-06`, not `gpt-4o-mini` nor another day's. True where none was returned.
    """
    one, other = (name.lower().rpartition("/")[2] for name in (asked, returned))
    one, other = sorted((one.removesuffix("-latest"), other.removesuffix("-latest")), key=len)
    rest = other.removeprefix(one)
    return (
        asked in IN_PROCESS
        or not one
        or rest == ""
        or (rest != other and bool(VERSION.fullmatch(rest)))
    )


def alias_variable(alias: str) -> str:
    """The environment variable that points an alias elsewhere: ORBENCH_MODEL_GEMINI_1_5."""
    return "ORBENCH_MODEL_" + re.sub(r"[^A-Z0-9]", "_", alias.upper())


@cache
def public_url(url: str) -> str:
    """A URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")) or url


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_private
    except ValueError:  # a name
        return False


@cache
def address_of(url: str) -> str:
    """A base URL in one spelling: no slash at the end, `localhost` for this machine's numbers."""
    parts = urlsplit(url)
    numbers = re.match(r"(?:127\.0\.0\.1|\[::1\]|localhost)(?=:|$)", parts.netloc, re.I)
    host = "localhost" + parts.netloc[numbers.end() :] if numbers else parts.netloc.lower()
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")) or url


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")  # ValueError for a name that no host can have
        whole = parts.scheme in ("http", "https") and host and parts.port != 0  # port: likewise
        fine = url in IN_PROCESS or (whole and url.isprintable() and " " not in url)
        more = "@" in parts.netloc or bool(parts.query or parts.fragment)
    except ValueError:
        fine = more = False
    if fine and more:  # the openai package can use none of them
        raise UserError(
            f"a base URL takes no user, password, query or fragment: {public_url(url)} alone; a "
            "key belongs in the environment (--api_key_env)"
        )
    if not fine:
        shown = url.rpartition("@")[2].partition("?")[0]  # a secret stays unseen here too
        raise UserError(f"{shown!r} is no base URL; it looks like http://localhost:8000/v1")
    return url


def _provider_of(id_: str, environment: Mapping[str, str]) -> str:
    if id_ in IN_PROCESS:
        return id_
    for beginning, provider in PROVIDER_OF_NAME.items():
        if id_.lower().startswith(beginning):
            return provider
    if environment.get("OPENAI_BASE_URL"):
        return "openai"  # the user's own server: it knows the names of its models
    rest = id_.partition("/")[2]
    meant = did_you_mean(id_, [f"{provider}/{rest}" for provider in PROVIDERS] if rest else ALIASES)
    raise UserError(
        f"which provider serves {id_!r}? Write provider/{id_} (providers: "
        f"{', '.join(PROVIDERS)}); for a server of your own give its address with --base_url or "
        f"set OPENAI_BASE_URL{meant}"
    )
