"""How an API itself says "refused": finish reasons, errors, marks, and the category it names.

What each provider sends stands in api.toml, with its sources. A phrase counts only in an error, so
that no text of a model can trigger it.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FINISH: dict[str, dict[str, str]] = _TABLES["finish"]  # meaning -> reason -> category
CUT_OFF = frozenset(FINISH["cut_off"])
# Statuses of an entry that names none: with a code, which is plain, and with a message alone.
CODE_STATUSES = (200, 400, 403, 409, 422, 424, 451, 500, 502, 503)
MESSAGE_STATUSES = (200, 400, 403, 422)

# Categories that are about the provider's terms (platform.claude.com, handling-stop-reasons):
# models that compete with its own, and its models' reasoning.
NOT_ABOUT_SAFETY = ("frontier_llm", "reasoning_extraction")

# Values of the field `refusal` that say nothing, in small letters.
NO_REFUSAL = ("", "none", "null")

# Where an error names its code, and what else of it is read.
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
)
# What gateways put in front of their provider's message.
WRAPPER = re.compile(
    r"^(?:(?:[\w.]*(?:Error|Exception)|Error from provider[^:]*|Provider returned error|"
    r"<\d+> [\w.]+|\d{3})\s*[:-]\s*)+",
    re.I,
)
MARKS = ("flagged_input", "reasons")  # names that are a code themselves


@lru_cache
def finish_meaning(finish_reason: str) -> str:
    """Return what a finish reason means: refused, fault, cut_off, answer; "" if unknown."""
    reason, detail = _reason_in(finish_reason)
    if detail == "recitation":  # Gemini's stop for copyright is no refusal
        return ""
    for name in (detail, reason):
        for meaning, reasons in FINISH.items():
            if name in reasons:
                return meaning
    return ""


def api_refusal_signal(finish_reason: str) -> str:
    """Return `api:content_filter` and the like for a finish reason that means refused, else ""."""
    if finish_meaning(finish_reason) != "refused":
        return ""
    reason, detail = _reason_in(finish_reason)
    return f"api:{detail if detail in FINISH['refused'] else reason}"


def _reason_in(finish_reason: str) -> tuple[str, str]:
    """Return a reason in small letters, and what may follow it, as in `content_filter: SAFETY`."""
    reason, _, detail = finish_reason.strip().lower().partition(": ")
    return reason, detail


def refusal_in_error(status: int, error: object, message: str) -> str | None:
    """Return the category of a refusal that an error is, "" if it names none; None if it is none.

    status: of the reply. message: what the server said.
    """
    codes = list[str]()
    texts = [message]
    with suppress(RecursionError):  # JSON in a text can be nested as deeply as the server likes
        codes += _codes_in(error)
        texts += _texts_in(error)
    for entry in _TABLES["errors"]:
        found = _found(entry, status, codes, texts)
        if found is not None:
            if not entry.get("refused", True):
                return None
            named = found.get("category") or ""
            return category_in(error) or named.lower() or str(entry.get("category", ""))
    return None


def _found(entry: Any, status: int, codes: list[str], texts: list[str]) -> dict[str, Any] | None:
    """Return the groups of an entry's patterns; None if it does not fit."""
    usual = CODE_STATUSES if "code" in entry else MESSAGE_STATUSES
    if status not in entry.get("status", usual):
        return None
    groups: dict[str, Any] = {}
    if "code" in entry:
        hits = [re.fullmatch(entry["code"], code) for code in codes]
        hit = next(filter(None, hits), None)
        if hit is None:
            return None
        groups |= hit.groupdict()
    if "message" in entry:
        hits = [re.search(entry["message"], text, re.I | re.S) for text in texts]
        hit = next(filter(None, hits), None)
        if hit is None:
            return None
        groups |= hit.groupdict()
    return groups


def _codes_in(place: object) -> Iterator[str]:
    """Yield the codes and types in an error, in small letters; a gateway passes JSON on as text."""
    place = _opened(place)
    for item in _list(place):
        yield from _codes_in(item)
    for name, value in _dict(place).items():
        if name in MARKS and value:
            yield name
        if name in CODE_NAMES:
            yield str(value).lower()
        elif name in PLACES:
            yield from _codes_in(value)


def _texts_in(place: object) -> Iterator[str]:
    """Yield what an error says, also where a gateway passes on its provider's error as text."""
    if isinstance(place, str):
        yield WRAPPER.sub("", place.strip())
    place = _opened(place)
    for item in _list(place):
        yield from _texts_in(item)
    for name in PLACES:
        if name in _dict(place):
            yield from _texts_in(_dict(place)[name])


def _opened(place: object) -> object:
    """Return the JSON in a text; anything else as it is."""
    if isinstance(place, str) and "{" in place:
        with suppress(ValueError, RecursionError):
            return json.loads(place[place.find("{") :])
    return place


def refusal_in_body(body: object, text: str) -> str | None:
    """Return the category of a refusal that a mark beside an answer declares, "" if it names none;
    None without such a mark. text: the answer's.
    """
    for mark in _TABLES["marks"]:
        path = mark["path"]
        if path[0] not in _dict(body) or (mark.get("empty") and text.strip()):
            continue
        wanted = mark.get("value")
        if any(_fits(value, wanted) for value in _at(body, path)):
            return category_in(body) or str(mark.get("category", ""))
    return None


def _at(place: object, path: list[str]) -> Iterator[object]:
    """Yield what stands at a path in a body."""
    if not path:
        yield place
        return
    name, *rest = path
    inner = _list(place) or list(_dict(place).values())
    if name != "*":
        inner = [_dict(place)[name]] if name in _dict(place) else []
    for value in inner:
        yield from _at(value, rest)


def _fits(value: object, wanted: object) -> bool:
    if wanted is None:
        return bool(value) and "unspecified" not in str(value).lower()
    if isinstance(wanted, dict):
        return wanted.items() <= _dict(value).items()
    return str(value).lower() == wanted


# -- categories ----------------------------------------------------------------------------------


def category_in(place: object, finish_reason: str = "") -> str:
    """Return the categories named in an answer, a choice or an error object, with commas.

    Without any it is that of the finish reason.
    """
    names = {" ".join(name.split())[:100] for name in _categories(place) if isinstance(name, str)}
    names.discard("")
    if names:
        return ", ".join(sorted(names))
    for name in reversed(_reason_in(finish_reason)):
        if name in FINISH["refused"]:
            return FINISH["refused"][name]
    return ""


def _categories(place: object) -> Iterator[object]:
    """Yield whatever stands where a category may stand."""
    about = _dict(place)
    yield about.get("block_reason")
    yield about.get("blockReason")
    yield _dict(about.get("stop_details")).get("category")
    yield from _list(about.get("reasons"))
    for name in ("content_filter_results", "content_filter_result"):
        for category, verdict in _dict(about.get(name)).items():
            if _dict(verdict).get("filtered") is True:
                yield category
    for name in ("safety_ratings", "safetyRatings"):
        for rating in map(_dict, _list(about.get(name))):
            if rating.get("blocked") is True:
                yield rating.get("category")
    for name in PLACES:
        if name in about:
            yield from _categories(about[name])
    for name in ("prompt_filter_results", "content_filters"):
        for item in _list(about.get(name)):
            yield from _categories(item)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
