"""What a run counts while it writes its rows."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from orbench.asking.log import AnswerLog
from orbench.base.prompts import prompt_id_of
from orbench.base.records import NOT_ASKED
from orbench.base.words import category_of
from orbench.models.requests import REFUSED_TO_JUDGE, Missing, Tokens
from orbench.stages.stage import Result

ByModel = defaultdict[str, Counter[str]]


def by_model() -> ByModel:
    """Return a counter for each model as asked."""
    return ByModel(Counter)


@dataclass
class Counts:
    """What came of a run's rows and answers."""

    rows: Counter[str] = field(default_factory=Counter)  # done, failed, unscored, not_asked
    answers: Counter[str] = field(default_factory=Counter)  # reused, cut off
    written: int = 0  # output rows
    kept: bool = False  # nothing was written, and the files of an earlier run stay
    tokens: Tokens = field(default_factory=Tokens)  # of the answers used
    errors: Counter[str] = field(default_factory=Counter)
    # By model as asked: `Answer.served_by`, and the parameters that were left out.
    served_by: ByModel = field(default_factory=by_model)
    dropped: ByModel = field(default_factory=by_model)
    # By judge and category: texts that it was asked about, and those that it refused to judge.
    judged: ByModel = field(default_factory=by_model)
    judge_refused: ByModel = field(default_factory=by_model)
    prompts: set[str] = field(default_factory=set)  # ids
    _used: set[bytes] = field(default_factory=set)  # keys of answers

    @property
    def aside(self) -> int:
        """Return the number of rows in the failed file."""
        return self.rows.total() - self.rows["done"]

    def add(self, result: Result, log: AnswerLog) -> None:
        """Count one row and the answers behind it, each answer once."""
        if "prompt" in result.row:
            self.prompts.add(prompt_id_of(result.row))
        rows = result.rows
        if isinstance(rows, list):
            self.rows["done"] += 1
            self.written += len(rows)
        elif rows.kind == NOT_ASKED:
            self.rows[NOT_ASKED] += 1
        elif rows.kind in ("bad_request", "gave_up") and result.readings:
            self.rows["failed"] += 1
            self.errors[rows.why] += 1
        else:  # rows that failed in the stage before are unscored here
            self.rows["unscored"] += 1
        category = category_of(result.row)
        for request, answer, reading in result.answers:
            if answer is None or request.key in self._used:
                continue
            self._used.add(request.key)
            model = request.model.asked
            self.judged[model][category] += 1
            if isinstance(reading, Missing) and reading.kind == REFUSED_TO_JUDGE:
                self.judge_refused[model][category] += 1
            self.answers["reused"] += log.was_there(request.key)
            self.answers["cut off"] += answer.cut_off
            self.tokens.add(answer)
            self.served_by[model][answer.served_by] += 1
            self.dropped[model].update(answer.dropped)
