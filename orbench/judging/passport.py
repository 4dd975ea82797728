"""A judge's passport: how often it is right on public responses with people's labels.

`passport.json` holds those of all judges that ran in its folder, by the names of their CSVs: each
is the run record, with what `compared_with_people` returns.
"""

import json
from contextlib import suppress
from pathlib import Path

from orbench.base.messages import UserError
from orbench.base.records import SHAPE, Record, fits, read_record
from orbench.base.tables import read_csv, sha256_of, write_json
from orbench.base.words import Json, Lines, Rows
from orbench.judging.validation import judges_compared
from orbench.models.requests import Prices, Tokens

FILE = "passport.json"
SEEN_BY_RULES = "; the rules were tuned on some of them"  # of each labeled set
ERRORS = {"n": int, "misses": list, "false_alarms": list}  # not null: there are labels of both
PASSPORT = SHAPE | {"input": {"rows": int}, "overall": ERRORS, "made_for": {"csv": str}}


def add_passport(csv: Path, figures: Json, rows: Rows, prices: Prices | None) -> Lines:
    """Add a judge's passport to those in the folder of its CSV, unless rows are still to be asked.
    Yield its errors, what 1,000 rows cost, and how it compares with each of the others whose CSV
    is as it was. rows: the scored ones. Raises UserError, OSError.
    """
    found = read_record(csv) | figures
    if not (found.get("complete") and fits(found, PASSPORT)):
        return
    yield in_words(found)
    if prices:
        times = 1000 / found["input"]["rows"]
        yield f"for 1,000 rows: {Tokens(**found['tokens']).cost(prices, times)}"
    passports = passports_in(csv.parent)
    passports.pop(csv.name, None)
    for name, other in passports.items():
        path = csv.with_name(name)
        if path.is_file() and sha256_of(path) == other["made_for"]["csv"]:
            yield f"minus {other['check_model']} ({name}), on the responses that both scored:"
            yield from judges_compared(rows, read_csv(path).rows, figures["column"])
    write_json(csv.parent / FILE, passports | {csv.name: found})


def passports_in(folder: Path) -> Json:
    """Return the passports in a folder, by CSV. Raises UserError if damaged."""
    path = folder / FILE
    if not path.is_file():
        return {}
    with suppress(OSError, ValueError, RecursionError):
        passports: Json = json.loads(path.read_text(encoding="utf-8"))
        if fits(passports, {None: PASSPORT}):
            return passports
    raise UserError(f"{path} is damaged; restore it, or delete it and rerun the judges")


def passport_notes(csv: Path, record: Record) -> Lines:
    """Yield the errors of the judge of a CSV, by its passports in that folder and those above.
    record: of the CSV.
    """
    for folder in csv.resolve().parents:
        with suppress(UserError):  # another program's file of that name
            for passport in passports_in(folder).values():
                if _decider(passport) == _decider(record):
                    yield in_words(passport)


def _decider(record: Record) -> list[object]:
    """Return what decides: the judge, how it is asked and read, and the version of the rules."""
    rules = record.get("versions", {}).get("rules")
    return [record.get("settings"), record.get("parameters"), rules]


def in_words(passport: Json) -> str:
    """Return a judge's errors, and whether its rules have seen some of the responses."""
    errors = passport["overall"]
    n = errors["n"]
    unscored = passport["input"]["rows"] - n
    misses = 100 * errors["misses"][0]
    false_alarms = 100 * errors["false_alarms"][0]
    words = (
        f"passport of {passport['check_model']}: misses {misses:.1f} %, "
        f"false alarms {false_alarms:.1f} % on {n:,} labeled responses"
    )
    if unscored:
        words += f", {unscored:,} more unscored"
    if "rules" in passport["versions"]:
        words += SEEN_BY_RULES
    return words
