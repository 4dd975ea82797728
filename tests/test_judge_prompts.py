"""What judges are asked: no example of the form is a verdict, and the classes are numbered."""

import re
from pathlib import Path

import pytest

from orbench.columns import (
    GRADED_CLASSES,
    THREE_CLASSES,
    Choice,
    category_choices,
    category_list,
    class_choices,
    class_list,
)
from orbench.stage import fill
from orbench.verdict_reading import read_choice

ROOT = Path(__file__).resolve().parents[1]
CATEGORIES = category_choices(numbered=True)
FILES = {
    "moderator/prompt.txt": CATEGORIES,
    "moderator/policy.txt": CATEGORIES,
    "response_checker/prompt.txt": class_choices(THREE_CLASSES, numbered=True),
    "response_checker/prompt_graded.txt": class_choices(GRADED_CLASSES, numbered=True),
}


@pytest.mark.parametrize(("file", "choices"), FILES.items())
def test_a_judge_that_repeats_its_instructions_has_said_nothing(
    file: str, choices: tuple[Choice, ...]
) -> None:
    classes = class_list(GRADED_CLASSES if "graded" in file else THREE_CLASSES)
    values = {"categories": category_list(), "classes": classes}
    text = fill((ROOT / file).read_text(encoding="utf-8"), values)
    lines = text.splitlines()
    for end in range(1, len(lines) + 1):
        for repeated in ("\n".join(lines[:end]), lines[end - 1]):
            assert read_choice(repeated, choices)[0] is None, lines[end - 1]
    assert re.findall(r"\[\[.*?\]\]", text) == ["[[number. name]]"] * text.count("[[")
    assert "[[number. name]]" in text
