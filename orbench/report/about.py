"""What the run record beside a result file says: model, settings, judge, prompts, and what speaks
against the result.
"""

from collections import Counter
from math import nan
from pathlib import Path
from typing import NamedTuple

from orbench.base import prompts, records, words
from orbench.base.messages import UserError, clean, counted
from orbench.base.records import Record
from orbench.base.tables import sha256_of
from orbench.base.words import Side
from orbench.models.providers import family_of, is_same_model
from orbench.report.results import Corrected
from orbench.stats.intervals import Interval

# Entry of a run record, its value, and what that makes of the result.
DOUBTS = (
    ("scripted", True, "scripted: measures nothing"),
    ("scripted_input", True, "demo prompts"),
    ("complete", False, "partial: some rows have not been asked yet"),
)
# The only note on a report that holds nothing else: the others are about what could be ranked.
DEMO_NOTE = "demo prompts: hand-written, too few to say anything about a model"
UNKNOWN_JUDGE = "unknown judge"
CERTAIN = 0.8  # with fewer certain verdicts, the rules alone rank nobody


class Judge(NamedTuple):
    """Who gave the verdicts of a file."""

    name: str
    ids: list[str]  # of the models that judged; empty: rules
    rules: str  # the version of the rules; empty where they do not decide
    template: str  # a hash of the judge's prompt


class AboutFile(NamedTuple):
    """What all rows of a file share."""

    model: str
    settings: str
    family: str
    tested: str  # the id of the model under test
    date: str
    judge: Judge
    certain: float  # the share of the rules' verdicts that are; NaN: not known
    doubt: str
    is_demo: bool
    unranked: list[str]
    cautions: list[str]
    notes: list[str]


class AboutSide(NamedTuple):
    """What the rows of one side of a file share."""

    prompts: str
    home: str
    ids: list[str]
    corrected: Corrected | None
    cautions: list[str]


def about_file(path: Path, name: str, record: Record, by_judge: bool) -> AboutFile:
    """Return what all rows of a file share. name: of the model, as the user gives it; else it is
    that of the record. Raises UserError if neither has one.
    """
    tested = records.under_test(record)
    model = name or tested.shown
    if not model:
        raise UserError(
            f"{path}: unknown model, because there is no run record beside it; write MODEL={path}"
        )
    family = tested.family or family_of(model)
    judge = _judge(record, by_judge)
    certain = _certain(record)
    cautions = []
    if _is_own_family(tested.id, family, judge):
        cautions.append("judged by its own family")
    edited = _edited(record, path, by_judge)
    if edited:
        cautions.append(edited)
    notes = [clean(note) for note in record.get("notes", []) if note]
    if not record:
        notes.append("no run record: settings, date and unscored rows are unknown")
    doubt = _doubt(record, family, judge.name)
    return AboutFile(
        model=model,
        settings=tested.settings,
        family=family,
        tested=tested.id,
        date=_date(record),
        judge=judge,
        certain=certain,
        doubt=doubt,
        is_demo=doubt == DOUBTS[1][2],
        unranked=_unranked(record, tested.id, judge, certain),
        cautions=cautions,
        notes=notes,
    )


def _certain(record: Record) -> float:
    """Return the share of the rules' verdicts that are certain; NaN if it is not known."""
    findings = record.get("findings", {})
    by_rules = findings.get("by_rules")
    if not by_rules:
        return nan
    share: float = findings.get("certain", nan) / by_rules
    return share


def _unranked(record: Record, tested: str, judge: Judge, certain: float) -> list[str]:
    """Return why a result is not ranked."""
    reasons = []
    said = _in(record, "under_test", "unranked")
    if said:
        reasons.append(said)
    if _judges_itself(tested, judge):
        reasons.append("judged by itself")
    elif not judge.ids and certain < CERTAIN:
        reasons.append(f"only {100 * certain:.0f} % of the rules' verdicts are certain")
    return reasons


