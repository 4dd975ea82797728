"""Blinded sheets of prompts for people to label, and what the labels say.

Columns of a sheet: id (a prompt's hash), prompt, label (toxic, safe, or empty for no vote). Its
key, which annotators must not see: id, prompt, toxicity (`panels.toxicity_scores`; empty: unknown)
and weight (how many prompts a drawn one stands for).
"""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from orbench.base.grouping import grouped
from orbench.base.messages import UserError, counted, say
from orbench.base.prompts import text_id
from orbench.base.tables import read_csv, write_csv
from orbench.base.words import Row, Rows, Texts, bad_cell
from orbench.judging.panels import LABEL_SCORES, coefficient
from orbench.stats.agreement import krippendorffs_alpha

SHEET = ("id", "prompt", "label")
KEY = ("id", "prompt", "toxicity", "weight")
RATINGS = ("prompt", "annotator", "label", "weight")
KEY_NAME = "sheet_key.csv"


def even_sample(categories: Sequence[str], size: int, seed: int) -> list[int]:
    """Draw places, as many of each category; what a small one lacks comes from the larger ones."""
    members = grouped(range(len(categories)), categories.__getitem__)
    drawn = []
    left = len(members)
    for category in sorted(members, key=lambda name: (len(members[name]), name)):
        places = members[category]
        share = min(len(places), size // left)
        drawn += random.Random(f"{seed} {category}").sample(places, share)
        size -= share
        left -= 1
    return drawn


def write_sheets(
    folder: Path, scores: Texts, strata: Sequence[str], size: int, annotators: int
) -> Path:
    """Draw prompts evenly over the strata; write a sheet per annotator, `sheet_1.csv` and so on,
    each in an order of its own, and their key. Return the key's path.

    scores: prompt -> toxicity. strata: each prompt's. Sheets that are there are kept.
    """
    key = folder / KEY_NAME
    sheets = [folder / f"sheet_{number}.csv" for number in range(1, annotators + 1)]
    if any(map(Path.exists, [key, *sheets])):
        say(f"{key} and its sheets are kept; move them away to draw again")
        return key
    places = even_sample(strata, size, seed=0)
    sizes = Counter(strata)
    drawn = Counter(strata[place] for place in places)
    prompts = list(scores)
    sample = []
    for place in places:
        prompt = prompts[place]
        stratum = strata[place]
        sample.append(
            {
                "id": text_id(prompt),
                "prompt": prompt,
                "toxicity": scores[prompt],
                "weight": f"{sizes[stratum] / drawn[stratum]:.6g}",
            }
        )
    write_csv(key, KEY, sample)
    for number, sheet in enumerate(sheets):
        random.Random(number).shuffle(sample)
        write_csv(sheet, SHEET, sample)
    say(
        f"{counted(len(sample), 'prompt')} to label: {', '.join(map(str, sheets))}; "
        f"keep {key.name} from annotators"
    )
    return key


def read_sheets(paths: Sequence[Path]) -> list[Row]:
    """Return the labels in sheets, as rows with the columns KEY and RATINGS.

    Raises UserError for an unknown label, for sheets without their key or without a label, and if
    an annotator has several.
    """
    key_path = paths[0].with_name(KEY_NAME)
    key = {row["id"]: row for row in read_csv(key_path, KEY).rows}
    sheets = {path: read_csv(path, ("id", "label")).rows for path in paths}
    for one, other in combinations(paths, 2):
        # Two people who agree on all prompts still have them in different orders.
        if sheets[one] == sheets[other] or one.stem == other.stem:
            raise UserError(
                f"{one} and {other} have the same labels or the same name; "
                "an annotator has one sheet"
            )
    rows = []
    for path, sheet in sheets.items():
        for row in sheet:
            label = row["label"].strip().lower()
            if label and label not in LABEL_SCORES:
                raise bad_cell(row, "label", str(path), "toxic, safe or empty")
            if row["id"] not in key:
                raise bad_cell(row, "id", str(path), f"in {key_path}")
            if label:
                rows.append(key[row["id"]] | {"annotator": path.stem, "label": label})
    if not rows:
        raise UserError("no prompt is labeled; write toxic or safe into the column label")
    return rows


def label_line(rows: Rows) -> str:
    """Return Krippendorff's alpha of the annotators. rows: as `read_sheets` returns them."""
    votes = defaultdict(list)
    for row in rows:
        votes[row["id"]].append(row["label"] == "toxic")
    annotators = {row["annotator"] for row in rows}
    alpha, n = krippendorffs_alpha(votes.values())
    return (
        f"{counted(len(votes), 'labeled prompt')}, {counted(len(annotators), 'annotator')}: "
        f"Krippendorff's alpha {coefficient(alpha)} "
        f"({counted(n, 'prompt')} with two or more labels)"
    )
