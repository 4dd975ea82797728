"""One self-contained HTML page: tables, pictures, and the responses behind the numbers.

Nothing is loaded from anywhere: pictures are data, style and script are in the page, and its
content security policy allows these two, by their hash, and nothing else. Prompts and responses are
JSON, and are only ever shown as text.
"""

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
from orbench.report.behind import sections
from orbench.report.finding import findings
from orbench.report.measures import FEW_PROMPTS, WIDENED, WIDER
from orbench.report.page_rows import prompt_tables, shown_rows
from orbench.report.pictures.every import BAR_TICKS, Picture, bar_of
from orbench.report.sentences import warnings
from orbench.report.standings import Report

FOLDER = Path(__file__).parent
JINJA = Environment(
    autoescape=True,
    extensions=["jinja2.ext.do"],
    finalize=lambda value: "" if value is None else value,
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
}


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
    drawn = grouped(pictures, attrgetter("section"))
    tables = [*prompt_tables(report)]
    page = JINJA.get_template("page.html").render(
        report=report,
        findings=[*findings(report)],
        notes=[*warnings(report.whole)],
        sections=sections(report, {"rows", *drawn}),
        pictures=drawn,
        prompt_tables=tables,
        shown=shown_rows(report, tables),
        lines=lines,
        files=files,
    )
    write_text(path, page)
