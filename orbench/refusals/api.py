"""How an API itself says "refused": finish reasons, errors, marks, who refused, and the category.

What each provider sends stands in api.toml, with its sources. A phrase counts only in an error, so
that no text of a model can trigger it.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from orbench.base.toml_files import toml_beside
from orbench.base.words import API_SIGNAL, Json, Texts

_TABLES = toml_beside(__file__)
FINISH: dict[str, Texts] = _TABLES["finish"]  # meaning -> reason -> category
NOT_WHOLE = (
    "cut_off",
    "context_full",
    "stopped",
)  # meanings, of an answer that ended before its end
REFUSED = ("model_api", "filter", "gateway")  # meanings that are refusals, called by who refused
# Statuses of an entry that names none: with a code, which is plain, and with a message alone.
CODE_STATUSES = (200, 400, 403, 409, 422, 424, 451, 500, 502, 503)
MESSAGE_STATUSES = (200, 400, 403, 422)

# Categories that are about the provider's terms (platform.claude.com, handling-stop-reasons):
# models that compete with its own, and its models' reasoning.
NOT_ABOUT_SAFETY = ("frontier_llm", "reasoning_extraction")

CALLED = "called_tools"  # a finish reason of our own: the model called tools that it was offered

FALLBACK = "fallback:"  # in front of the id of a model that the API itself asked instead

Declared = tuple[str, str]  # a refusal by an error or a mark: finish reason, category

# Values of the field `refusal` that say nothing, in small letters.
NO_REFUSAL = ("", "none", "null")

CODE_NAMES = (
    "code",
    "type",
    "error_type",
    "error_code",
    "refusal_reason",
    "finishReason",
    "action",
    "status",
)
PLACES = (
    "error",
    "metadata",
    "raw",
    "message",
    "provider_specific_fields",
    "innererror",
    "inner_error",
    "prompt_feedback",
    "promptFeedback",
    "prompt_filter_results",
    "content_filters",
)
# What gateways put in front of their provider's message.
WRAPPER = re.compile(
    r"^(?:(?:[\w.]*(?:Error|Exception)|Error from provider[^:]*|Provider returned error|"
    r"<\d+> [\w.]+|\d{3})\s*[:-]\s*)+",
    re.I,
)
MARKS = ("flagged_input", "reasons")  # names that are a code themselves


def api_refusal_signal(finish_reason: str) -> str:
    """Return `api:content_filter` and the like for a finish reason that means refused, else ""."""
    meaning, name = finish_meaning(finish_reason)
    if meaning not in REFUSED:
        return ""
    return f"{API_SIGNAL}{name}"


def refused_by(signal: str) -> str:
    """Return who refused by an API's signal: one of REFUSED; `model`, in words, without one."""
    if not signal.startswith(API_SIGNAL):
        return "model"
    return finish_meaning(signal.removeprefix(API_SIGNAL))[0]


@lru_cache
def finish_meaning(finish_reason: str) -> tuple[str, str]:
    """Return what a finish reason means, a key of FINISH ("" if unknown), and by which name, in
    `content_filter: SAFETY` the second one.
    """
    both = finish_reason.strip().lower()
    reason, _, detail = both.partition(": ")
    for name in (both, detail or both, reason):
        for meaning, reasons in FINISH.items():
            if name in reasons:
                return meaning, name
    return "", ""


def refusal_in_error(status: int, error: object, message: str) -> Declared | None:
    """Return the finish reason and category of a refusal that an error is; None if it is none.

    status: of the reply. message: what the server said.
    """
    entry = entry_of(_TABLES["errors"], status, error, message)
    if not entry.get("refused", bool(entry)):
        return None
    reason = entry.get("finish", "content_filter")
    return reason, entry["category"] or category_in(error, reason)


