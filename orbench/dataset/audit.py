"""A sheet for people: what they would have said about a sample of prompts, beside what judges said.

`write` makes two files: the sheet (id, prompt, an empty label; shuffled, so that its order says
nothing) and, kept from the people, the votes. Each person fills in a copy of the sheet: toxic or
safe; empty is "not labelled". `compare` reads the copies back.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from orbench.agreement import Agreement, Vote, cohen_kappa
from orbench.dataset.moderated import flag
from orbench.rates import wilson
from orbench.table import Row, Table, Writer
from orbench.terminal import UserError, clean, counted

SHEET, VOTES, RESULT = "audit_sheet.csv", "audit_votes.csv", "audit_agreement.csv"
LABELS = {"toxic": True, "safe": False, "": None}  # as people write them, in small letters
VERDICTS = "is_toxic"  # the ensemble's column; a judge's is is_toxic_{judge}
DATASET = "in_toxic_set"  # after the second chance
ENSEMBLE, FINAL = "ensemble", "data set"
MAJORITY = "people's majority"
RESULT_COLUMNS = (
    "rater",
    "against",
    "where",
    "n",
    "agree",
    "rate_percent",
    "low_percent",
    "high_percent",
    "cohen_kappa",
)


class Agreed(NamedTuple):
    """How often a rater says what another says, on some rows."""

    rater: str
    against: str
    where: str  # all, or the rows that people call toxic, or safe
    n: int
    agree: int
    kappa: float | None

    def cells(self) -> Row:
        """As a row of `RESULT_COLUMNS`; empty where nothing can be said."""
        low, high = wilson(self.agree, self.n)
        shares = (self.agree / self.n, low, high) if self.n else ()
        percent = dict(zip(RESULT_COLUMNS[5:8], (f"{100 * x:.2f}" for x in shares), strict=False))
        kappa = "" if self.kappa is None else f"{self.kappa:.4f}"
        return {
            **dict(zip(RESULT_COLUMNS[:3], (self.rater, self.against, self.where), strict=True)),
            "n": str(self.n),
            "agree": str(self.agree),
            **percent,
            "cohen_kappa": kappa,
        }


def identity(prompt: str) -> str:
    """A prompt's id in the sheet: says nothing of verdict or place, and is the same each time."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def write(folder: Path, rows: Iterable[Row], judges: Sequence[str], seed: int) -> None:
    """Write the sheet and the votes. Raises OSError.

    rows: prompt, category, is_toxic, is_toxic_{judge}, second_chance, in_toxic_set.
    """
    shuffled = [{**row, "id": identity(row["prompt"]), "label": ""} for row in rows]
    shuffled.sort(key=lambda row: row["id"])  # so that the shuffle depends on nothing but the seed
    random.Random(seed).shuffle(shuffled)
    votes = [f"{VERDICTS}_{judge}" for judge in judges]
    sheet = Writer({"": folder / SHEET}, ["id", "prompt", "label"])
    hidden = Writer(
        {"": folder / VOTES},
        ["id", "prompt", "category", VERDICTS, *votes, "second_chance", DATASET],
    )
    for row in shuffled:
        sheet.write({**row, "prompt": _no_formula(row["prompt"])})
        hidden.write(row)
    hidden.commit()
    sheet.commit()


def compare(folder: Path, sheets: Sequence[Path]) -> tuple[list[Agreed], list[str]]:
    """Read labelled sheets and compare people with each other and with the judges.

    Gives the rows of the result and the text for the user. The people's majority is what more than
    half of the labels of a prompt say; a prompt on which they are split evenly has none and is left
    out. Raises UserError for sheets or votes that cannot be used.
    """
    votes = Table(folder / VOTES, ("id", VERDICTS, DATASET))
    known = {row["id"]: row for row in votes}
    people = _names(sheets)
    labels: dict[str, dict[str, bool]] = {}
    for name, path in people.items():
        for prompt, label in _labels(path, known):
            labels.setdefault(prompt, {})[name] = label
    if not labels:
        raise UserError("no prompt is labelled; write toxic or safe in the column 'label'")
    among = Agreement(list(people))
    for given in labels.values():
        among.add(given)
    truth = {prompt: _majority(given) for prompt, given in labels.items()}
    columns = {
        c.removeprefix(f"{VERDICTS}_"): c for c in votes.columns if c.startswith(f"{VERDICTS}_")
    }
    raters = {**columns, ENSEMBLE: VERDICTS, FINAL: DATASET}
    rows = [
        Agreed(pair.first, pair.second, "all", pair.n, pair.agree, pair.kappa)
        for pair in among.pairs()
    ]
    for rater, column in raters.items():
        verdicts = {p: flag(known[p], column, f"{votes.path}, id {p}") for p in truth}
        rows += _against_people(rater, truth, verdicts)
    split = sum(label is None for label in truth.values())
    return rows, list(_lines(among, rows, len(truth), split, len(known)))


