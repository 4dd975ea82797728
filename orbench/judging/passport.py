"""A judge's passport: how often it is right on public responses with people's labels.

`passport.json` holds those of all judges that ran in its folder, by the names of their CSVs: each
is the run record, with what `compared_with_people` returns and `note`, what reports say of it.
"""

from pathlib import Path

from orbench.base.records import PASSPORTS, passports_in, read_record
from orbench.base.tables import read_csv, sha256_of, write_json
from orbench.base.words import Json, Lines, Rows
from orbench.judging.validation import judges_compared
from orbench.models.requests import Prices, Tokens

SEEN_BY_RULES = "; the rules were tuned on some of them"  # of each labeled set


def add_passport(csv: Path, figures: Json, rows: Rows, prices: Prices | None) -> Lines:
    """Add a judge's passport to those in the folder of its CSV, unless rows are still to be asked.
    Yield its errors, what 1,000 rows cost, and how it compares with each of the others whose CSV
    is as it was. rows: the scored ones. Raises UserError, OSError.
    """
    found = read_record(csv) | figures
    errors = figures["overall"]
    if not (found.get("complete") and errors["misses"] and errors["false_alarms"]):
        return
    found["note"] = _note(found)
    yield found["note"]
    if prices:
        times = 1000 / found["input"]["rows"]
        yield f"for 1,000 rows: {Tokens(**found['tokens']).cost(prices, times)}"
    others = passports_in(csv.parent)
    others.pop(csv.name, None)
    write_json(csv.parent / PASSPORTS, others | {csv.name: found})
    for name, passport in others.items():
        other = csv.parent / name
        if other.is_file() and sha256_of(other) == passport.get("output", {}).get("csv"):
            for line in judges_compared(rows, read_csv(other).rows, figures["column"]):
                yield f"minus {name}, on responses that both scored: {line}"


def _note(passport: Json) -> str:
    """Return a judge's errors, and whether its rules have seen some of the responses."""
    errors = passport["overall"]
    n = errors["n"]
    judge = [passport["check_model"], passport["parameters"]["judge_settings"]]
    note = (
        f"passport of {', '.join(filter(None, judge))}: misses {100 * errors['misses'][0]:.1f} %, "
        f"false alarms {100 * errors['false_alarms'][0]:.1f} % on {n:,} labeled responses"
    )
    unscored = passport["input"]["rows"] - n
    if unscored:
        note += f", {unscored:,} more unscored"
    if "rules" in passport["versions"]:
        note += SEEN_BY_RULES
    return note
