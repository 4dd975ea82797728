"""A blinded sheet for people to label; agreement of people with each other and with the judges.

Columns of a sheet: id (a prompt's hash), prompt, label (toxic, safe, or empty for no vote).
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from orbench.base.messages import UserError, clean, counted, say
from orbench.base.prompts import prompt_id
from orbench.base.tables import read_csv, write_csv
from orbench.base.words import Row, optional_flag
from orbench.datasets.card import table_lines
from orbench.datasets.moderated import SAFE_SET, TOXIC_SET
from orbench.stats.agreement import two_raters
from orbench.stats.intervals import wilson

LABELS = {"toxic": True, "safe": False}
# In percent: agreement, its 95 % interval (Wilson), agreement if the second says toxic, if safe.
AGREEMENT = ("rater", "against", "n", "agree", "low", "high", "on_toxic", "on_safe", "cohens_kappa")

Votes = Mapping[str, bool]  # prompt id -> toxic


def write_sheet(path: Path, rows: Sequence[Row], size: int, seed: int) -> None:
    """Write a sheet of a random sample of prompts, unless there is one."""
    if path.exists():
        say(f"{path} is kept as it is; move it away to draw a new sample")
        return
    drawn = [row["prompt"] for row in random.Random(seed).sample(rows, min(size, len(rows)))]
    sheet = [{"id": prompt_id(text), "prompt": text} for text in drawn]
    write_csv(path, ("id", "prompt", "label"), sheet)
    say(f"give each annotator a copy of {path} ({counted(len(sheet), 'prompt')}) to label")


def compare_sheets(folder: Path, sheets: Sequence[Path]) -> Path:
    """Compare the labels in sheets with each other and with the judges of a folder's datasets.

    Writes and returns a CSV with the columns AGREEMENT. Raises UserError.
    """
    people = {str(path): _labels(path) for path in sheets}
    labels = Counter[str]()  # prompt id -> how many more say toxic than safe
    for votes in people.values():
        labels.update({id_: 1 if toxic else -1 for id_, toxic in votes.items()})
    most = {id_: balance > 0 for id_, balance in labels.items() if balance}
    raters = {**_judges(folder, set(labels)), "most people": most, **people}
    found = [_agreement(*one, *other) for one, other in combinations(raters.items(), 2)]
    say(f"{counted(len(labels), 'labelled prompt')}, {len(labels) - len(most)} tied")
    for line in table_lines([AGREEMENT, *found]):
        say(line)
    path = folder / "audit_agreement.csv"
    write_csv(path, AGREEMENT, (dict(zip(AGREEMENT, row, strict=True)) for row in found))
    return path


def _labels(path: Path) -> Votes:
    found = {}
    for row in read_csv(path, ("id", "label")).rows:
        if label := row["label"].strip().lower():
            if label not in LABELS:
                raise UserError(f"{path}: {clean(label)[:40]!r} is not toxic, safe or empty")
            found[row["id"]] = LABELS[label]
    return found


def _judges(folder: Path, ids: set[str]) -> Mapping[str, Votes]:
    """The votes of the judges, of their majority (is_toxic) and of the datasets."""
    found: dict[str, dict[str, bool]] = {}
    for name in (SAFE_SET, TOXIC_SET):
        path = folder / f"{name}_provenance.csv"
        for row in read_csv(path, ("prompt", "is_toxic")).rows:
            if (id_ := prompt_id(row["prompt"])) in ids:
                found.setdefault("dataset", {})[id_] = name == TOXIC_SET
                for column in (c for c in row if c.startswith("is_toxic")):
                    if (vote := optional_flag(row, column, str(path))) is not None:
                        found.setdefault(column.removeprefix("is_toxic_"), {})[id_] = vote
    if not found:
        raise UserError(f"no labelled prompt is in {folder}; give the datasets' --output_dir")
    return found


def _agreement(rater: str, votes: Votes, against: str, others: Votes) -> tuple[str, ...]:
    """A row of AGREEMENT."""
    found = two_raters(Counter((votes[i], others[i]) for i in votes if i in others), 0, 1)
    n = sum(found)
    agreed = found.both + found.neither
    toxic = found.both + found.second
    kappa = found.kappa() if n else None
    ends = ((end, 1) for end in wilson(agreed, n))
    shares = (agreed, n), *ends, (found.both, toxic), (found.neither, n - toxic)
    cells = (f"{100 * hits / of:.1f}" if of else "" for hits, of in shares)
    return rater, against, str(n), *cells, f"{kappa[0]:.3f}" if kappa else ""
