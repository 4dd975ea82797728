"""One self-contained HTML page: tables, pictures, and the responses behind the numbers.

Nothing is loaded from anywhere: pictures are data, style and script are in the page, and its
content security policy allows these two, by their hash, and nothing else. Prompts and responses are
JSON, and are only ever shown as text.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from orbench.base.messages import shortened
from orbench.base.tables import write_text
from orbench.base.toml_files import toml_beside
from orbench.base.words import API_SIGNAL, VERDICTS, Json
from orbench.report import page_tables
from orbench.report.behind import TEXTS, sections, tiers_of
from orbench.report.categories import category_tables
from orbench.report.finding import findings
from orbench.report.measures import FEW_PROMPTS, OVERALL
from orbench.report.numerals import WIDENED, percent
from orbench.report.ranking import in_order
from orbench.report.rates import overall
from orbench.report.results import Result
from orbench.report.scatter import WHOLE, scatters
from orbench.report.sentences import warnings
from orbench.report.standings import Report
from orbench.report.tables import LEGEND, grids

FOLDER = Path(__file__).parent
REASONS = toml_beside(__file__, "reasons.toml")
JINJA = Environment(
    autoescape=True,
    extensions=["jinja2.ext.do"],
    loader=FileSystemLoader(FOLDER),
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
JINJA.globals |= {
    "b64encode": base64.b64encode,
    "sha256": hashlib.sha256,
    "shortened": shortened,
    "percent": percent,
    "widened": WIDENED,
    "few": FEW_PROMPTS,
    "certain": page_tables.CERTAIN,
    "overall": OVERALL,
    "whole": WHOLE,
    "doubts_of": page_tables.doubts_of,
    "shade": page_tables.shade,
    "in_short": page_tables.IN_SHORT,
    "share_words": page_tables.SHARES,
    "texts": TEXTS,
}
MOST_ROWS = 16_000  # prompts and responses in a page, about 40 MB


def write_page(
    path: Path, report: Report, lines: Sequence[str], pictures: Mapping[str, bytes]
) -> None:
    """Write the page. lines: what to know besides the notes on results; pictures: as SVG, by the
    name of the section.

    Raises OSError and UserError.
    """
    style = (FOLDER / "page.css").read_text("utf-8")
    script = (FOLDER / "page.js").read_text("utf-8")
    data = json.dumps(_data(report.results), separators=(",", ":"))
    page = JINJA.get_template("page.html").render(
        report=report,
        finding=findings(report.board, report.comparisons),
        notes=_notes(report),
        axes=page_tables.rate_axes(report),
        shares=page_tables.shares_by_result(report),
        scatters=scatters(report),
        category_tables=category_tables(report.rates, report.board),
        matrices=page_tables.matrices(report),
        facing=page_tables.facing(report),
        grids=grids(report),
        sections=sections(report),
        tiers=tiers_of(report),
        pictures=pictures,
        lines=[*lines, LEGEND],
        data=data.replace("<", "\\u003c"),  # as an escape: no text ends the script element
        style=style,
        script=script,
    )
    write_text(path, page)


def _notes(report: Report) -> list[str]:
    """Return the notes on results; the finding says all that there is to say about the demo."""
    if all(result.is_demo for result in report.results):
        return []
    return warnings(in_order(overall(report.rates), report.board))


def _data(results: Sequence[Result]) -> Json:
    """Return what the page's script reads; rows refer to results and words by their number."""
    names = []
    rows: list[list[object]] = []
    categories = sorted({name for result in results for name in result.responses.category})
    verdicts = list(VERDICTS)
    for result in results:
        names.append(f"{result.label}: {result.side.prompts}, {result.prompts}, {result.judge}")
        for text in result.texts:
            place = categories.index(text.category)
            verdict = verdicts.index(text.verdict)
            shown = text.question, text.response, _why(text.reason)
            rows.append([result.number, place, verdict, *shown])
    return {
        "results": names,
        "categories": categories,
        "verdicts": verdicts,
        "refusals": [name for name in verdicts if VERDICTS[name]],
        "rows": rows,
        "total": sum(result.scored for result in results),
    }


def _why(reason: str) -> str:
    """Return a rule in words, or what a judge said: of a structured reply what it quotes."""
    try:
        reply = json.loads(reason)
    except ValueError:
        return _in_words(reason)
    if isinstance(reply, dict):
        return str(reply.get("quote", reason))
    return reason


def _in_words(reason: str) -> str:
    """Return a rule's name or an API's signal in words; any other reason as it is."""
    if reason.startswith(API_SIGNAL):
        return f"by the API ({reason.removeprefix(API_SIGNAL)})"
    is_rule = " " not in reason
    for name, words in REASONS.items():
        if is_rule and reason.endswith(name):
            return str(words)
    return reason
