"""One self-contained HTML page: tables, pictures, and the prompts and responses behind the numbers.

Nothing is loaded from anywhere: pictures are data, style and script stand in the page, and its
content security policy allows these two (by their hash) and nothing else. Texts of prompts and
responses are held as JSON and only ever shown as text.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from math import isnan
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbench.columns import REFUSALS, SIDES, VERDICTS, reason_of, refused_by_api
from orbench.report.measurements import Measurement
from orbench.report.tables import Cell, Grid
from orbench.table import write_text

TEMPLATE = Path(__file__).with_suffix(".html")
LONG = 24  # characters from which on a cell may wrap


def write_page(
    path: Path,
    measurements: Sequence[Measurement],
    tables: Sequence[Grid],
    warnings: Sequence[str],
    pictures: Sequence[tuple[str, bytes]],
    limit: int,
) -> str:
    """Write the page. pictures: (title, SVG). limit: rows of prompts and responses, at most.

    Returns a line that says how many rows of how many it holds. Raises OSError.
    """
    data = _data(measurements, limit)
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    style = TEMPLATE.with_suffix(".css").read_text(encoding="utf-8")
    script = TEMPLATE.with_suffix(".js").read_text(encoding="utf-8")
    parts = {
        "STYLE_HASH": _hash(style),
        "SCRIPT_HASH": _hash(script),
        "STYLE": style,
        "SCRIPT": script,
        "ABOUT": _about(measurements),
        "WARNINGS": "\n".join(f'<p class="warning">{escape(line)}</p>' for line in warnings),
        "TABLES": "\n".join(map(_table, tables)),
        "PICTURES": _pictures(pictures),
        "DATA": _json(data),
    }
    write_text(path, template.substitute(parts))
    return f"{path}: {len(data['rows']):,} of {data['total']:,} prompts and responses"


def _data(measurements: Sequence[Measurement], limit: int) -> dict[str, Any]:
    """What the page's script reads; rows refer to names and prompts by their index."""
    models = list(dict.fromkeys(one.model for one in measurements))
    sides = [side for side in SIDES if any(one.side == side for one in measurements)]
    # Those of unscored rows too: the page must know that there is no row behind their numbers.
    categories = sorted({name for one in measurements for name in _categories(one)})
    verdicts, total = list(VERDICTS), sum(len(one.scored) for one in measurements)
    prompts: dict[str, int] = {}
    rows, counts = [], []
    for one in measurements:
        names = [models.index(one.model), sides.index(one.side)]
        kinds = one.scored.groupby(["category", "verdict"], observed=True).size()
        for (category, verdict), n in kinds.items():
            counts.append([*names, categories.index(category), verdicts.index(verdict), int(n)])
        kept = one.scored[_evenly(len(one.scored), limit / total)]
        for about, row in zip(kept.itertuples(), one.rows(kept.index), strict=True):
            rows.append(
                [
                    *names,
                    categories.index(about.category),
                    verdicts.index(about.verdict),
                    prompts.setdefault(row["prompt"], len(prompts)),
                    row.get("response", ""),
                    reason_of(row),
                    int(refused_by_api(row)),
                ]
            )
    return {
        "models": models,
        "sides": sides,
        "side_names": {side.name: side.prompts for side in SIDES.values()},
        "categories": categories,
        "verdicts": verdicts,
        "refusals": list(REFUSALS),
        "prompts": list(prompts),
        "rows": rows,
        "counts": counts,
        "total": total,
    }


def _categories(one: Measurement) -> list[str]:
    return [*one.scored["category"].unique(), *one.missing["category"].unique()]


def _evenly(n: int, share: float) -> NDArray[np.bool_]:
    """Which of n rows to keep: that share of them, evenly spaced."""
    numbers = (np.arange(n + 1) * min(1.0, share)).astype(int)
    return numbers[1:] > numbers[:-1]


def _about(measurements: Sequence[Measurement]) -> str:
    """When, on which prompts, how and by whom: what the page's header says."""
    days = sorted({one.date for one in measurements} - {""})
    sets = {one: one.source or one.prompt_set[:8] for one in measurements}
    facts = {
        "Measured": [" to ".join(dict.fromkeys((days[0], days[-1])))] if days else [],
        "Prompts": [f"{name} ({SIDES[one.side].prompts})" for one, name in sets.items()],
        "Asked with": [one.settings for one in measurements],
        "Counted by": [one.counted_by for one in measurements],
    }
    said = {
        name: escape("; ".join(filter(None, dict.fromkeys(all_)))) for name, all_ in facts.items()
    }
    return "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in said.items() if text)


def _table(grid: Grid) -> str:
    numeric = [any(row[i].value is not None for row in grid.rows) for i in range(len(grid.columns))]
    head = "".join(
        f'<th scope="col"{"" if number else _WORDS}>'
        f'<button type="button">{escape(name)}</button></th>'
        for name, number in zip(grid.columns, numeric, strict=True)
    )
    own = len(grid.rows) - grid.published
    body = "\n".join(
        f"<tr{'' if i < own else _PUBLISHED}>{''.join(map(_cell, row, grid.columns, numeric))}</tr>"
        for i, row in enumerate(grid.rows)
    )
    fold = f'<label class="fold"><input type="checkbox"> {grid.published} published models</label>'
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in grid.notes)
    return (
        f"<h2>{escape(grid.title)}</h2>{fold if own and grid.published else ''}"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{notes}"
    )


_WORDS, _PUBLISHED = ' class="words"', ' class="published"'


def _cell(cell: Cell, column: str, numeric: bool) -> str:
    text = escape(cell.text)
    if cell.behind:
        model, side, category = map(escape, cell.behind)
        text = (
            f'<button type="button" class="behind" data-model="{model}" data-side="{side}" '
            f'data-category="{category}">{text}</button>'
        )
    value = cell.value
    sort = "" if value is None or isnan(value) else f' data-value="{value!r}"'
    wrap = " long" if len(cell.text) > LONG and not numeric else ""
    kind = "" if numeric else f' class="words{wrap}"'
    return f'<td{kind}{sort} data-head="{escape(column)}">{text}</td>'


def _pictures(pictures: Sequence[tuple[str, bytes]]) -> str:
    if not pictures:
        return ""
    images = [
        f'<figure><figcaption>{escape(title)}</figcaption><img alt="{escape(title)}" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"></figure>'
        for title, svg in pictures
    ]
    return "<h2>Pictures</h2>\n" + "\n".join(images)


def _json(data: dict[str, Any]) -> str:
    """JSON that can stand in a script element: `<` written as an escape, so nothing ends it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
