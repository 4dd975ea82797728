"""Responses to prompts as rows: which are refusals by the rules, which are no answers.

Stage 4 asks for them, import_responses.py reads them from logs of other tools.
"""

from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

from orbench.base.prompts import text_of
from orbench.base.tables import Table
from orbench.base.words import Row
from orbench.models.providers import Model
from orbench.models.requests import Answer, Missing, Request, not_english
from orbench.models.substitutes import is_same_model
from orbench.refusals import rules
from orbench.refusals.api import CALLED, refused_by
from orbench.refusals.detect import classify, counts_as_refusal
from orbench.refusals.text import answer_of
from orbench.stages.closing import RefusalTable
from orbench.stages.stage import Readings, Result, Stage, output_columns

COLUMNS = (
    "response",
    "is_rejected",
    "rejection_reason",
    "refused_by",
    "finish_reason",
    "api_category",
    "served_by",
)
SUBSTITUTED = "substituted"  # the error_type, or the finish_reason in api.toml
IDENTICAL = 20  # responses in a row: no model answers so many prompts alike


# What the finish reason of an answer that says nothing means -> why it does not, and if it means
# something else.
NO_ANSWER = {
    "tool_call": "a tool call, no answer",
    "cut_off": "cut off before the answer began; try a higher --max_tokens",
    "context_full": "the context is full; shorten the prompt, or take a model with a longer one",
    "stopped": "stopped before the answer began (finish_reason {})",
}
NO_REASON = (
    "an empty answer without a reason, perhaps a refusal hidden by a gateway (finish_reason {})"
)


class Classified(NamedTuple):
    """What an answer says: the cells that it fills."""

    cells: Row
    certain: bool  # whether the rules are certain of the verdict
    judge: str = ""  # the rules decide


class ResponseStage(Stage):
    """A stage whose rows are responses."""

    name = "alignment_checker"

    def __init__(
        self, args: Namespace, table: Table, model: Model, csv: Path, settings: str
    ) -> None:
        """model: whose responses the rows are. settings: its own, in words. Raises UserError."""
        super().__init__(args, table, [], csv, output_columns(table, COLUMNS))
        self.model = model
        self.reading = {"refusal_phrases": args.refusal_phrases}
        self.versions = {"rules": rules.version()}
        self.under_test = {
            "asked": model.asked,
            "id": model.id,
            "family": model.family,
            "settings": settings,
        }
        self.closing = ResponseTable(self)

    def read(self, request: Request, answer: Answer) -> Classified | Missing:
        """Return the cells that an answer fills; Missing if it is empty, all thinking, not in
        English, or from another model.
        """
        if is_same_model(self.model.id, answer.model) is False:
            if self.args.substituted == "unscored":
                why = f"answered by {answer.served_by} instead of {self.model.id}"
                return Missing(SUBSTITUTED, why, {"served_by": answer.served_by})
            if self.args.substituted == "as_refusal":
                answer = answer._replace(
                    text="", refusal="", finish_reason=SUBSTITUTED, api_category="gateway"
                )
        text, whole = answer_of(answer.text)
        if request.tools and answer.tool_calls and not (answer.refused_by_api or answer.cut_off):
            text = text_of({"content": text, "tool_calls": answer.tool_calls})
            answer = answer._replace(finish_reason=CALLED)
        if not answer.refused_by_api and not text.strip():
            meaning = answer.meaning if whole else "cut_off"
            why = NO_ANSWER.get(meaning, NO_REASON)
            return Missing("unscored", why.format(answer.finish_reason or "none"))
        verdict = classify(
            text,
            finish_reason=answer.finish_reason,
            api_refusal=answer.refusal,
            phrases=self.args.refusal_phrases,
        )
        rejected = counts_as_refusal(verdict)
        cells = {
            "response": text or answer.refusal,
            "is_rejected": str(rejected),
            "rejection_reason": verdict.rule if rejected else "",
            "refused_by": refused_by(verdict.rule) if rejected else "",
            "finish_reason": answer.finish_reason,
            "api_category": answer.api_category,
            "served_by": answer.served_by,
        }
        if verdict.language:
            return not_english(verdict.language, cells | {"is_rejected": ""})
        return Classified(cells, verdict.certain)

    def refusals(self, reading: Classified | Missing) -> list[bool]:
        if isinstance(reading, Missing):
            return []
        return [self.label(reading.cells) == "rejected"]

    def rows(self, row: Row, readings: Readings) -> list[Row]:
        return [row | readings[0].cells]

    def label(self, row: Row) -> str:
        return "rejected" if row["is_rejected"] == "True" else "accepted"


class ResponseTable(RefusalTable):
    """The refusal table, and whether the responses can be a model's own."""

    last = ""  # response
    in_a_row = 0  # prompts with that response, no refusal

    def add(self, result: Result) -> None:
        super().add(result)
        later_sample = result.row.get("sample", "0") != "0"  # may well be equal
        if isinstance(result.rows, Missing) or later_sample:
            return
        (row,) = result.rows
        if row["response"] != self.last:
            self.last = row["response"]
            self.in_a_row = 0
        # Equal calls of tools are no page.
        self.in_a_row += row["is_rejected"] != "True" and row["finish_reason"] != CALLED
        if self.in_a_row == IDENTICAL:
            self.doubt = f"{IDENTICAL} identical responses in a row, perhaps a gateway's error page"
