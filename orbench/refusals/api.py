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
COPYRIGHT_STOP = "recitation"  # Gemini's; not a refusal

# Values of the field `refusal` that say nothing, in small letters.
NO_REFUSAL = ("", "none", "null")

_OPENAI_POLICIES = ("bio_policy", "misalignment_policy_violation")
POLICY_CODES = {
    "content_filter",
    "content_policy_violation",
    "ResponsibleAIPolicyViolation",  # Azure
    "moderation_blocked",
    "data_inspection_failed",  # Qwen at DashScope
    *_OPENAI_POLICIES,
}
# The same for errors without such a code: DeepSeek, Anthropic, OpenAI, Azure, xAI.
POLICY_MESSAGE = re.compile(
    r"content exists risk|content filtering policy|violating our usage polic"
    r"|content management policy|content violates usage guidelines",
    re.IGNORECASE,
)


def api_refusal_signal(finish_reason: str) -> str:
    """`api:content_filter` and the like for a finish reason that means refused, else ""."""
    reason, _, detail = (finish_reason or "").strip().lower().partition(": ")
    if detail == COPYRIGHT_STOP:
        return ""
    return next((f"api:{name}" for name in (detail, reason) if name in REFUSED_REASONS), "")


def declares_policy(error: dict[str, Any]) -> bool:
    """Whether the error object of a body says that a content policy blocked the request."""
    inner = [error, error.get("innererror"), error.get("inner_error")]
    codes = [error.get("type"), *(one.get("code") for one in inner if isinstance(one, dict))]
    flagged = "flagged_input" in _dict(error.get("metadata"))  # OpenRouter's moderation
    return flagged or any(isinstance(code, str) and code in POLICY_CODES for code in codes)


def category_in(place: object, finish_reason: str = "") -> str:
    """The categories named in an answer, a choice or an error object, separated by ", "; else that
    of a finish reason of Gemini's.
    """
    names = (" ".join(name.split())[:100] for name in _categories(place) if isinstance(name, str))
    found = sorted({*names} - {""})
    reason = finish_reason.rpartition(": ")[2]
    return ", ".join(found) or (reason if reason.lower() in _GEMINI else "")


def _categories(place: object) -> Iterator[object]:
    """Whatever stands where a category may stand."""
    about = _dict(place)
    yield from (about.get("block_reason"), about.get("blockReason"))
    yield _dict(about.get("stop_details")).get("category")
    yield from _list(about.get("reasons"))
    yield from (code for code in _OPENAI_POLICIES if about.get("code") == code)
    for name in ("content_filter_results", "content_filter_result"):
        filters = _dict(about.get(name)).items()
        yield from (key for key, one in filters if _dict(one).get("filtered") is True)
    for name in ("safety_ratings", "safetyRatings"):
        ratings = map(_dict, _list(about.get(name)))
        yield from (one.get("category") for one in ratings if one.get("blocked") is True)
    for name in ("innererror", "inner_error", "metadata", "prompt_feedback", "promptFeedback"):
        yield from _categories(about[name]) if name in about else ()
    for one in _list(about.get("prompt_filter_results")):
        yield from _categories(one)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
