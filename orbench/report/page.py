"""One self-contained HTML page: tables, pictures, and the responses behind the numbers.

Nothing is loaded from anywhere: pictures are data, style and script are in the page, and its
content security policy allows these two, by their hash, and nothing else. Prompts and responses are
JSON, and are only ever shown as text.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader
from pandas import Categorical, DataFrame  # type: ignore[import-untyped]

from orbench.base.messages import shortened
from orbench.base.tables import write_text
from orbench.base.toml_files import toml_beside
from orbench.base.words import API_SIGNAL, SIDES, VERDICTS
from orbench.report.frames import Entries, Entry
from orbench.report.rates import FEW_PROMPTS, label, overall, short_label
from orbench.report.tables import BEHIND, LEGEND

FOLDER = Path(__file__).parent
REASONS = toml_beside(__file__, "reasons.toml")
JINJA = Environment(
    autoescape=True, loader=FileSystemLoader(FOLDER), trim_blocks=True, lstrip_blocks=True
)
JINJA.globals |= {"b64encode": base64.b64encode, "sha256": hashlib.sha256}
JINJA.globals |= {"label": label, "short_label": short_label, "shortened": shortened}
MOST_ROWS = 16_000  # prompts and responses in a page, about 40 MB
SHOWN = ["result", "category", "verdict", "question", "response", "reason"]  # as page.js reads it


class Picture(NamedTuple):
    """A picture as SVG. The style inverts it in dark mode."""

    name: str  # of its file, without the ending
    title: str
    svg: bytes


def write_page(path: Path, rows: DataFrame, results: DataFrame, shown: Entry) -> None:
    """Write the page.

    rows: of `load_results`, with texts; results: `rates`; shown: what the templates show, by name.
    Raises OSError and UserError.
    """
    whole = overall(results).to_dict("records")
    style = (FOLDER / "page.css").read_text("utf-8")
    script = (FOLDER / "page.js").read_text("utf-8")
    data = json.dumps(_data(rows, whole), separators=(",", ":"))
    page = JINJA.get_template("page.html").render(
        shown,
        results={row["result"]: row for row in whole},
        sides=SIDES,
        about=BEHIND,
        legend=LEGEND,
        few=FEW_PROMPTS,
        data=data.replace("<", "\\u003c"),  # as an escape: no text ends the script element
        style=style,
        script=script,
    )
    write_text(path, page)


def _data(rows: DataFrame, whole: Entries) -> Entry:
    """What the page's script reads; rows refer to results and words by their number."""
    results = {}
    for row in whole:
        prompts = SIDES[row["side"]].prompts
        results[row["result"]] = f"{label(row)}: {prompts}, {row['prompts']}, {row['judge']}"
    categories = sorted(set(rows["category"]))
    verdicts = list(VERDICTS)
    kept = rows.dropna(subset="response")
    shown = kept.assign(
        category=Categorical(kept["category"], categories).codes,
        verdict=Categorical(kept["verdict"], verdicts).codes,
        reason=kept["reason"].map(_why),
    )
    return {
        "results": [results[number] for number in sorted(results)],
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
        return _in_words(reason)
    if isinstance(reply, dict):
        return str(reply.get("quote", reason))
    return reason


def _in_words(reason: str) -> str:
    """A rule's name or an API's signal in words; any other reason as it is."""
    if reason.startswith(API_SIGNAL):
        return f"by the API ({reason.removeprefix(API_SIGNAL)})"
    is_rule = " " not in reason
    for name, words in REASONS.items():
        if is_rule and reason.endswith(name):
            return str(words)
    return reason
