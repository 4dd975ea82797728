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
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader
from pandas import Categorical, DataFrame  # type: ignore[import-untyped]

from orbench.base.tables import write_text
from orbench.base.words import SIDES, VERDICTS
from orbench.refusals.rules import in_words
from orbench.report.frames import Entry
from orbench.report.rates import label, overall
from orbench.report.tables import Grid

FOLDER = Path(__file__).parent
MOST_ROWS = 16_000  # prompts and responses in a page, about 40 MB
# On which prompts, by whom, how and when: the page's header.
HEADER = {"Prompts": "prompts", "Judge": "judge", "Settings": "settings", "Measured": "date"}

SHOWN = ["result", "category", "verdict", "question", "response", "reason"]  # as page.js reads it


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
    picture: str = ""  # the beginning of its pictures' names
    folded: bool = False


def write_page(
    path: Path,
    rows: DataFrame,
    results: DataFrame,
    board: DataFrame,
    notes: Sequence[str],
    pictures: Sequence[Picture],
    sections: Iterable[Section],
) -> None:
    """Write the page.

    rows: of `load_results`, with texts; results: `rates`; board: `leaderboard`; notes: what to
    know before any number. Raises OSError and UserError.
    """
    whole = overall(results)
    style = (FOLDER / "page.css").read_text("utf-8")
    script = (FOLDER / "page.js").read_text("utf-8")
    data = json.dumps(_data(rows, whole), separators=(",", ":"))
    jinja = Environment(autoescape=True, loader=FileSystemLoader(FOLDER), trim_blocks=True)
    jinja.globals |= {"b64encode": base64.b64encode, "sha256": hashlib.sha256}
    page = jinja.get_template("page.html").render(
        about={title: whole[name].unique() for title, name in HEADER.items()},
        board=board.to_dict("records"),
        notes=notes,
        pictures=pictures,
        sections=sections,
        data=data.replace("<", "\\u003c"),  # as an escape: no text ends the script element
        style=style,
        script=script,
    )
    write_text(path, page)


def _data(rows: DataFrame, whole: DataFrame) -> Entry:
    """What the page's script reads; rows refer to results and words by their number."""
    results = []
    for row in whole.to_dict("records"):
        prompts = SIDES[row["side"]].prompts
        results.append(f"{label(row)}: {prompts}, {row['prompts']}, {row['judge']}")
    categories = sorted(set(rows["category"]))
    verdicts = list(VERDICTS)
    kept = rows.dropna(subset="response")
    shown = kept.assign(
        category=Categorical(kept["category"], categories).codes,
        verdict=Categorical(kept["verdict"], verdicts).codes,
        reason=kept["reason"].map(_why),
    )
    return {
        "results": results,
        "categories": categories,
        "verdicts": verdicts,
        "refusals": [name for name in verdicts if VERDICTS[name]],
        "rows": shown[SHOWN].to_numpy().tolist(),
        "total": int(sum(rows["verdict"] != "")),
    }


def _why(reason: str) -> str:
    """A rule in words, or what a judge said: of a structured reply what it quotes."""
    try:
        reply = json.loads(reason)
    except ValueError:
        return in_words(reason)
    if isinstance(reply, dict):
        return str(reply.get("quote", reason))
    return reason
