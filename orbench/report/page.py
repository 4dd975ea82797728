"""One self-contained HTML page: tables, pictures, and the responses behind the numbers.

Nothing is loaded from anywhere: pictures are data, style and script are in the page, and its
content security policy allows these two, by their hash, and nothing else. Prompts and responses are
JSON, and are only ever shown as text.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd  # type: ignore[import-untyped]
from jinja2 import Environment, FileSystemLoader

from orbench.base.tables import write_text
from orbench.base.words import SIDES, VERDICTS
from orbench.refusals.rules import in_words
from orbench.report.load import TEXTS
from orbench.report.rates import label, overall
from orbench.report.tables import Grid

FOLDER = Path(__file__).parent
MOST_ROWS = 16_000  # prompts and responses in a page, about 40 MB


class Picture(NamedTuple):
    """A picture as SVG. The style inverts it in dark mode."""

    name: str  # of its file, without the ending
    title: str
    svg: bytes


class Section(NamedTuple):
    """A part of the page between the comparisons and the responses."""

    title: str
    lines: Sequence[str] = ()  # what it says, and how to read it
    tables: Sequence[Grid] = ()
    pictures: Sequence[Picture] = ()
    folded: bool = False


def write_page(
    path: Path,
    rows: pd.DataFrame,
    results: pd.DataFrame,
    board: pd.DataFrame,
    notes: Sequence[str],
    pictures: Sequence[Picture],
    sections: Iterable[Section],
) -> None:
    """rows: of `load`, with texts; results: `rates`; board: `leaderboard`; notes: what to know
    before any number. Raises OSError and UserError.
    """
    own = overall(results)
    style, script = ((FOLDER / f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    jinja = Environment(autoescape=True, loader=FileSystemLoader(FOLDER), trim_blocks=True)
    jinja.filters["base64"] = _base64
    page = jinja.get_template("page.html").render(
        policy=[_base64(hashlib.sha256(text.encode()).digest()) for text in (style, script)],
        about=_about(own),
        board=board.to_dict("records"),
        published=int(board["published"].sum()),
        notes=notes,
        pictures=pictures,
        sections=sections,
        # `<` as an escape: no text ends the script element.
        data=json.dumps(_data(rows, own), separators=(",", ":")).replace("<", "\\u003c"),
        style=style,
        script=script,
    )
    write_text(path, page)


def _data(rows: pd.DataFrame, own: pd.DataFrame) -> dict[str, Any]:
    """What the page's script reads; rows refer to results and words by their number."""
    results = [
        f"{label(row)}: {SIDES[row['side']].prompts}, {row['prompts']}, {row['judge']}"
        for row in own.to_dict("records")
    ]
    kept = rows[rows["response"].notna()]
    categories = sorted(set(rows["category"]))
    verdicts = list(VERDICTS)
    columns = [kept[name] for name in ("result", "category", "verdict", *TEXTS)]
    return {
        "results": results,
        "categories": categories,
        "verdicts": verdicts,
        "refusals": [name for name in verdicts if VERDICTS[name]],
        "rows": [
            [result, categories.index(category), verdicts.index(verdict), *texts, _why(reason)]
            for result, category, verdict, *texts, reason in zip(*columns, strict=True)
        ],
        "total": int((rows["verdict"] != "").sum()),
    }


def _why(reason: str) -> str:
    """A rule in words, or what a judge said: of a structured reply its reason."""
    try:
        said = json.loads(reason)
    except ValueError:
        return in_words(reason)
    return str(said["reason"]) if isinstance(said, dict) and "reason" in said else reason


def _about(own: pd.DataFrame) -> dict[str, str]:
    """On which prompts, by whom, how and when: the page's header."""
    names = {"Prompts": "prompts", "Judge": "judge", "Settings": "settings", "Measured": "date"}
    said = {title: "; ".join(filter(None, own[name].unique())) for title, name in names.items()}
    return {title: text for title, text in said.items() if text}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
