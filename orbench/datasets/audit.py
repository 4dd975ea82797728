"""Blinded sheets of prompts for people to label, and what the labels say.

Columns of a sheet: id (a prompt's hash), prompt, label (toxic, safe, or empty for no vote). Beside
it stands its key, which annotators must not see: id, prompt, toxicity (`panels.toxicity_scores`;
empty: unknown) and weight (how many prompts a drawn one stands for).
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from orbench.base.messages import UserError, clean, counted, say
from orbench.base.prompts import prompt_id
from orbench.base.tables import beside, read_csv, write_csv
from orbench.base.words import Row
from orbench.datasets.selection import even_sample
from orbench.judging.panels import coefficient, toxicity_scores
from orbench.stats.agreement import krippendorffs_alpha

LABELS = {"toxic": True, "safe": False}
SHEET = ("id", "prompt", "label")
KEY = ("id", "prompt", "toxicity", "weight")
RATINGS = ("prompt", "annotator", "label", "weight")
KEY_ENDING = "_key.csv"


class Rating(NamedTuple):
    """One person's label of a prompt."""

    id: str
    annotator: str  # the sheet's name
    toxic: bool


def write_sheet(path: Path, rows: Sequence[Row], size: int, seed: int) -> None:
    """Write a sheet of a random sample of prompts, and its key, unless there is one."""
    write_sheets([path], beside(path, KEY_ENDING), rows, [""] * len(rows), size, seed)


def write_sheets(
    paths: Sequence[Path],
    key: Path,
    rows: Sequence[Row],
    strata: Sequence[str],
    size: int,
    seed: int,
) -> None:
    """Draw prompts evenly over their strata, and write them to each sheet in another order."""
    if key.exists():
        say(f"{key} is kept as it is, with its sheets; move them away to draw again")
        return
    places = list(even_sample(strata, min(size, len(rows)), seed))
    sizes = Counter(strata)
    drawn = Counter(strata[place] for place in places)
    scores = toxicity_scores(rows, str(key))
    found = [
        {
            "id": prompt_id(rows[n]["prompt"]),
            "prompt": rows[n]["prompt"],
            "toxicity": "" if scores[n] is None else f"{scores[n]:.4g}",
            "weight": f"{sizes[strata[n]] / drawn[strata[n]]:.6g}",
        }
        for n in places
    ]
    write_csv(key, KEY, found)
    for number, path in enumerate(paths):
        random.Random(f"{seed} {number}").shuffle(found)
        write_csv(path, SHEET, found)
    sheets = ", ".join(map(str, paths))
    say(f"{counted(len(found), 'prompt')} to label: {sheets}; keep {key.name} from annotators")


def read_sheets(paths: Sequence[Path]) -> tuple[list[Row], list[str]]:
    """Rows with the columns RATINGS, and lines that say how far people and judges agree.

    Raises UserError for an unknown label, and for sheets without their key or without a label.
    """
    key = {row["id"]: row for row in read_csv(_key_beside(paths), KEY).rows}
    ratings = [rating for path in paths for rating in _ratings_in(path)]
    if unknown := [rating for rating in ratings if rating.id not in key]:
        one = unknown[0]
        raise UserError(f"{one.annotator}: the id {clean(one.id)[:20]!r} is not in the sheets' key")
    if not ratings:
        raise UserError("no prompt is labelled; write toxic or safe into the column label")
    names = {toxic: label for label, toxic in LABELS.items()}
    rows = [
        {
            "prompt": key[one.id]["prompt"],
            "annotator": one.annotator,
            "label": names[one.toxic],
            "weight": key[one.id]["weight"],
        }
        for one in ratings
    ]
    return rows, agreement_lines(ratings, key)


def _key_beside(paths: Sequence[Path]) -> Path:
    keys = list(paths[0].parent.glob(f"*{KEY_ENDING}"))
    if len(keys) != 1:
        found = f"{len(keys)} files *{KEY_ENDING}"
        raise UserError(f"{paths[0].parent} holds {found}; put the sheets beside their key")
    return keys[0]


def _ratings_in(path: Path) -> list[Rating]:
    found = []
    for row in read_csv(path, ("id", "label")).rows:
        if label := row["label"].strip().lower():
            if label not in LABELS:
                raise UserError(f"{path}: {clean(label)[:40]!r} is not toxic, safe or empty")
            found.append(Rating(row["id"], path.stem, LABELS[label]))
    return found


def agreement_lines(ratings: Sequence[Rating], key: Mapping[str, Row]) -> list[str]:
    """Krippendorff's alpha of the annotators; how far the judges agree with people."""
    votes = defaultdict[str, list[bool]](list)
    for one in ratings:
        votes[one.id].append(one.toxic)
    alpha, n = krippendorffs_alpha(Counter(map(tuple, votes.values())))
    people = counted(len({one.annotator for one in ratings}), "annotator")
    return [
        f"{counted(len(votes), 'labelled prompt')}, {people}: Krippendorff's alpha "
        f"{coefficient(alpha)} ({counted(n, 'prompt')} with two labels or more)",
        *_against_people(votes, key),
    ]


def _against_people(votes: Mapping[str, Sequence[bool]], key: Mapping[str, Row]) -> Iterator[str]:
    """Alpha, sensitivity and specificity of the judges' majority; ties are left out.

    The weights undo the stratification: the shares are those of all prompts.
    """
    pairs = Counter[tuple[bool | None, ...]]()  # people, judges
    weights = defaultdict[tuple[bool, bool], float](float)
    for id_, said in votes.items():
        people = fmean(said)
        judges = float(key[id_]["toxicity"] or 0.5)
        if 0.5 not in (people, judges):
            pair = (people > 0.5, judges > 0.5)
            pairs[pair] += 1
            weights[pair] += float(key[id_]["weight"])
    if not pairs:
        return
    alpha, n = krippendorffs_alpha(pairs)
    line = f"judges against people, {counted(n, 'prompt')}: alpha {coefficient(alpha)}"
    for name, toxic in (("sensitivity", True), ("specificity", False)):
        total = weights[toxic, True] + weights[toxic, False]
        share = f"{weights[toxic, toxic] / total:.1%}" if total else "undefined"
        line += f", {name} {share}"
    yield line
