"""Blinded sheets of prompts for people to label, and what the labels say.

Columns of a sheet: id (a prompt's hash), prompt, label (toxic, safe, or empty for no vote). Its
key, which annotators must not see: id, prompt, toxicity (`panels.toxicity_scores`; empty: unknown)
and weight (how many prompts a drawn one stands for).
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from orbench.base.messages import UserError, clean, counted, say
from orbench.base.prompts import prompt_id
from orbench.base.tables import beside, read_csv, write_csv
from orbench.base.words import Row
from orbench.judging.panels import coefficient, toxicity_scores
from orbench.stats.agreement import krippendorffs_alpha

SHEET = ("id", "prompt", "label")
KEY = ("id", "prompt", "toxicity", "weight")
RATINGS = ("prompt", "annotator", "label", "weight")
KEY_ENDING = "_key.csv"


def even_sample(categories: Sequence[str], size: int, seed: int) -> Iterator[int]:
    """Draw places, as many of each category; what a small one lacks comes from the larger ones."""
    members: dict[str, list[int]] = {}
    for place, category in enumerate(categories):
        members.setdefault(category, []).append(place)
    smallest_first = sorted(members.items(), key=lambda item: (len(item[1]), item[0]))
    for done, (category, found) in enumerate(smallest_first):
        share = min(len(found), size // (len(members) - done))
        size -= share
        yield from random.Random(f"{seed} {category}").sample(found, share)


def write_sheets(
    path: Path, rows: Sequence[Row], size: int, strata: Sequence[str] = (), annotators: int = 0
) -> None:
    """Draw prompts evenly over the strata of the rows; write a sheet, and its key beside it.

    With annotators, each gets a sheet in an order of its own, `<stem>_1.csv` and so on.
    """
    key = beside(path, KEY_ENDING)
    if key.exists():
        say(f"{key} and its sheets are kept; move them away to draw again")
        return
    strata = strata or [""] * len(rows)
    places = list(even_sample(strata, min(size, len(rows)), seed=0))
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
    sheets = [beside(path, f"_{n + 1}.csv") for n in range(annotators)] or [path]
    for number, sheet in enumerate(sheets):
        random.Random(number).shuffle(found)
        write_csv(sheet, SHEET, found)
    names = ", ".join(map(str, sheets))
    say(f"{counted(len(found), 'prompt')} to label: {names}; keep {key.name} from annotators")


def read_sheets(paths: Sequence[Path]) -> list[Row]:
    """The labels in sheets, as rows with the columns KEY and RATINGS.

    Raises UserError for an unknown label, and for sheets without their key or without a label.
    """
    folder = paths[0].parent
    keys = list(folder.glob(f"*{KEY_ENDING}"))
    if len(keys) != 1:
        found = f"{len(keys)} files *{KEY_ENDING}"
        raise UserError(f"{folder} holds {found}; put the sheets beside their key")
    drawn = {row["id"]: row for row in read_csv(keys[0], KEY).rows}
    rows = []
    for path in paths:
        for row in read_csv(path, ("id", "label")).rows:
            label = row["label"].strip().lower()
            if label not in ("toxic", "safe", ""):
                raise UserError(f"{path}: {clean(label)[:40]!r} is not toxic, safe or empty")
            if row["id"] not in drawn:
                raise UserError(f"{path}: the id {clean(row['id'])[:20]!r} is not in {keys[0]}")
            if label:
                rows.append(drawn[row["id"]] | {"annotator": path.stem, "label": label})
    if not rows:
        raise UserError("no prompt is labelled; write toxic or safe into the column label")
    return rows


def label_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Krippendorff's alpha of the annotators; how far the judges agree with people."""
    votes = defaultdict[str, list[bool]](list)
    for row in rows:
        votes[row["id"]].append(row["label"] == "toxic")
    alpha, n = krippendorffs_alpha(Counter(map(tuple, votes.values())))
    people = counted(len({row["annotator"] for row in rows}), "annotator")
    several = f"{counted(n, 'prompt')} with two or more labels"
    agree = f"Krippendorff's alpha {coefficient(alpha)} ({several})"
    yield f"{counted(len(votes), 'labelled prompt')}, {people}: {agree}"
    yield from _against_people(votes, {row["id"]: row for row in rows})


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
    alpha, n = krippendorffs_alpha(pairs)
    line = f"judges against people, {counted(n, 'prompt')}: alpha {coefficient(alpha)}"
    for name, toxic in (("sensitivity", True), ("specificity", False)):
        total = weights[toxic, True] + weights[toxic, False]
        share = f"{weights[toxic, toxic] / total:.1%}" if total else "undefined"
        line += f", {name} {share}"
    yield line
