"""What the run record beside a result file says: model, settings, judge, prompts, and what speaks
against the result.
"""

from collections import Counter
from collections.abc import Iterator
from math import nan
from pathlib import Path

from orbench.base import prompts, records, words
from orbench.base.messages import UserError, clean, counted
from orbench.base.records import Record
from orbench.base.tables import Table, sha256_of
from orbench.base.words import Rows, Side
from orbench.models.providers import family_of, is_same_model
from orbench.report.results import About, Corrected
from orbench.stats.intervals import Interval

DEMO = "demo prompts: too few to say anything about a model"
# Entry of a run record, its value, and what that makes of the result.
DOUBTS = (
    ("scripted", True, "scripted: measures nothing"),
    ("scripted_input", True, DEMO),
    ("complete", False, "partial: some rows have not been asked yet"),
)
UNKNOWN_JUDGE = "unknown judge"
CERTAIN = 0.8  # with fewer certain verdicts, the rules alone rank nobody


def about(
    name: str, record: Record, table: Table, lost: Rows, side: Side, served_by: Counter[str]
) -> About:
    """Return what is known of one side of a file. name: of the model; empty: that of the record.
    lost: failed rows. served_by: responses by the id of the model. Raises UserError without a name.
    """
    path = table.path
    tested = records.under_test(record)
    model = name or _known(tested.shown, path)
    family = tested.family or family_of(model)
    by_judge = "answer_category" in table.columns
    judges = [one["id"] for one in record.get("models", []) if by_judge]
    judge = _judge(record, by_judge, judges)
    is_own = bool(tested.id) and any(is_same_model(tested.id, id_) for id_ in judges)
    findings = record.get("findings", {})
    certain = findings.get("certain", nan) / (findings.get("by_rules") or nan)
    doubt = _doubt(record, family, judge) or _emptiness(table.rows)
    corrected, stale = _corrected(path, side)
    cautions = [_edited(record, path, by_judge), stale, _answered(served_by)]
    if family and not is_own and family in map(family_of, judges):
        cautions.insert(0, "judged by its own family")
    return About(
        file=str(path),
        model=model,
        settings=tested.settings,
        family=family,
        prompts_from=_in(record, "source", "repository") or str(path),
        judge=judge,
        judge_version=_in(record, "versions", "rules"),
        template=_in(record, "settings", "prompt file"),
        days=_days(record),
        certain=certain,
        unscored_known=bool(lost) or (bool(record) and not _in(record, "output", "failed")),
        corrected=corrected,
        doubt=doubt,
        is_demo=doubt == DEMO,
        unranked=tuple(_unranked(record, is_own, nan if judges else certain)),
        cautions=tuple(filter(None, cautions)),
        notes=tuple(_notes(record)),
    )


def _known(model: str, path: Path) -> str:
    if not model:
        why = "because there is no run record beside it"
        raise UserError(f"{path}: unknown model, {why}; write MODEL={path}")
    return model


def _unranked(record: Record, is_own: bool, certain: float) -> Iterator[str]:
    """Yield why a result is not ranked. certain: the share of verdicts, if the rules alone gave
    them.
    """
    said = _in(record, "under_test", "unranked")
    if said:
        yield said
    if is_own:
        yield "judged by itself"
    elif certain < CERTAIN:
        yield f"only {100 * certain:.0f} % of the rules' verdicts are certain"


def _notes(record: Record) -> Iterator[str]:
    yield from map(clean, filter(None, record.get("notes", [])))
    if not record:
        yield "no run record: settings, date and unscored rows are unknown"


def _days(record: Record) -> tuple[str, ...]:
    """Return the days of the first answer and of the last one."""
    days = [_in(record, "under_test", time)[:10] for time in ("start", "end")]
    return tuple(dict.fromkeys(filter(None, days)))


def _edited(record: Record, path: Path, by_judge: bool) -> str:
    """Return a caution if the file is not as its stage wrote it."""
    hashes = {"csv": sha256_of(path), "failed": records.failed_hash(path)}
    if record.get("output", hashes) == hashes:
        return ""
    return f"edited since stage {5 if by_judge else 4} wrote it"


def _answered(served_by: Counter[str]) -> str:
    """Return a caution if several models answered."""
    if len(served_by) < 2:
        return ""
    models = [f"{clean(id_)} ({counted(n, 'row')})" for id_, n in served_by.most_common()]
    return f"answered by {', '.join(models)}"


def _doubt(record: Record, family: str, judge: str) -> str:
    """Return why a result is neither ranked nor compared; empty if it is."""
    if judge == UNKNOWN_JUDGE:
        return judge
    if family in records.selectors(record):
        return f"selected: {family} was among the families that chose the prompts"
    for name, value, text in DOUBTS:
        if record.get(name) is value:
            return text
    return ""


def _emptiness(rows: Rows) -> str:
    """Return a doubt if most responses in words are empty."""
    texts = [row.get("response", "?") for row in rows if not words.refused_by_api(row)]
    empty = sum(not text.strip() or prompts.is_no_value(text) for text in texts)
    if empty > len(texts) / 2:
        return f"{empty:,} of {len(texts):,} responses are empty"
    return ""


def _judge(record: Record, by_judge: bool, judges: list[str]) -> str:
    """Return the rules, or a judge with its model and what is not as usual."""
    if not record:
        return UNKNOWN_JUDGE
    parameters = record.get("parameters", {})
    name = "stage 4 rules"
    if by_judge:
        name = _in(record, "parameters", "check_model")
        if judges and not name.endswith(judges[0]):
            name += f" ({judges[0]})"
    parts = [name, _in(record, "parameters", "judge_settings")]
    if parameters.get("rubric") == "graded":
        parts.append("graded")
    phrases = parameters.get("refusal_phrases")
    if phrases:
        parts.append(f"own phrases {prompts.prompt_set_hash(phrases)[:8]}")
    return ", ".join(filter(None, parts)) or UNKNOWN_JUDGE


def set_name(path: Path, side: Side, record: Record, prompt_count: int) -> str:
    """Return the name of a prompt set, and how much of it was asked, if not all. Raises UserError
    for prompts of the other side.
    """
    source = record.get("source", {})
    name = _in(record, "source", "name") or _in(record, "under_test", "prompts") or path.stem
    for other in words.SIDES.values():
        if side.name != other.name == source.get("side"):
            raise UserError(f"{path}: {name} holds {other.prompts}; give it to --{other.name}")
    every = source.get("rows") or 0
    if prompt_count >= every:
        return name
    how = ", sampled proportionally by category" if source.get("sampled") else ""
    return f"{name} ({prompt_count:,} of {every:,}{how})"


def _corrected(path: Path, side: Side) -> tuple[Corrected | None, str]:
    """Return the rate by people's labels, from the validation beside a file, or a caution."""
    rates = records.corrected_rates(path)
    if rates is None:
        return None, "the validation beside it was made for other results, and is not used"
    found = rates.get(side.name) or rates.get("")
    if not found:
        return None, ""
    rate, low, high = found
    return Corrected(rate, Interval(low, high)), ""


def _in(record: Record, part: str, name: str) -> str:
    """Return an entry of a part of the record as text; empty if it does not say."""
    return clean(str(record.get(part, {}).get(name) or ""))
