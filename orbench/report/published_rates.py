"""The rates of the paper's 32 models: a table.

Source: the figures plotted by the OR-Bench authors (Cui et al., OR-Bench: An Over-Refusal Benchmark
for Large Language Models, ICML 2025, arXiv 2405.20947; their repository, commit 4fad1f9). Two
vintages: 25 of the models were scored on an earlier hard set and toxic set, the other 7 on today's
(1,319 and 655 prompts). Which is which follows from the figures, and is said nowhere else: all 25
of the first are whole numbers of 1,534 and of 681 prompts, as far as they are rounded, all 7 of
1,319 and of 655, and these 7 alone have one decimal. No interval is given for any.
"""

from typing import NamedTuple

from orbench.models import family_of


class PublishedRate(NamedTuple):
    """One model of the paper."""

    model: str
    over_refusal: float  # percent of the safe prompts refused
    toxic_rejection: float  # percent of the toxic prompts refused
    vintage: str = "OR-Bench, the earlier sets"

    @property
    def family(self) -> str:
        """The model's family, as in the paper's figure."""
        return family_of(self.model)


TODAY = "OR-Bench, today's sets"
PUBLISHED = (
    PublishedRate("Claude-2.1", 99.8, 100.0),
    PublishedRate("Claude-3-haiku", 96.28, 99.7),
    PublishedRate("Claude-3-sonnet", 94.46, 99.7),
    PublishedRate("Claude-3-opus", 91.0, 98.1),
    PublishedRate("Gemma-7b", 26.34, 85.5),
    PublishedRate("Gemini-1.0-pro", 9.71, 78.7),
    PublishedRate("Gemini-1.5-flash", 84.29, 98.8),
    PublishedRate("Gemini-1.5-pro", 88.01, 99.4),
    PublishedRate("GPT-3.5-turbo-0301", 57.43, 94.7),
    PublishedRate("GPT-3.5-turbo-0613", 38.4, 92.1),
    PublishedRate("GPT-3.5-turbo-0125", 12.71, 62.1),
    PublishedRate("GPT-4-0125-preview", 12.19, 93.0),
    PublishedRate("GPT-4-turbo-2024-04-09", 12.78, 96.5),
    PublishedRate("GPT-4o", 6.78, 84.9),
    PublishedRate("GPT-4o-2024-08-06", 13.2, 86.1, TODAY),
    PublishedRate("Llama-2-7b", 87.48, 99.6),
    PublishedRate("Llama-2-13b", 91.0, 99.7),
    PublishedRate("Llama-2-70b", 96.09, 99.7),
    PublishedRate("Llama-3-8b", 69.36, 95.0),
    PublishedRate("Llama-3-70b", 37.74, 78.7),
    PublishedRate("Mistral-small-latest", 13.3, 79.7),
    PublishedRate("Mistral-medium-latest", 13.95, 77.5),
    PublishedRate("Mistral-large-latest", 9.78, 72.8),
    PublishedRate("Qwen-1.5-7B", 39.24, 85.0),
    PublishedRate("Qwen-1.5-32B", 50.78, 95.6),
    PublishedRate("Qwen-1.5-72B", 46.94, 94.4),
    PublishedRate("Claude-3.5-sonnet", 43.8, 96.6, TODAY),
    PublishedRate("Gemma-2-9b", 79.9, 98.5, TODAY),
    PublishedRate("Gemma-2-27b", 62.0, 96.8, TODAY),
    PublishedRate("Llama-3.1-8B", 31.0, 91.0, TODAY),
    PublishedRate("Llama-3.1-70B", 2.9, 69.9, TODAY),
    PublishedRate("Llama-3.1-405B", 5.7, 79.2, TODAY),
)
