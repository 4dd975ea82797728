"""One self-contained HTML page: tables, pictures, and the responses behind the numbers.

Nothing is loaded from anywhere: pictures are data, style and script are in the page, and its
content security policy allows these two, by their hash, and nothing else. Prompts and responses are
JSON, and are only ever shown as text.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from operator import attrgetter
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from orbench.base.grouping import grouped
from orbench.base.tables import write_text
from orbench.base.words import Words
from orbench.report.about import CERTAIN
from orbench.report.behind import TEXTS, sections
from orbench.report.categories import category_tables
from orbench.report.finding import findings
from orbench.report.measures import FEW_PROMPTS, WIDENED, WIDER
from orbench.report.page_rows import prompt_tables, shown_rows
from orbench.report.page_tables import (
    SHADES,
    doubts_of,
    matrices,
    pairs,
    shade,
)
from orbench.report.pictures.every import BAR_TICKS, Picture, bar_of
from orbench.report.sentences import warnings
from orbench.report.standings import Report
from orbench.report.tables import grids

FOLDER = Path(__file__).parent
JINJA = Environment(
    autoescape=True,
    extensions=["jinja2.ext.do"],
    loader=FileSystemLoader(FOLDER),
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
JINJA.globals |= {
    "b64encode": b64encode,
    "sha256": sha256,
    "bar_of": bar_of,
    "bar_ticks": BAR_TICKS,
    "widened": WIDENED,
    "wider": WIDER,
    "few": FEW_PROMPTS,
    "certain": f"{100 * CERTAIN:.0f}",
    "doubts_of": doubts_of,
    "shade": shade,
    "shades": SHADES,
    "texts": TEXTS,
}
MOST_OPEN = 15  # models: a longer leaderboard has a line each, and is filtered


def write_page(
    path: Path,
    report: Report,
    lines: Words,
    pictures: Sequence[Picture],
    files: Words,
) -> None:
    """Write the page. lines: what to know besides the notes on results; pictures: in any order;
    files: that stand beside it, as paths from there.

    Raises OSError and UserError.
    """
    tables = [*prompt_tables(report)]
    shown = shown_rows(report, tables)
    data = json.dumps(shown, separators=(",", ":"))
    many = len(report.board) > MOST_OPEN
    page = JINJA.get_template("page.html").render(
        report=report,
        findings=[*findings(report)],
        notes=[*warnings(report.whole)],
        sides=report.sides,
        many=many,
        category_tables=[*category_tables(report)],
        matrices=matrices(report),
        pairs=pairs(report),
        grids=grids(report),
        sections=sections(report),
        pictures=grouped(pictures, attrgetter("section")),
        prompt_tables=tables,
        shown=shown,
        lines=lines,
        files=files,
        data=data.replace("<", "\\u003c"),  # as an escape: no text ends the script element
        style=(FOLDER / "page.css").read_text("utf-8"),
        script=_script(many, bool(shown)),
    )
    write_text(path, page)


def _script(many: bool, shown: bool) -> str:
    """Return the script of a page. many: models; shown: whether it has prompts and responses."""
    names = {"page.js": True, "board.js": many, "rows.js": shown}
    return "".join((FOLDER / name).read_text("utf-8") for name in names if names[name])
