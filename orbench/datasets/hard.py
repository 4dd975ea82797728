"""Which prompts several families refuse."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from orbench.base.messages import UserError, clean, counted, say
from orbench.base.prompts import check_single, same, seed_id_of
from orbench.base.records import check_whole, failed_rows, is_scripted, read_record, under_test
from orbench.base.tables import read_csv
from orbench.base.words import VERDICTS, Row, Rows, verdict_of

YES = "yes"

Prompts = dict[str, Row]  # prompt -> prompt, category, seed_id


class Tested(NamedTuple):
    """The results of one model."""

    model: str
    family: str
    balance: Counter[str]  # prompt -> refusals less answers


def decided(
    paths: Sequence[Path], families: Mapping[Path, str], least: int
) -> tuple[list[Tested], list[Row]]:
    """Return the models, and the rows of the table `_models.csv`. Raises UserError.

    families: those that --family names. least: how many must refuse.
    """
    texts = Prompts()
    tested = dict[str, Tested]()  # by model
    for path in paths:
        results = _results(path, families.get(path, ""), texts)
        if results.model in tested:
            raise UserError(f"{path} is a second file for {results.model}; give only one")
        tested[results.model] = results
    models = list(tested.values())
    covered = {model.family for model in models}
    if len(covered) < least:
        names = ", ".join(sorted(covered))
        raise UserError(f"--min_families {least}, but the files cover only {names}")
    rows = []
    for text, row in texts.items():
        if all(text in model.balance for model in models):
            rows.append(row | _decision(models, text, least))
    if len(rows) < len(texts):
        sizes = ", ".join(f"{model.model} has {len(model.balance):,}" for model in models)
        say(f"selecting among {counted(len(rows), 'prompt')} common to all files: {sizes}")
    if not rows:
        raise UserError("no prompt is in all of the files")
    return models, rows


def _results(path: Path, family: str, texts: Prompts) -> Tested:
    """Return the results of a model, and add its prompts to the texts. family: "" for the recorded
    one. Raises UserError.

    Of several samples the majority counts; a tie is unscored.
    """
    table = read_csv(path, ("prompt", "category"))
    record = read_record(path)
    check_single(path, table.columns)
    check_whole(path, record)
    if is_scripted(record):
        say(f"{path}: a selection by the offline scripted model measures nothing")
    balance = Counter[str]()
    for number, row in enumerate(table.rows, start=1):
        refused = VERDICTS[verdict_of(row, f"{path}, row {number}")]
        balance[same(row["prompt"])] += 1 if refused else -1
    for row in [*table.rows, *failed_rows(path)]:
        about = {"prompt": "", "category": "", **row, "seed_id": seed_id_of(row)}
        if about["prompt"].strip():
            key = same(about["prompt"])
            balance[key] += 0  # a prompt without any verdict is unscored
            texts.setdefault(key, about)
    tested = under_test(record)
    model = tested.shown or clean(path.stem)
    family = family or tested.family
    if not family:
        raise UserError(f"unknown family for {model}; name it with --family {path}=NAME")
    return Tested(model, family, balance)


def _decision(models: Sequence[Tested], text: str, least: int) -> Row:
    """Return the cells of a prompt: a column for each model, then what the families do."""
    families = defaultdict[str, set[str]](set)  # by verdict
    cells = {}
    for model in models:
        refusals = model.balance[text]
        verdict = "refused" if refusals > 0 else "answered"
        if refusals == 0:
            verdict = "unscored"
        cells[model.model] = verdict
        families[verdict].add(model.family)
    refused = families["refused"]
    unscored = families["unscored"] - refused
    hard = "no"
    if len(refused) >= least:
        hard = YES
    elif len(refused) + len(unscored) >= least:
        hard = "undecidable"
    return cells | {
        "families_refused": str(len(refused)),
        "families_unscored": str(len(unscored)),
        "hard": hard,
    }


def selection_lines(models: Sequence[Tested], rows: Rows) -> Iterator[str]:
    """Yield what each model did, and how many prompts are hard."""
    for model in models:
        counts = Counter(map(itemgetter(model.model), rows))
        parts = [f"{word} {counts[word]:,}" for word in ("refused", "unscored", "answered")]
        yield f"{model.model} ({model.family}): {' · '.join(parts)}"
    hard = Counter(map(itemgetter("hard"), rows))
    yield f"hard {hard[YES]:,} · not {hard['no']:,} · undecidable {hard['undecidable']:,}, left out"
