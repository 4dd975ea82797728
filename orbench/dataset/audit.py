"""A sheet for people: what they would say about a sample of prompts, beside what judges said.

`write_sheet_and_votes` makes two files: the sheet (id, prompt, an empty label; shuffled, so that
its order says nothing) and, kept from the people, the votes. Each person fills in a copy of the
sheet: toxic or safe; empty is "not labelled". `compare_sheets` reads the copies back.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from orbench.agreement import Agreement, cohen_kappa
from orbench.columns import optional_flag
from orbench.rates import wilson
from orbench.table import Row, Table, prompt_id, write_rows
from orbench.terminal import UserError, clean, counted, table_lines

SHEET_FILE, VOTES_FILE, AGREEMENT_FILE = "audit_sheet.csv", "audit_votes.csv", "audit_agreement.csv"
LABELS = {"toxic": True, "safe": False, "": None}  # as people write them, in small letters
IN_TOXIC_SET = "in_toxic_set"  # column: after the second chance
VERDICT_NAMES = {"is_toxic": "ensemble", IN_TOXIC_SET: "data set"}  # columns that are no judge's
AUDIT_BYTES = 6  # of a `prompt_id`: an id says nothing of verdict or place, and stays the same
ID = re.compile(f"[0-9a-f]{{{2 * AUDIT_BYTES}}}")
MAJORITY = "people's majority"
PERCENT = ("rate_percent", "low_percent", "high_percent")
AGREEMENT_COLUMNS = ("rater", "against", "where", "n", "agree", *PERCENT, "cohen_kappa")


def write_sheet_and_votes(
    folder: Path, rows: Iterable[Row], judges: Sequence[str], seed: int
) -> None:
    """Write the sheet and the votes. Raises OSError.

    rows: prompt, category, is_toxic, is_toxic_{judge}, second_chance, in_toxic_set.
    """
    shuffled = write_sheet(folder / SHEET_FILE, rows, seed)
    votes = ["is_toxic", *(f"is_toxic_{judge}" for judge in judges)]
    hidden = ["id", "prompt", "category", *votes, "second_chance", IN_TOXIC_SET]
    write_rows(folder / VOTES_FILE, hidden, shuffled)


def write_sheet(path: Path, rows: Iterable[Row], seed: int) -> list[Row]:
    """Write a sheet: id, prompt, label. Gives the rows as shuffled, with their id. Raises
    OSError.
    """
    shuffled = [
        {**row, "id": prompt_id(row["prompt"])[:AUDIT_BYTES].hex(), "label": ""} for row in rows
    ]
    shuffled.sort(key=lambda row: row["id"])  # so that the shuffle depends on nothing but the seed
    random.Random(seed).shuffle(shuffled)
    plain = ({**row, "prompt": _no_formula(row["prompt"])} for row in shuffled)
    write_rows(path, ("id", "prompt", "label"), plain)
    return shuffled


def compare_sheets(folder: Path, sheets: Sequence[Path]) -> list[str]:
    """Read labelled sheets, compare people with each other and with the judges, and write
    `AGREEMENT_FILE` into the folder. Gives the text for the user.

    The people's majority is what more than half of the labels of a prompt say; a prompt on which
    they are split evenly has none and is left out. Raises UserError for sheets or votes that cannot
    be used, OSError.
    """
    verdicts = _verdicts(folder / VOTES_FILE)
    people = _names(sheets)
    labels = pd.DataFrame({name: _labels(path, verdicts.index) for name, path in people.items()})
    if labels.empty:
        raise UserError("no prompt is labelled; write toxic or safe in the column 'label'")
    toxic = labels.mean(axis="columns")
    majority = toxic[toxic != 0.5] > 0.5
    rows = [
        _agreed(one, other, "all", labels[one], labels[other])
        for one, other in combinations(labels, 2)
    ]
    parts = {
        "all": majority,
        "people: toxic": majority[majority],
        "people: safe": majority[~majority],
    }
    for rater, verdict in verdicts.items():
        rows += [_agreed(rater, MAJORITY, where, verdict, part) for where, part in parts.items()]
    found = pd.DataFrame(rows, columns=AGREEMENT_COLUMNS)
    _write_agreement(folder / AGREEMENT_FILE, found)
    return list(_lines(labels, len(majority), found, len(verdicts)))


def majority_of(sheets: Sequence[Path]) -> dict[str, bool]:
    """id -> whether most people call the prompt toxic; without the ties. Raises UserError."""
    labels = pd.DataFrame({name: _labels(path) for name, path in _names(sheets).items()})
    if labels.empty:
        raise UserError("no prompt is labelled; write toxic or safe in the column 'label'")
    toxic = labels.mean(axis="columns")
    return {str(id_): bool(share > 0.5) for id_, share in toxic.items() if share != 0.5}


def _verdicts(path: Path) -> pd.DataFrame:
    """id x judge, the ensemble and the dataset: True, False or None."""
    found = {}
    for row in (table := Table(path, ("id", *VERDICT_NAMES))):
        columns = [c for c in table.columns if c.startswith("is_toxic_")]
        found[row["id"]] = {
            VERDICT_NAMES.get(column, column.removeprefix("is_toxic_")): optional_flag(
                row, column, f"{path}, id {clean(row['id'])}"
            )
            for column in (*columns, *VERDICT_NAMES)
        }
    return pd.DataFrame.from_dict(found, orient="index", dtype=object)


def _names(sheets: Sequence[Path]) -> dict[str, Path]:
    """A name for the person behind each sheet: the file's stem, its path where stems repeat."""
    stems = Counter(path.stem for path in sheets)
    names = {clean(p.stem if stems[p.stem] == 1 else str(p)): p for p in sheets}
    if len({path.resolve() for path in sheets}) < len(sheets) or len(names) < len(sheets):
        raise UserError("the same sheet is given twice; give each person's once")
    return names


