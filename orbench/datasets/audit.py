"""Blinded sheets of prompts or responses for people to label, and what the labels say.

Columns of a sheet: id (a prompt's hash), prompt, label (toxic, safe, or empty for no vote). Its
key, which annotators must not see: id, prompt, toxicity (`panels.toxicity_scores`; empty: unknown)
and weight (how many prompts a drawn one stands for). A sheet of responses has a column response,
too, and its key tells the file of each. Stage 5 reads its labels (`--validate_against`).
"""

import random
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

from orbench.base.grouping import grouped
from orbench.base.messages import UserError, counted, say
from orbench.base.prompts import ids_of, prompt_id_of, response_id_of, text_id
from orbench.base.records import failed_rows
from orbench.base.tables import Paths, Table, check_single, make_folder, read_csv, write_csv
from orbench.base.words import VERDICTS, Row, Rows, Texts, Words, bad_cell, verdict_of
from orbench.judging.panels import LABEL_SCORES, coefficient, toxicity_scores, votes_in
from orbench.stats.agreement import krippendorffs_alpha

KEY = ("id", "prompt", "toxicity", "weight")
# What people label, and the columns of its key.
KEYS = {"prompt": KEY, "response": ("id", "prompt", "file")}
RATINGS = ("prompt", "annotator", "label", "weight")
KEY_NAME = "sheet_key.csv"


def even_sample(categories: Words, size: int, seed: int) -> dict[int, float]:
    """Draw places, as many of each category; what a small one lacks comes from the larger ones.

    Return how many places of its category a drawn one stands for.
    """
    members = grouped(range(len(categories)), categories.__getitem__)
    turns = []
    for category, places in members.items():
        random.Random(f"{seed} {category}").shuffle(places)
        turns += [(turn, category, place) for turn, place in enumerate(places)]
    drawn = sorted(turns)[:size]
    shares = Counter(category for _, category, _ in drawn)
    return {place: len(members[category]) / shares[category] for _, category, place in drawn}


def drawn_prompts(path: Path, results: Paths, size: int) -> list[Row]:
    """Draw prompts of a file evenly over their toxicity scores, and over those that a model refuses
    in its results and those that none does. Return the rows of their key. Raises UserError.
    """
    refused = set()
    for result in results:
        for row in read_csv(result, ["prompt"]).rows:
            if VERDICTS[verdict_of(row, str(result))]:
                refused.add(row["prompt"])
    table = read_csv(path, ["prompt"])
    check_single(table)
    scores = _scores_in(table)
    strata = [f"{score} {prompt in refused}" for prompt, score in scores.items()]
    prompts = list(scores)
    sample = []
    for place, weight in even_sample(strata, size, seed=0).items():
        prompt = prompts[place]
        sample.append(
            {
                "id": text_id(prompt),
                "prompt": prompt,
                "toxicity": scores[prompt],
                "weight": f"{weight:.6g}",
            }
        )
    return sample


def _scores_in(table: Table) -> Texts:
    """Return the toxicity score of each prompt that has votes from all judges; "" without votes."""
    if "is_toxic" not in table.columns:
        return {row["prompt"]: "" for row in table.rows}
    shares = toxicity_scores(votes_in(table, "")).dropna()
    scores = {}
    for row in table.rows:
        prompt = prompt_id_of(row)
        if prompt in shares:
            scores[row["prompt"]] = f"{shares[prompt]:.4g}"
    if not scores:
        raise UserError(f"{table.path} has no prompt with votes from all judges")
    say(f"{counted(len(scores), 'prompt')} with a toxicity score, of {len(table.rows):,} rows")
    return scores


def drawn_responses(paths: Paths, size: int) -> list[Row]:
    """Draw prompts that are in all files, by their hashes. Return the rows of the key, with the
    responses to each of them, unscored ones included.
    """
    files = {}
    for path in paths:
        table = read_csv(path, ["prompt", "response"])
        check_single(table)
        table.rows += [row for row in failed_rows(path) if row.get("response")]
        files[path] = table.rows
    drawn = sorted(set.intersection(*map(ids_of, files.values())))[:size]
    return [
        row | {"id": response_id_of(row), "file": str(path), "label": ""}
        for path, rows in files.items()
        for row in rows
        if prompt_id_of(row) in drawn
    ]


def write_sheets(folder: Path, noun: str, sample: Rows, annotators: int) -> Path:
    """Write a sheet per annotator, `sheet_1.csv` and so on, each in an order of its own, and their
    key. Return the key's path. Sheets that are there are kept.

    noun: of KEYS. sample: the rows of the key.
    """
    key = folder / KEY_NAME
    sheets = [folder / f"sheet_{number}.csv" for number in range(1, annotators + 1)]
    if any(map(Path.exists, [key, *sheets])):
        say(f"{key} and its sheets are kept; move them away to draw again")
        return key
    make_folder(folder)
    write_csv(key, KEYS[noun], sample)
    columns = [*dict.fromkeys(["id", "prompt", noun, "label"])]  # prompts: no further column
    rows = [*{row["id"]: row for row in sample}.values()]  # two models may respond alike
    for number, sheet in enumerate(sheets):
        random.Random(number).shuffle(rows)
        write_csv(sheet, columns, rows)
    say(
        f"{counted(len(rows), noun)} to label: {', '.join(map(str, sheets))}; "
        f"keep {key.name} from annotators"
    )
    return key


def read_sheets(paths: Paths) -> list[Row]:
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