def _judges_itself(tested: str, judge: Judge) -> bool:
    return bool(tested) and any(is_same_model(tested, id_) for id_ in judge.ids)


def _is_own_family(tested: str, family: str, judge: Judge) -> bool:
    """Return whether another model of the same family judged."""
    if not family or _judges_itself(tested, judge):
        return False
    return family in map(family_of, judge.ids)


def _date(record: Record) -> str:
    """Return the days from the first answer to the last."""
    days = [_in(record, "under_test", time)[:10] for time in ("start", "end")]
    return " to ".join(dict.fromkeys(filter(None, days)))


def _edited(record: Record, path: Path, by_judge: bool) -> str:
    """Return a caution if the file is not as its stage wrote it."""
    hashes = {"csv": sha256_of(path), "failed": records.failed_hash(path)}
    if record.get("output", hashes) == hashes:
        return ""
    return f"edited since stage {5 if by_judge else 4} wrote it"


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


def _judge(record: Record, by_judge: bool) -> Judge:
    """Return the rules, or a judge with its model and what is not as usual."""
    rules = _in(record, "versions", "rules")
    template = _in(record, "settings", "prompt file")
    models = record.get("models", [])
    ids = [judge["id"] for judge in models if by_judge]
    if not record:
        return Judge(UNKNOWN_JUDGE, ids, rules, template)
    parameters = record.get("parameters", {})
    name = "stage 4 rules"
    if by_judge:
        name = _in(record, "parameters", "check_model")
        if ids and not name.endswith(ids[0]):
            name += f" ({ids[0]})"
    parts = [name, _in(record, "parameters", "judge_settings")]
    if parameters.get("rubric") == "graded":
        parts.append("graded")
    phrases = parameters.get("refusal_phrases")
    if phrases:
        parts.append(f"own phrases {prompts.prompt_set_hash(phrases)[:8]}")
    shown = ", ".join(filter(None, parts)) or UNKNOWN_JUDGE
    return Judge(shown, ids, rules, template)


def about_side(
    path: Path, side: Side, record: Record, prompt_count: int, served_by: Counter[str]
) -> AboutSide:
    """Return what the rows of one side share. served_by: how many each model answered, by its id.

    Raises UserError for prompts of the other side.
    """
    source = record.get("source", {})
    name = _in(record, "source", "name") or _in(record, "under_test", "prompts") or path.stem
    if source.get("side") in words.SIDES.keys() - {side.name}:
        right = words.SIDES[source["side"]].prompts
        raise UserError(f"{path}: {name} holds {right}; give it to --{source['side']}")
    every = source.get("rows") or 0
    if prompt_count < every:
        how = ", sampled proportionally by category" if source.get("sampled") else ""
        name += f" ({prompt_count:,} of {every:,}{how})"
    corrected, cautions = _corrected(path, side)
    if len(served_by) > 1:
        versions = []
        for id_, rows in served_by.most_common():
            versions.append(f"{clean(id_)} ({counted(rows, 'row')})")
        cautions.append(f"answered by {', '.join(versions)}")
    return AboutSide(
        prompts=name,
        home=_in(record, "source", "repository") or str(path),
        ids=sorted(map(clean, served_by)),
        corrected=corrected,
        cautions=cautions,
    )


def _corrected(path: Path, side: Side) -> tuple[Corrected | None, list[str]]:
    """Return the rate by people's labels, from the validation beside a file, and cautions."""
    rates = records.corrected_rates(path)
    if rates is None:
        return None, ["the validation beside it was made for other results, and is not used"]
    found = rates.get(side.name) or rates.get("")
    if not found:
        return None, []
    rate, low, high = found
    return Corrected(rate, Interval(low, high)), []


def _in(record: Record, part: str, name: str) -> str:
    """Return an entry of a part of the record as text; empty if it does not say."""
    return clean(str(record.get(part, {}).get(name) or ""))
