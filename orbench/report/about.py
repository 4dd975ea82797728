"""What the run record beside a result file says: model, settings, judge, prompts, and what speaks
against the result.
"""

from collections import Counter
from contextlib import suppress
from math import nan
from pathlib import Path

from orbench.base.messages import UserError, clean, counted
from orbench.base.prompts import is_no_value, prompt_set_hash
from orbench.base.records import (
    Record,
    UnderTest,
    failed_hash,
    passports_in,
    selectors,
    under_test,
)
from orbench.base.tables import Table, sha256_of
from orbench.base.words import SIDES, Json, Lines, Rows, Side, Words, refused_by_api
from orbench.models.providers import family_of
from orbench.models.substitutes import is_same_model
from orbench.report.results import About, Source

DEMO = "demo prompts: too few to say anything about a model"
BASELINE = " (baseline)"  # behind the name of a model
UNKNOWN_JUDGE = "unknown judge"
NO_RECORD = "no run record: settings, date and unscored rows are unknown"
EDITED = "edited since its stage wrote it"
CERTAIN = 0.8  # with fewer certain verdicts, the rules alone rank nobody


def about(
    source: Source, record: Record, table: Table, ids: Counter[str], validation: Json | None
) -> About:
    """Return what the results in a file share. ids: of the models that answered. validation: see
    `validation_of`.
    """
    tested = under_test(record)
    model = model_of(source, tested)
    called = source.model or tested.label or tested.name
    baseline = BASELINE if source.baseline else ""
    family = tested.family or family_of(model)
    by_judge = "answer_category" in table.columns
    judges = [one.get("id", "") for one in record.get("models", []) if by_judge]
    judge = _judge(record, by_judge, judges)
    certain = _certain(record)
    days = {_in(record, "under_test", time)[:10] for time in ("start", "end")} - {""}
    unscored_known, is_edited = _as_written(source.path, record)
    doubt = next(_doubts(record, family, judge, table.rows), "")
    notes = record.get("notes", []) if record else [NO_RECORD]
    return About(
        file=str(source.path),
        model=model + baseline,
        called=called + baseline,
        is_baseline=source.baseline,
        settings=tested.settings,
        family=family,
        prompts_from=_in(record, "source", "repository") or str(source.path),
        judge=judge,
        judge_version=_in(record, "versions", "rules"),
        template=_in(record, "settings", "prompt file"),
        days=tuple(sorted(days)),
        certain=certain,
        unscored_known=unscored_known,
        doubt=doubt,
        is_demo=doubt == DEMO,
        is_edited=is_edited,
        unranked=tuple(_unranked(record, judges, certain)),
        cautions=tuple(_cautions(validation, is_edited, family, judges, ids)),
        notes=tuple(map(clean, filter(None, [*notes, *_passports(source.path, record)]))),
    )


def _passports(csv: Path, record: Record) -> Lines:
    """Yield what the passports in the folder of a CSV and those above say of its judge."""
    for folder in csv.resolve().parents:
        with suppress(UserError):  # another program's file of that name
            for passport in passports_in(folder).values():
                if passport.get("settings") and _decider(passport) == _decider(record):
                    yield passport.get("note", "")


def _decider(record: Record) -> list[object]:
    """Return what decides: the judge, how it is asked and read, the versions of the suite and of
    the rules, and for each model what answered and what it was asked without.
    """
    versions = record.get("versions", {})
    parts = [record.get("settings"), record.get("parameters")]
    parts += [versions.get("orbench"), versions.get("rules")]
    for model in record.get("models", []):
        parts.append({name.partition(" via ")[0] for name in model.get("served_by", ())})
        parts.append(set(model.get("left_out_parameters", ())))
    return parts


def _certain(record: Record) -> float:
    """Return the share of the rules' verdicts that are certain; NaN without one."""
    findings = record.get("findings", {})
    return float(findings.get("certain", nan) / (findings.get("by_rules") or nan))


def model_of(source: Source, tested: UnderTest) -> str:
    """Return the model of a file as reports show it: the user's name for it, with the record's
    unless it ends in that; without one the record's.
    """
    name = source.model or tested.label
    if name:
        tested = tested._replace(asked=name, id=tested.name.rpartition("/")[2])
    return tested.shown


