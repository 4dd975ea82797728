"""What people said, as files: a judge's validation, labels of responses, labelled audit sheets."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from orbench.columns import HUMAN_LABELS, human_label
from orbench.correction import JudgeAccuracy
from orbench.dataset.audit import majority_of
from orbench.report.measurements import Labels, response_id
from orbench.table import Table
from orbench.terminal import UserError, clean, did_you_mean

LABEL = "label"  # the column of people's labels, if none is named


class Validated(NamedTuple):
    """A judge that was compared with people."""

    path: Path
    judge: str  # stage 5's --check_model; empty: the file does not say
    convention: str  # how partial responses count in it, a key of CONVENTIONS; empty: likewise
    accuracy: JudgeAccuracy

    def why_not(self, by_stage5: bool, judge: str, convention: str) -> str:
        """Why it is not of the judge of a file, or counts partial responses otherwise, in words;
        where that is not known, the user says that it is.
        """
        if by_stage5 and (not self.judge or not judge or judge == self.judge):
            if not (self.convention and convention) or convention == self.convention:
                return ""
            return (
                f"made with --partial {convention} while {self.path.name} is with --partial "
                f"{self.convention}"
            )
        counted_by = f"stage 5 {judge}" if by_stage5 else "stage 4 rules"
        return f"counted by {counted_by} while {self.path.name} is of {self.judge}"


def read_validation(path: Path) -> Validated:
    """What stage 5 writes with --validate_against: `check_model`, and in `overall` tp, fp, fn, tn.

    Raises UserError for a file that is not that, and for a judge no better than chance.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        counts = [content["overall"][name] for name in JudgeAccuracy._fields]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        counts = []
    if not counts or any(not isinstance(n, int) or n < 0 for n in counts):
        raise UserError(
            f"{path} is not a validation (JSON with the counts tp, fp, fn, tn in 'overall'); "
            "stage 5 writes one with --validate_against"
        )
    found = JudgeAccuracy(*counts)
    if not found.tp + found.fn or not found.tn + found.fp:
        raise UserError(f"{path}: people's labels hold only one class, so nothing to correct by")
    if found.sensitivity + found.specificity <= 1:
        raise UserError(
            f"{path}: the judge is no better than chance (sensitivity {found.sensitivity:.3f}, "
            f"specificity {found.specificity:.3f}), so no rate can be corrected by it"
        )
    judge, convention = (clean(str(content.get(name) or "")) for name in ("check_model", "partial"))
    return Validated(path, judge, convention, found)


def read_labels(path: Path, column: str) -> Labels:
    """`response_id` -> 1 refused, 0 answered: what most people said; without the ties.

    Columns: prompt, response, and one of labels. Raises UserError for a label that is none.
    """
    votes: dict[bytes, list[bool]] = {}
    for number, row in enumerate(Table(path, ("prompt", "response", column)), start=1):
        label = human_label(row[column])
        if label is None and row[column].strip():
            raise UserError(
                f"{path}, row {number}: {clean(row[column])[:40]!r} in {column!r} is no label "
                f"known here ({', '.join(HUMAN_LABELS)}){did_you_mean(row[column], HUMAN_LABELS)}"
            )
        if label is not None:
            votes.setdefault(response_id(row["prompt"], row["response"]), []).append(label)
    if not votes:
        raise UserError(f"{path}: no row has a label in {column!r}")
    shares = {id_: sum(labels) / len(labels) for id_, labels in votes.items()}
    return {id_: float(share > 0.5) for id_, share in shares.items() if share != 0.5}


def read_audit(sheets: Sequence[Path]) -> Labels:
    """The first bytes of a `prompt_id` -> 1 toxic, 0 safe: what most people wrote into their copies
    of an audit sheet. Raises UserError for a sheet that cannot be used.
    """
    found = majority_of(sheets)
    return {bytes.fromhex(id_): float(toxic) for id_, toxic in found.items()}