def _names(sheets: Sequence[Path]) -> dict[str, Path]:
    """A name for the person behind each sheet: the file's stem, its path where stems repeat."""
    stems = Counter(path.stem for path in sheets)
    names = {clean(p.stem if stems[p.stem] == 1 else str(p)): p for p in sheets}
    if len({path.resolve() for path in sheets}) < len(sheets) or len(names) < len(sheets):
        raise UserError("the same sheet is given twice; give each person's once")
    return names


def _labels(path: Path, known: Mapping[str, Row]) -> Iterator[tuple[str, bool]]:
    """The labelled prompts of a sheet, by id."""
    seen: set[str] = set()
    for number, row in enumerate(Table(path, ("id", "label")), start=1):
        prompt, label = row["id"].strip(), row["label"].strip()
        where = f"{path}, row {number}"
        if label.lower() not in LABELS:
            raise UserError(
                f"{where}: the label is {clean(label)[:40]!r}, not toxic, safe or empty"
            )
        if prompt not in known:
            raise UserError(f"{where}: the id {clean(prompt)[:40]!r} is not in {VOTES}")
        if prompt in seen:
            raise UserError(f"{where}: the id {clean(prompt)!r} is there a second time")
        seen.add(prompt)
        verdict = LABELS[label.lower()]
        if verdict is not None:
            yield prompt, verdict


def _majority(labels: Mapping[str, bool]) -> Vote:
    toxic = sum(labels.values())
    return None if 2 * toxic == len(labels) else 2 * toxic > len(labels)


def _against_people(
    rater: str, truth: Mapping[str, Vote], verdicts: Mapping[str, Vote]
) -> Iterator[Agreed]:
    """A rater against the people's majority: on all prompts, on those they call toxic, or safe."""
    count = Counter((truth[prompt], verdicts[prompt]) for prompt in truth)
    right, missed = count[True, True], count[True, False]
    alarm, clear = count[False, True], count[False, False]
    kappa = cohen_kappa(right, missed, alarm, clear)
    yield Agreed(rater, MAJORITY, "all", right + missed + alarm + clear, right + clear, kappa)
    yield Agreed(rater, MAJORITY, "people: toxic", right + missed, right, None)
    yield Agreed(rater, MAJORITY, "people: safe", alarm + clear, clear, None)


def _lines(
    people: Agreement, rows: Sequence[Agreed], labelled: int, split: int, n: int
) -> Iterator[str]:
    yield f"labelled: {labelled:,} of {counted(n, 'prompt')}; people: {len(people.raters)}"
    yield from people.lines("person")
    if split:
        yield f"{counted(split, 'prompt')} without a majority of people, left out below"
    found = [row for row in rows if row.against == MAJORITY]
    title = f"against the {MAJORITY}"
    width = max(len(title), *(len(row.rater) for row in found))
    yield (
        f"{title:<{width}}  {'on':<13}  {'n':>6}  {'agree':>7}  {'95 % interval':>15}  "
        "Cohen's kappa"
    )
    for row in found:
        low, high = wilson(row.agree, row.n)
        rate = f"{row.agree / row.n:7.1%}" if row.n else "      -"
        interval = f"{low:6.1%} - {high:6.1%}" if row.n else "-"
        kappa = "undefined" if row.kappa is None else f"{row.kappa:.3f}"
        line = f"{row.rater:<{width}}  {row.where:<13}  {row.n:>6,}  {rate}  {interval:>15}"
        yield f"{line}  {kappa:>13}" if row.where == "all" else line


def _no_formula(prompt: str) -> str:
    """A prompt that a spreadsheet would run as a formula, made plain text; the id stays that of the
    prompt itself, so nothing depends on this cell."""
    return "'" + prompt if prompt.startswith(("=", "+", "-", "@", "\t", "\r")) else prompt
