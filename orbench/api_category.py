"""Which category an API gives for its own refusal, where it names one. Its explanation is not read.

Anthropic: `stop_details.category` (platform.claude.com/docs/en/test-and-evaluate/
strengthen-guardrails/handle-streaming-refusals). Azure: the filters of `content_filter_results`,
`prompt_filter_results` and, in an error, `content_filter_result` that are `filtered`
(learn.microsoft.com/azure/ai-services/openai/concepts/content-filter). Gemini: the prompt's
`blockReason` and the categories of `safetyRatings` that are `blocked` (ai.google.dev/api/
generate-content), in either spelling, or its finish reason. OpenRouter: the `reasons` in the
metadata of its errors. OpenAI: an error code that names a policy.
"""

from collections.abc import Iterator
from typing import Any

from orbench.terminal import one_line

FILTERS = ("content_filter_results", "content_filter_result")
RATINGS = ("safety_ratings", "safetyRatings")
FEEDBACK = ("prompt_feedback", "promptFeedback")
BLOCK_REASONS = ("block_reason", "blockReason")
DETAILS = ("stop_details", "innererror", "inner_error", "metadata", *FEEDBACK)
GEMINI_REASONS = ("safety", "prohibited_content", "blocklist", "spii")
POLICIES = ("bio_policy", "misalignment_policy_violation")  # openai/types/responses/response_error


def category_in(place: Any, finish_reason: str = "") -> str:
    """The categories in an answer, a choice or an error object: names as the API spells them, with
    commas; "" for none.
    """
    found = sorted({one_line(name) for name in _categories(place) if name})
    reason = finish_reason.rpartition(": ")[2]
    if not found and reason.lower() in GEMINI_REASONS:
        found = [reason]
    return ", ".join(found)


def _categories(place: Any) -> Iterator[str]:
    if not isinstance(place, dict):
        return
    details = place.get("stop_details")
    named = [details.get("category")] if isinstance(details, dict) else []
    named += [place.get(name) for name in BLOCK_REASONS]
    reasons = place.get("reasons")
    named += reasons if isinstance(reasons, list) else []
    named += [code for code in POLICIES if place.get("code") == code]
    yield from (name for name in named if isinstance(name, str))
    for name in FILTERS:
        filters = place.get(name)
        if isinstance(filters, dict):
            yield from (key for key, one in filters.items() if _is(one, "filtered"))
    for name in RATINGS:
        ratings = place.get(name)
        for one in ratings if isinstance(ratings, list) else ():
            if _is(one, "blocked"):
                yield str(one.get("category") or "")
    prompts = place.get("prompt_filter_results")
    for inner in [place.get(name) for name in DETAILS] + (
        prompts if isinstance(prompts, list) else []
    ):
        yield from _categories(inner)


def _is(one: object, name: str) -> bool:
    return isinstance(one, dict) and one.get(name) is True
