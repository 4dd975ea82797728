"""How an API itself says "refused": finish reasons, error codes, and the category it names.

Sources: openai/types/responses/response_error.py (OpenAI's codes) ·
platform.claude.com/docs/en/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals
(`stop_details.category`) · learn.microsoft.com/azure/ai-services/openai/concepts/content-filter
(filters that are `filtered`) · ai.google.dev/api/generate-content (`blockReason`, ratings that are
`blocked`) · openrouter.ai/docs (`flagged_input` and `reasons` in the metadata of an error).
An API's explanation is not read.
"""

import re
from collections.abc import Iterator
from typing import Any

# Finish reasons that mean refused, in small letters. Gemini's may follow "content_filter: ".
REFUSED_REASONS = {
    *("content_filter", "content_filtered", "guardrail_intervened"),  # OpenAI, Azure; Bedrock's two
    "refusal",  # Anthropic
    *("safety", "prohibited_content", "blocklist", "spii"),  # Gemini
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

# Where the categories are: objects that hold more, objects of filters, lists of ratings.
_DETAILS = ("innererror", "inner_error", "metadata", "prompt_feedback", "promptFeedback")
_FILTERS = ("content_filter_results", "content_filter_result")
_RATINGS = ("safety_ratings", "safetyRatings")
_BLOCK_REASONS = ("block_reason", "blockReason")


def api_refusal_signal(finish_reason: str) -> str:
    """`api:content_filter` and the like for a finish reason that means refused, else ""."""
    reason, _, detail = (finish_reason or "").strip().lower().partition(": ")
    if detail == COPYRIGHT_STOP:
        return ""
    return next((f"api:{name}" for name in (detail, reason) if name in REFUSED_REASONS), "")


def declares_policy(error: dict[str, Any]) -> bool:
    """Whether the error object of a body says that a content policy blocked the request."""
    inner = [error.get(name) for name in ("innererror", "inner_error")]
    codes = [error.get("code"), error.get("type")]
    codes += [one.get("code") for one in inner if isinstance(one, dict)]
    metadata = error.get("metadata")
    flagged = isinstance(metadata, dict) and "flagged_input" in metadata  # OpenRouter's moderation
    return flagged or any(isinstance(code, str) and code in POLICY_CODES for code in codes)


def category_in(place: object, finish_reason: str = "") -> str:
    """The categories named in an answer, a choice or an error object.

    In the API's spelling, sorted, separated by ", "; "" for none. Where nothing else names one,
    a finish reason of Gemini's does.
    """
    found = sorted({" ".join(name.split())[:100] for name in _categories(place)} - {""})
    reason = finish_reason.rpartition(": ")[2]
    if not found and reason.lower() in ("safety", "prohibited_content", "blocklist", "spii"):
        found = [reason]
    return ", ".join(found)


def _categories(place: object) -> Iterator[str]:
    if not isinstance(place, dict):
        return
    details, reasons = place.get("stop_details"), place.get("reasons")
    named = [place.get(name) for name in _BLOCK_REASONS]
    named += [details.get("category")] if isinstance(details, dict) else []
    named += reasons if isinstance(reasons, list) else []
    named += [code for code in _OPENAI_POLICIES if place.get("code") == code]
    for name in _FILTERS:
        filters = place.get(name)
        if isinstance(filters, dict):
            named += [key for key, one in filters.items() if _is(one, "filtered")]
    for name in _RATINGS:
        ratings = place.get(name)
        if isinstance(ratings, list):
            named += [one.get("category") for one in ratings if _is(one, "blocked")]
    yield from (name for name in named if isinstance(name, str))
    prompts = place.get("prompt_filter_results")
    inner = prompts if isinstance(prompts, list) else []
    for one in (*inner, *(place.get(name) for name in _DETAILS)):
        yield from _categories(one)


def _is(one: object, name: str) -> bool:
    return isinstance(one, dict) and one.get(name) is True
