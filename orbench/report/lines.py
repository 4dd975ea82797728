"""Lines for the reader, from the text templates in sections/."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from orbench.base.messages import counted
from orbench.base.words import SIDES
from orbench.report.rates import FEW_PROMPTS, label, short_label

SECTIONS = Path(__file__).parent / "sections"
JINJA = Environment(loader=FileSystemLoader(SECTIONS), trim_blocks=True, lstrip_blocks=True)
JINJA.globals |= {"label": label, "short_label": short_label, "counted": counted}
JINJA.globals |= {"sides": SIDES, "few": FEW_PROMPTS}


def lines_of(template: str, **values: Any) -> list[str]:
    """Return the lines of a template that are not empty."""
    text = JINJA.get_template(template).render(values)
    return [line for line in text.split("\n") if line]