def entry_of(entries: list[Json], status: int, error: object, message: str) -> Json:
    """Return the first of the entries that fits an error, with its `category`; else {}.

    entries: of the form of [[errors]] in api.toml.
    """
    codes = [""]  # an entry without a code fits any
    texts = [message]
    for part in _parts(error):
        if isinstance(part, str):
            texts.append(WRAPPER.sub("", part.strip()))
        for name, value in _members(part).items():
            if name in MARKS and value:
                codes.append(name)
            elif name in CODE_NAMES:
                codes.append(str(value).lower())
    for entry in entries:
        category = _category_by(entry, status, codes, texts)
        if category is not None:
            return {**entry, "category": category}
    return {}


def _category_by(entry: Any, status: int, codes: list[str], texts: list[str]) -> str | None:
    """Return the category of an error by an entry, "" if it names none; None if it does not fit."""
    usual = CODE_STATUSES if "code" in entry else MESSAGE_STATUSES
    if status not in entry.get("status", usual):
        return None
    category = ""
    code = rf"\A(?:{entry.get('code', '.*')})\Z"
    for pattern, places in ((code, codes), (entry.get("message", ""), texts)):
        matches = (re.search(pattern, place, re.I | re.S) for place in places)
        match = next(filter(None, matches), None)
        if match is None:
            return None
        category = match.groupdict().get("category") or category
    return category.lower()


def _parts(place: object) -> list[object]:
    """Return an error or an answer, and what is read of it: in lists, at PLACES, and in the JSON
    that a gateway passes on as text.
    """
    parts = [place]
    for part in parts:  # which grows
        if isinstance(part, str) and "{" in part:
            with suppress(ValueError, RecursionError):  # it can be nested as deeply as one likes
                parts.append(json.loads(part[part.find("{") :]))
        for name, value in _members(part).items():
            if isinstance(part, list) or name in PLACES:
                parts.append(value)
    return parts


def refusal_in_body(body: object, text: str) -> Declared | None:
    """Return the finish reason and category of a refusal that a mark beside an answer declares;
    None without such a mark. text: the answer's.
    """
    for mark in _TABLES["marks"]:
        if mark.get("empty") and text.strip():
            continue
        for value in at(body, mark["path"]):
            if re.fullmatch(mark["value"], str(value).lower()):
                reason = mark.get("finish", "content_filter")
                return reason, category_in(body, reason)
    return None


def fallback_mark(body: object) -> str:
    """Return FALLBACK if an answer says that another model was asked in place of the one named."""
    if any(at(body, path) for path in _TABLES["fallbacks"]):
        return FALLBACK
    return ""


def at(body: object, path: list[Any]) -> list[object]:
    """Return what stands at a path in a body, see [[marks]] in api.toml."""
    places = [body]
    for step in path:
        inner: list[object] = []
        for place in places:
            there = _members(place)
            if step == "*":
                inner += there.values()
            elif isinstance(step, dict):
                if step.items() <= there.items():
                    inner.append(place)
            elif step in there:
                inner.append(there[step])
        places = inner
    return places


# -- categories ----------------------------------------------------------------------------------


def category_in(place: object, finish_reason: str = "") -> str:
    """Return the categories named in an answer, a choice or an error object, with commas.

    Without any it is that of the finish reason.
    """
    names = set()
    for part in _parts(place):
        for name in _categories(part):
            if isinstance(name, str) and name.strip():
                names.add(" ".join(name.split())[:100])
    if names:
        return ", ".join(sorted(names))
    meaning, name = finish_meaning(finish_reason)
    return FINISH.get(meaning, {}).get(name, "")


def _categories(about: object) -> Iterator[object]:
    """Yield whatever stands where a category may stand."""
    for path in _TABLES["categories"]:
        yield from at(about, path)
    for name in ("content_filter_results", "content_filter_result"):
        for results in at(about, [name]):
            for category, verdict in _members(results).items():
                if _members(verdict).get("filtered") is True:
                    yield category


def _members(value: object) -> dict[Any, Any]:
    """Return the members of an object by name, those of a list by number."""
    if isinstance(value, list):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else {}
