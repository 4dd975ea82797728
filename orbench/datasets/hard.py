"""Which prompts several families refuse: what alignment_checker/select_hard_prompts.py writes."""

from argparse import Namespace
from collections import Counter
from operator import itemgetter
from pathlib import Path

import numpy as np
from pandas import DataFrame, Series  # type: ignore[import-untyped]

from orbench.base.messages import UserError, clean, counted, say
from orbench.base.prompts import same, seed_id_of
from orbench.base.records import check_whole, failed_rows, is_scripted, read_record, under_test
from orbench.base.tables import (
    beside,
    check_outputs,
    check_single,
    make_folder,
    placed_rows,
    read_csv,
    write_csv,
)
from orbench.base.words import VERDICTS, Row, Rows, Texts, verdict_of
from orbench.datasets import card

YES = "yes"
VERDICT_BY_SIGN = {1: "refused", 0: "unscored", -1: "answered"}  # of refusals less answers

OWN_COLUMNS = ("prompt", "category", "seed_id", "families_refused", "families_unscored", "hard")

Prompts = dict[str, Row]  # prompt -> prompt, category, seed_id


def select(args: Namespace, output: Path) -> None:
    """Write the hard prompts, and beside them what each model did with all.

    Raises UserError and OSError.
    """
    table = beside(output, "_models.csv")
    make_folder(output.parent)
    card.check_ours(output, card.SELECTED_BY)
    check_outputs([output, table], args.result_files)
    families, rows = _decided(args)
    chosen = [row for row in rows if row["hard"] == YES]
    columns = card.columns_of(rows)
    write_csv(table, [*columns, *families, "families_refused", "families_unscored", "hard"], rows)
    inputs = args.result_files
    selectors = families.values()
    card.write_dataset(output, columns, chosen, inputs, args, card.SELECTED_BY, selectors)
    card.list_datasets(output.parent)
    _say_selection(families, rows)


def _decided(args: Namespace) -> tuple[Texts, Rows]:
    """Return the models' families, and the rows of the table `_models.csv`. Raises UserError."""
    least = args.min_families
    given = {}
    for pair in args.family:
        file, _, name = pair.rpartition("=")
        given[Path(file)] = name
        if not name or Path(file) not in args.result_files:
            raise UserError("--family: write FILE=NAME, FILE as in --result_files")
    texts = Prompts()
    families = {}
    balances = {}
    for path in args.result_files:
        model, family, balance = _results(path, given.get(path, ""), texts)
        if model in families:
            raise UserError(f"{path} is a second file for {model}; give only one")
        if model in OWN_COLUMNS:
            raise UserError(f"{path}: {model} is no name for a model here; rename the file")
        families[model] = family
        balances[model] = balance
    covered = set(families.values())
    if len(covered) < least:
        names = ", ".join(sorted(covered))
        raise UserError(f"--min_families {least}, but the files cover only {names}")
    common = DataFrame(balances).reindex(texts).dropna()  # prompts x models
    if len(common) < len(texts):
        sizes = ", ".join(f"{model} has {len(balance):,}" for model, balance in balances.items())
        say(f"selecting among {counted(len(common), 'prompt')} common to all files: {sizes}")
    if common.empty:
        raise UserError("no prompt is in all of the files")
    refusing = _count_families(common > 0, families)
    possible = _count_families(common >= 0, families)
    table = np.sign(common).replace(VERDICT_BY_SIGN)
    table["families_refused"] = refusing
    table["families_unscored"] = possible - refusing
    table["hard"] = np.select([refusing >= least, possible >= least], [YES, "undecidable"], "no")
    cells = table.astype(str).to_dict("index")
    return families, [texts[text] | cells[text] for text in cells]


def _count_families(models: DataFrame, families: Texts) -> Series:
    """Return in how many families at least one model is marked. models: prompts x models."""
    return models.T.groupby(families).any().sum()


def _results(path: Path, family: str, texts: Prompts) -> tuple[str, str, Counter[str]]:
    """Return the model, its family, and of each prompt the refusals less the answers; add its
    prompts to the texts. family: "" for the recorded one. Raises UserError.

    Of several samples the majority counts; a tie is unscored.
    """
    table = read_csv(path, ("prompt", "category"))
    record = read_record(path)
    check_single(table)
    check_whole(path, record)
    if is_scripted(record):
        say(f"{path}: a selection by the offline scripted model measures nothing")
    balance = Counter[str]()
    for place, row in placed_rows(path, table.rows):
        refused = VERDICTS[verdict_of(row, place)]
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
    return model, family, balance


def _say_selection(families: Texts, rows: Rows) -> None:
    """Say what each model did, and how many prompts are hard."""
    for model, family in families.items():
        counts = Counter(map(itemgetter(model), rows))
        parts = [f"{word} {counts[word]:,}" for word in VERDICT_BY_SIGN.values()]
        say(f"{model} ({family}): {' · '.join(parts)}")
    hard = Counter(map(itemgetter("hard"), rows))
    say(f"hard {hard[YES]:,} · not {hard['no']:,} · undecidable {hard['undecidable']:,}, left out")
