"""One self-contained HTML page: tables, pictures, and the responses behind the numbers.

Nothing is loaded from anywhere: pictures are data, style and script are in the page, and its
content security policy allows these two, by their hash, and nothing else. Prompts and responses are
JSON, and are only ever shown as text.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from orbench.base.messages import shortened
from orbench.base.tables import write_text
from orbench.base.toml_files import toml_beside
from orbench.base.words import API_SIGNAL, SIDES, VERDICTS, Json
from orbench.report.behind import sections
from orbench.report.finding import findings
from orbench.report.measures import FEW_PROMPTS
from orbench.report.numerals import WIDENED, percent
from orbench.report.page_board import (
    SHARES,
    doubts_of,
    meanings_of,
    rate_columns,
    shares_by_result,
)
from orbench.report.page_tables import differences, heat_maps
from orbench.report.ranking import in_order
from orbench.report.rates import overall
from orbench.report.results import Result
from orbench.report.scatter import percents_of, scatters
from orbench.report.sentences import warnings
from orbench.report.standings import Report
from orbench.report.tables import LEGEND, grids

FOLDER = Path(__file__).parent
REASONS = toml_beside(__file__, "reasons.toml")
JINJA = Environment(
    autoescape=True,
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
    "sides": SIDES,
    "percents_of": percents_of,
    "doubts_of": doubts_of,
    "share_words": SHARES,
}
MOST_ROWS = 16_000  # prompts and responses in a page, about 40 MB


class Picture(NamedTuple):
    """A picture as SVG. The style inverts it in dark mode."""

    name: str  # of its file, without the ending
    title: str
    svg: bytes


def write_page(
    path: Path, report: Report, lines: Sequence[str], pictures: Sequence[Picture]
) -> None:
    """Write the page. lines: what to know besides the notes on results.

    Raises OSError and UserError.
    """
    style = (FOLDER / "page.css").read_text("utf-8")
    script = (FOLDER / "page.js").read_text("utf-8")
    data = json.dumps(_data(report.results), separators=(",", ":"))
    page = JINJA.get_template("page.html").render(
        _facts(report),
        report=report,
        finding=findings(report.board, report.comparisons),
        rate_columns=rate_columns(report),
        scatters=scatters(report),
        heat_maps=heat_maps(report),
        grids=grids(report),
        sections=sections(report),
        pictures=pictures,
        lines=[*lines, LEGEND],
        data=data.replace("<", "\\u003c"),  # as an escape: no text ends the script element
        style=style,
        script=script,
    )
    write_text(path, page)


def _facts(report: Report) -> Json:
    """Return what the templates ask about all overall rates, in the leaderboard's order."""
    rates = in_order(overall(report.rates), report.board)
    results = [rate.result for rate in rates]
    # The finding says all that there is to say about the demo's few prompts.
    is_demo = all(result.is_demo for result in results)
    ranks = [standing.rank for standing in report.board]
    has_score = any(standing.has_both_sides for standing in report.board)
    return {
        "results": results,
        "notes": warnings(rates),
        "is_demo": is_demo,
        "meanings": meanings_of(rates, is_demo),
        "differences": differences(report, results),
        "has_score": has_score or bool(report.published),
        "has_ties": any(rank.best < rank.worst for rank in ranks if rank),
        "has_unscored": any(rate.unscored for rate in rates),
        "has_flips": any(rate.details and rate.details.flips >= 0 for rate in rates),
        "shares": shares_by_result(report),
    }


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
        "total": int(sum(result.responses.scored.sum() for result in results)),
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