def _as_written(path: Path, record: Record) -> tuple[bool, bool]:
    """Return whether the unscored rows of a file are known, and whether it was edited: it has
    other hashes than the record says, or the record says none.
    """
    hashes = {"csv": sha256_of(path), "failed": failed_hash(path)}
    written = record.get("output", {})
    # The file of failed rows is there, or the stage wrote none.
    is_known = hashes["failed"] or written.get("failed") == ""
    return bool(is_known), bool(record) and written != hashes


def _doubts(record: Record, family: str, judge: str, rows: Rows) -> Lines:
    """Yield why a result is neither ranked nor compared, the most important reason first."""
    if judge == UNKNOWN_JUDGE:
        yield judge
    if family in selectors(record):
        yield f"selected: {family} was among the families that chose the prompts"
    if record.get("scripted"):
        yield "scripted: measures nothing"
    if record.get("scripted_input"):
        yield DEMO
    if record.get("complete") is False:
        yield "partial: some rows have not been asked yet"
    texts = [row.get("response", "?") for row in rows if not refused_by_api(row)]
    empty = sum(not text.strip() or is_no_value(text) for text in texts)
    if empty > len(texts) / 2:
        yield f"{empty:,} of {len(texts):,} responses are empty"


def _unranked(record: Record, judges: Words, certain: float) -> Lines:
    """Yield why a result is not ranked. certain: the share of the rules' verdicts."""
    said = _in(record, "under_test", "unranked")
    if said:
        yield said
    id_ = under_test(record).id  # ids that do not tell leave no result out
    if id_ and any(is_same_model(id_, judge) for judge in judges):
        yield "judged by itself"
    elif not judges and certain < CERTAIN:
        yield f"only {100 * certain:.0f} % of the rules' verdicts are certain"


def _cautions(
    validation: Json | None, is_edited: bool, family: str, judges: Words, ids: Counter[str]
) -> Lines:
    """Yield what stands in findings. ids: of the models that answered."""
    if family and family in map(family_of, judges):
        yield "judged by its own family"
    if is_edited:
        yield EDITED
    if validation is None:
        yield "the validation beside it is damaged or was made for other results, and is not used"
    if len(ids) > 1:
        models = [f"{clean(id_)} ({counted(n, 'row')})" for id_, n in ids.most_common()]
        yield f"answered by {', '.join(models)}"


def _judge(record: Record, by_judge: bool, judges: Words) -> str:
    """Return the rules, or a judge with its model and what is not as usual."""
    if not record:
        return UNKNOWN_JUDGE
    parameters = record.get("parameters", {})
    name = parameters.get("check_model", "") if by_judge else "stage 4 rules"
    if judges and not name.endswith(judges[0]):
        name += f" ({judges[0]})"
    parts = [name, parameters.get("judge_settings")]
    if parameters.get("rubric") == "graded":
        parts.append("graded")
    phrases = parameters.get("refusal_phrases")
    if phrases:
        parts.append(f"own phrases {prompt_set_hash(phrases)[:8]}")
    return clean(", ".join(filter(None, parts))) or UNKNOWN_JUDGE


def set_name(path: Path, side: Side, record: Record, prompt_count: int) -> str:
    """Return the name of a prompt set, and how much of it was asked, if not all. Raises UserError
    for prompts of the other side.
    """
    source = record.get("source", {})
    name = _in(record, "source", "name") or _in(record, "under_test", "prompts") or path.stem
    given = source.get("side")
    if given in SIDES.keys() - {side.name}:
        raise UserError(f"{path}: {name} holds {SIDES[given].prompts}; give it to --{given}")
    every = source.get("rows", 0)
    if prompt_count >= every:
        return name
    how = ", sampled proportionally by category" if source.get("sampled") else ""
    return f"{name} ({prompt_count:,} of {every:,}{how})"


def _in(record: Record, part: str, name: str) -> str:
    """Return an entry of a part of the record as text; empty if it does not say."""
    return clean(str(record.get(part, {}).get(name) or ""))
