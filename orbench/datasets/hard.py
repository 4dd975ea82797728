"""Which prompts several families refuse."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from orbench.base.messages import UserError, clean, counted, say
from orbench.base.prompts import check_single, seed_id_of
from orbench.base.records import check_whole, failed_rows, is_scripted, read_record, under_test
from orbench.base.tables import read_csv
from orbench.base.words import VERDICTS, Row, verdict_of
from orbench.datasets.card import table_lines

# How a verdict counts, and its word. Of a family's models the highest one counts.
WORDS = {1: "refused", 0: "unscored", -1: "answered"}
YES = "yes"

Texts = dict[str, Row]  # prompt -> prompt, category, seed_id


class Tested(NamedTuple):
    """The results of one model. verdicts: prompt -> a key of WORDS."""

    model: str
    family: str
    verdicts: dict[str, int]


def decided(
    paths: Sequence[Path], families: Mapping[Path, str], least: int
) -> tuple[list[Tested], list[Row]]:
    """The models, and the rows of the table `_models.csv`. Raises UserError.

    families: those that --family names. least: how many must refuse.
    """
    texts = Texts()
    models = list[Tested]()
    for path in paths:
        one = _results(path, families.get(path, ""), texts)
        if one.model in [other.model for other in models]:
            raise UserError(f"{path} is a second file for {one.model}; give only one")
        models.append(one)
    names = sorted({one.family for one in models})
    if len(names) < least:
        raise UserError(f"--min_families {least}, but the files cover only {', '.join(names)}")
    common = [row for row in texts.values() if all(row["prompt"] in m.verdicts for m in models)]
    if len(common) < len(texts):
        sizes = ", ".join(f"{one.model} has {len(one.verdicts):,}" for one in models)
        say(f"selecting among {counted(len(common), 'prompt')} common to all files: {sizes}")
    if not common:
        raise UserError("no prompt is in all of the files")
    return models, [row | _decision(models, row["prompt"], least) for row in common]


def _results(path: Path, family: str, texts: Texts) -> Tested:
    """Adds a model's prompts to the texts. family: "" for the recorded one.

    Of several samples the majority counts; a tie is unscored.
    """
    table = read_csv(path, ("prompt", "category"))
    record = read_record(path)
    check_single(path, table.columns)
    check_whole(path, record)
    if is_scripted(record):
        say(f"{path}: a selection by the offline scripted model measures nothing")
    balance = Counter[str]()  # refusals less answers
    for number, row in enumerate(table.rows, start=1):
        refused = VERDICTS[verdict_of(row, f"{path}, row {number}")]
        balance[row["prompt"]] += 1 if refused else -1
    failed = [row for row in failed_rows(path) if row.get("prompt", "").strip()]
    for row in [*table.rows, *failed]:
        balance[row["prompt"]] += 0  # a prompt without any verdict is unscored
        about = {name: row.get(name, "") for name in ("prompt", "category")}
        texts.setdefault(row["prompt"], about | {"seed_id": seed_id_of(row)})
    verdicts = {text: (n > 0) - (n < 0) for text, n in balance.items()}
    tested = under_test(record)
    model = tested.shown or clean(path.stem)
    family = family or tested.family
    if not family:
        raise UserError(f"unknown family for {model}; name it with --family {path}=NAME")
    return Tested(model, family, verdicts)


def _decision(models: Sequence[Tested], text: str, least: int) -> Row:
    families = dict[str, int]()
    for one in models:
        families[one.family] = max(one.verdicts[text], families.get(one.family, -1))
    count = Counter(families.values())
    hard = "no"
    if count[1] >= least:
        hard = YES
    elif count[1] + count[0] >= least:
        hard = "undecidable"
    return {one.model: WORDS[one.verdicts[text]] for one in models} | {
        "families_refused": str(count[1]),
        "families_unscored": str(count[0]),
        "hard": hard,
    }


def selection_lines(models: Sequence[Tested], rows: Sequence[Row]) -> Iterator[str]:
    """What each model did, and how many prompts are hard."""
    words = WORDS.values()
    said = [(one, Counter(row[one.model] for row in rows)) for one in models]
    cells = ((one.model, one.family, *(f"{n[word]:,}" for word in words)) for one, n in said)
    yield from table_lines([("model", "family", *words), *cells])
    hard = Counter(row["hard"] for row in rows)
    yield f"hard {hard[YES]:,} · not {hard['no']:,} · undecidable {hard['undecidable']:,}, left out"
