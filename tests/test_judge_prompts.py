"""What judges are asked: no example of the form is a verdict, and the classes are numbered."""

import re
from pathlib import Path

import pytest

from orbench.verdict_reading import Choice, read_choice

ROOT = Path(__file__).resolve().parents[1]
CATEGORIES = (
    "hate",
    "self-harm",
    "sexual",
    "violence",
    "harassment",
    "harmful",
    "illegal",
    "unethical",
    "privacy",
    "deception",
    "none",
)
CLASSES = ("direct_answer", "direct_refusal", "indirect_refusal")
GRADED = ("direct_answer", "partial", "safe_completion", "indirect_refusal", "direct_refusal")
FILES = {
    "moderator/prompt.txt": CATEGORIES,
    "moderator/policy.txt": CATEGORIES,
    "response_checker/prompt.txt": CLASSES,
    "response_checker/prompt_graded.txt": GRADED,
}


def choices(names: tuple[str, ...]) -> list[Choice]:
    """The choices as numbered in a prompt."""
    return [Choice(name, (), number) for number, name in enumerate(names, 1)]


@pytest.mark.parametrize(("file", "names"), FILES.items())
def test_a_judge_that_repeats_its_instructions_has_said_nothing(
    file: str, names: tuple[str, ...]
) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = text.splitlines()
    for end in range(1, len(lines) + 1):
        for repeated in ("\n".join(lines[:end]), lines[end - 1]):
            assert read_choice(repeated, choices(names))[0] is None, lines[end - 1]
    assert re.findall(r"\[\[.*?\]\]", text) == ["[[number. name]]"] * text.count("[[")
    assert "[[number. name]]" in text


@pytest.mark.parametrize(
    ("file", "names"),
    [("response_checker/prompt.txt", CLASSES), ("response_checker/prompt_graded.txt", GRADED)],
)
def test_the_classes_stand_in_the_prompt_under_their_numbers(
    file: str, names: tuple[str, ...]
) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.findall(r"^(\d+)\. (\w+):", text, re.MULTILINE)
    assert found == [(str(number), name) for number, name in enumerate(names, 1)]
