"""What the rows of a result share, from the run record beside its file: model, settings, judge,
prompts, and what speaks against it.
"""

from math import nan
from pathlib import Path

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base import prompts, records, words
from orbench.base.messages import UserError, clean, counted
from orbench.base.records import Record
from orbench.base.tables import sha256_of
from orbench.models.providers import family_of, is_same_model
from orbench.report.frames import Entry, joined

# The rate by people's labels, and its ends, as fractions; NaN: none.
CORRECTED = ("corrected", "corrected_low", "corrected_high")
# What else its rows share.
ABOUT = [
    "short",  # the model without its provider, if that is clear; with settings, if they differ
    "prompts",
    "judge_version",  # of the rules; empty where they do not decide
    "judge_alike",  # the judge, whatever the version
    "family",
    "date",
    "ids",  # of the models that answered, as returned
    "certain",  # the share of the rules' verdicts that are
    "known",  # whether unscored rows are
    "file",
    "home",  # the repository of its prompts, else its file
    "doubt",  # why it is neither ranked nor compared
    "unranked",  # why it is not ranked
    "cautions",  # stand in findings
    "notes",
    "baseline",  # what others are compared with
    *CORRECTED,
]
# Entry of a run record, its value, and what that makes of the result.
DEMO = "demo prompts"
DOUBTS = (
    ("scripted", True, "scripted: measures nothing"),
    ("scripted_input", True, DEMO),
    ("complete", False, "partial: some rows have not been asked yet"),
)
# Its only note: the others are about results that could be ranked.
DEMO_NOTE = f"{DEMO}: hand-written, too few to say anything about a model"
UNKNOWN_JUDGE = "unknown judge"
CERTAIN = 0.8  # with fewer certain verdicts, the rules alone rank nobody


def about_file(path: Path, named: str, record: Record, by_judge: bool) -> Entry:
    """Return what all rows of a file share. named: the model, as the user names it; else as the
    record does. Raises UserError if neither does.
    """
    tested = records.under_test(record)
    model = named or tested.shown
    if not model:
        raise UserError(
            f"{path}: unknown model, because there is no run record beside it; write MODEL={path}"
        )
    family = tested.family or family_of(model)
    findings = record.get("findings", {})
    certain = findings.get("certain", nan) / (findings.get("by_rules") or nan)
    unranked = [_in(record, "under_test", "unranked")]
    cautions = []
    judges = [judge["id"] for judge in record.get("models", []) if by_judge]
    if tested.id and any(is_same_model(tested.id, judge) for judge in judges):
        unranked.append("judged by itself")
    elif family and family in map(family_of, judges):
        cautions.append("judged by its own family")
    elif not judges and certain < CERTAIN:
        unranked.append(f"only {100 * certain:.0f} % of the rules' verdicts are certain")
    notes = [clean(note) for note in record.get("notes", [])]
    if not record:
        notes.append("no run record: settings, date and unscored rows are unknown")
    judge = _judge(record, by_judge)
    return {
        "model": model,
        "settings": tested.settings,
        "judge": judge,
        "judge_version": _in(record, "versions", "rules"),
        "family": family,
        "date": _date(record),
        "certain": certain,
        "file": str(path),
        "doubt": _doubt(record, family, judge),
        "unranked": joined(*unranked),
        "cautions": joined(*cautions, _edited(record, path, by_judge)),
        "notes": joined(*notes),
    }


def _date(record: Record) -> str:
    """Return the days from the first answer to the last."""
    days = [_in(record, "under_test", time)[:10] for time in ("start", "end")]
    return joined(*dict.fromkeys(days), mark=" to ")


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


def about_side(side: str, part: DataFrame, record: Record, path: Path) -> Entry:
    """Return what the rows of one side share. Raises UserError for prompts of the other side."""
    source = record.get("source", {})
    name = _in(record, "source", "name") or _in(record, "under_test", "prompts") or path.stem
    if source.get("side") in words.SIDES.keys() - {side}:
        right = words.SIDES[source["side"]].prompts
        raise UserError(f"{path}: {name} holds {right}; give it to --{source['side']}")
    n = part["prompt"].nunique()
    every = source.get("rows") or 0
    if n < every:
        how = ", sampled proportionally by category" if source.get("sampled") else ""
        name += f" ({n:,} of {every:,}{how})"
    counts = part["served_by"][part["served_by"] != ""].value_counts()
    ids = sorted(map(clean, counts.index))
    rates = records.corrected_rates(path)
    cautions = ""
    if rates is None:
        rates = {}
        cautions = "the validation beside it was made for other results, and is not used"
    corrected = rates.get(side) or rates.get("") or [nan] * 3
    if len(ids) > 1:
        versions = [f"{clean(id_)} ({counted(rows, 'row')})" for id_, rows in counts.items()]
        cautions = joined(cautions, f"answered by {', '.join(versions)}")
    if ids and part["other_model"].any():
        ids.append(records.under_test(record).id)
    return {
        "side": side,
        "prompt_set": prompts.prompt_set_hash(part["prompt"]),
        "home": _in(record, "source", "repository") or str(path),
        "template": _in(record, "settings", "prompt file"),
        "prompts": name,
        "ids": " ".join(ids),
        "responses": _responses(part[part["verdict"] != ""]),
        "cautions": cautions,
    } | dict(zip(CORRECTED, corrected, strict=True))


def _responses(part: DataFrame) -> str:
    """Return what copies of these responses have too; "" if they are all alike, since two models
    may well refuse everything with the same words.
    """
    texts = part["response_id"]
    if texts.nunique() < 2:
        return ""
    return prompts.prompt_set_hash(part["prompt"] + texts)


def _judge(record: Record, by_judge: bool) -> str:
    """Return the rules, or a judge with its model and what is not as usual."""
    if not record:
        return UNKNOWN_JUDGE
    parts = ["stage 4 rules"]
    if by_judge:
        parts = [_in(record, "parameters", "check_model")]
        for model in record.get("models", [])[:1]:
            if not parts[0].endswith(model["id"]):
                parts[0] += f" ({model['id']})"
    parts.append(_in(record, "parameters", "judge_settings"))
    parameters = record.get("parameters", {})
    if parameters.get("rubric") == "graded":
        parts.append("graded")
    phrases = parameters.get("refusal_phrases")
    if phrases:
        parts.append(f"own phrases {prompts.prompt_set_hash(phrases)[:8]}")
    return joined(*parts, mark=", ") or UNKNOWN_JUDGE


def _in(record: Record, part: str, name: str) -> str:
    """Return an entry of a part of the record as text; empty if it does not say."""
    return clean(str(record.get(part, {}).get(name) or ""))