def _labels(path: Path, known: Iterable[str] | None = None) -> pd.Series:
    """The labelled prompts of a sheet, by id: 1 for toxic, 0 for safe. known: all ids there are."""
    ids, found = None if known is None else set(known), dict[str, bool | None]()
    for number, row in enumerate(Table(path, ("id", "label")), start=1):
        prompt, label = row["id"].strip(), row["label"].strip()
        where = f"{path}, row {number}"
        if label.lower() not in LABELS:
            raise UserError(
                f"{where}: the label is {clean(label)[:40]!r}, not toxic, safe or empty"
            )
        if ids is not None and prompt not in ids:
            raise UserError(f"{where}: the id {clean(prompt)[:40]!r} is not in {VOTES_FILE}")
        if not ID.fullmatch(prompt):
            raise UserError(f"{where}: {clean(prompt)[:40]!r} is no id of an audit sheet")
        if prompt in found:
            raise UserError(f"{where}: the id {clean(prompt)!r} is there a second time")
        found[prompt] = LABELS[label.lower()]
    return pd.Series(found, dtype=float).dropna()


def _agreed(
    rater: str, against: str, where: str, one: pd.Series, other: pd.Series
) -> tuple[object, ...]:
    """How often a rater says what another says, on the prompts that both judged: a row of
    `AGREEMENT_COLUMNS`. None where nothing can be said, as of kappa on one side alone.
    """
    both = pd.concat([one, other], axis="columns", join="inner").dropna().astype(bool)
    count = Counter(both.itertuples(index=False, name=None))
    n, agree = len(both), count[True, True] + count[False, False]
    shares = [100 * share for share in (agree / n, *wilson(agree, n))] if n else [None] * 3
    cells = (count[True, True], count[True, False], count[False, True], count[False, False])
    kappa = cohen_kappa(*cells) if where == "all" else None
    return rater, against, where, n, agree, *shares, kappa


def _write_agreement(path: Path, found: pd.DataFrame) -> None:
    digits = {**dict.fromkeys(PERCENT, 2), "cohen_kappa": 4}
    cells = found.astype(object)
    for column, places in digits.items():
        cells[column] = ["" if pd.isna(x) else f"{x:.{places}f}" for x in found[column]]
    write_rows(path, AGREEMENT_COLUMNS, cells.astype(str).to_dict("records"))


def _lines(labels: pd.DataFrame, decided: int, found: pd.DataFrame, n: int) -> Iterator[str]:
    """labels: prompt x person. decided: prompts with a majority. n: prompts of the sheet."""
    people = Agreement(list(labels))
    for given in labels.to_dict("records"):
        people.add({name: bool(label) for name, label in given.items() if pd.notna(label)})
    yield f"labelled: {len(labels):,} of {counted(n, 'prompt')}; people: {len(people.raters)}"
    yield from people.lines("person")
    if split := len(labels) - decided:
        yield f"{counted(split, 'prompt')} without a majority of people, left out below"
    rows = found[found["against"] == MAJORITY]
    shown = rows[["where", "n"]].rename(columns={"where": "on"}).set_index(rows["rater"])
    shown[["agree", "95 % interval", "Cohen's kappa"]] = [_shown(row) for row in rows.itertuples()]
    title = f"against the {MAJORITY}"
    yield from table_lines(shown.rename_axis(index=None, columns=title))


def _shown(row: Any) -> tuple[str, str, str]:
    """Rate, interval and kappa of a row, for the terminal."""
    if row.where != "all":
        kappa = ""
    else:
        kappa = "undefined" if pd.isna(row.cohen_kappa) else f"{row.cohen_kappa:.3f}"
    if not row.n:
        return "-", "-", kappa
    return f"{row.rate_percent:.1f}%", f"{row.low_percent:.1f}% - {row.high_percent:.1f}%", kappa


def _no_formula(prompt: str) -> str:
    """A prompt that a spreadsheet would run as a formula, made plain text; the id stays that of the
    prompt itself, so nothing depends on this cell."""
    return "'" + prompt if prompt.startswith(("=", "+", "-", "@", "\t", "\r")) else prompt
