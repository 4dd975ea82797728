"""How an API itself says "refused": finish reasons, error codes, and the category it names.

Sources: openai/types/responses/response_error.py · Anthropic's handle-streaming-refusals
(`stop_details`) · Azure's concepts/content-filter · ai.google.dev/api/generate-content
(`blockReason`, ratings) · openrouter.ai/docs (`flagged_input`, `reasons`).
"""

import re
from collections.abc import Iterator
from typing import Any

# Finish reasons that mean refused, in small letters. Gemini's may follow "content_filter: ".
_GEMINI = ("safety", "prohibited_content", "blocklist", "spii")
REFUSED_REASONS = {
    "content_filter",
    "content_filtered",
    "guardrail_intervened",  # OpenAI, Azure; Bedrock's two
    "refusal",  # Anthropic
    *_GEMINI,
    "no_candidate",  # Gemini returned none; orbench's own word
}

# Values of the field `refusal` that say nothing, in small letters.
NO_REFUSAL = ("", "none", "null")

INNER_PLACES = ("metadata", "prompt_feedback", "promptFeedback")
INNER_ERRORS = ("innererror", "inner_error")
_OPENAI_POLICIES = ("bio_policy", "misalignment_policy_violation")
POLICY_CODES = (
    "content_filter",
    "content_policy_violation",
    "ResponsibleAIPolicyViolation",  # Azure
    "moderation_blocked",
    "data_inspection_failed",  # Qwen at DashScope
    *_OPENAI_POLICIES,
)
# The same for errors without such a code: DeepSeek, Anthropic, OpenAI, Azure, xAI.
POLICY_MESSAGE = re.compile(
    r"content exists risk|content filtering policy|violating our usage polic"
    r"|content management policy|content violates usage guidelines",
    re.IGNORECASE,
)


def api_refusal_signal(finish_reason: str) -> str:
    """Return `api:content_filter` and the like for a finish reason that means refused, else ""."""
    reason, _, detail = finish_reason.strip().lower().partition(": ")
    if detail == "recitation":  # Gemini's stop for copyright is no refusal
        return ""
    for name in (detail, reason):
        if name in REFUSED_REASONS:
            return f"api:{name}"
    return ""


def declares_policy(error: object) -> bool:
    """Return whether the error object of a body says that a content policy blocked the request."""
    about = _dict(error)
    codes = [about.get("type"), about.get("code")]
    codes += [_dict(about.get(name)).get("code") for name in INNER_ERRORS]
    flagged = "flagged_input" in _dict(about.get("metadata"))  # OpenRouter's moderation
    return flagged or any(code in POLICY_CODES for code in codes)


def category_in(place: object, finish_reason: str = "") -> str:
    """Return the categories named in an answer, a choice or an error object, with commas.

    Without any it is that of a finish reason of Gemini's.
    """
    names = {" ".join(name.split())[:100] for name in _categories(place) if isinstance(name, str)}
    names.discard("")
    reason = finish_reason.rpartition(": ")[2]
    if not names and reason.lower() in _GEMINI:
        return reason
    return ", ".join(sorted(names))


def _categories(place: object) -> Iterator[object]:
    """Yield whatever stands where a category may stand."""
    about = _dict(place)
    yield about.get("block_reason")
    yield about.get("blockReason")
    yield _dict(about.get("stop_details")).get("category")
    yield from _list(about.get("reasons"))
    if about.get("code") in _OPENAI_POLICIES:
        yield about["code"]
    for name in ("content_filter_results", "content_filter_result"):
        for category, verdict in _dict(about.get(name)).items():
            if _dict(verdict).get("filtered") is True:
                yield category
    for name in ("safety_ratings", "safetyRatings"):
        for rating in map(_dict, _list(about.get(name))):
            if rating.get("blocked") is True:
                yield rating.get("category")
    for name in (*INNER_ERRORS, *INNER_PLACES):
        if name in about:
            yield from _categories(about[name])
    for place in _list(about.get("prompt_filter_results")):
        yield from _categories(place)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
