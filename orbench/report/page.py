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
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
from jinja2 import Environment, FileSystemLoader

from orbench.base.tables import write_text
from orbench.base.words import SIDES, VERDICTS
from orbench.report.load import TEXTS
from orbench.report.rates import label, overall
from orbench.report.tables import Grid

FOLDER = Path(__file__).parent
MOST_ROWS = 16_000  # prompts and responses in a page, about 40 MB


def write_page(
    path: Path,
    rows: pd.DataFrame,
    results: pd.DataFrame,
    tables: Sequence[Grid],
    lines: Sequence[str],
    pictures: Mapping[str, bytes],
) -> None:
    """rows: of `load`, with texts; results: `rates`; tables: `grids`; lines: `warnings`; pictures:
    title -> SVG. Raises OSError and UserError.
    """
    own = overall(results)
    style, script = ((FOLDER / f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    found = Environment(autoescape=True, loader=FileSystemLoader(FOLDER)).get_template("page.html")
    page = found.render(
        policy=[_base64(hashlib.sha256(text.encode()).digest()) for text in (style, script)],
        about=_about(own),
        tables=tables,
        lines=lines,
        pictures={title: _base64(svg) for title, svg in pictures.items()},
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
    columns = [kept[name] for name in ("result", "category", "verdict", *TEXTS, "api")]
    return {
        "results": results,
        "categories": categories,
        "verdicts": verdicts,
        "refusals": [name for name in verdicts if VERDICTS[name]],
        "rows": [
            [result, categories.index(category), verdicts.index(verdict), *texts, int(api)]
            for result, category, verdict, *texts, api in zip(*columns, strict=True)
        ],
        "total": int((rows["verdict"] != "").sum()),
    }


def _about(own: pd.DataFrame) -> dict[str, str]:
    """When, on which prompts, how and by whom: the page's header."""
    names = {"Measured": "date", "Prompts": "prompts", "Settings": "settings", "Judge": "judge"}
    said = {title: "; ".join(filter(None, own[name].unique())) for title, name in names.items()}
    return {title: text for title, text in said.items() if text}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
