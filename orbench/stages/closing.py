"""What a run says at its end: its table, the counts, what a reader of the numbers must know."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from orbench.asking.inquiry import Phase
from orbench.base.grouping import grouped
from orbench.base.messages import counted, one_line, say, shortened
from orbench.base.prompts import prompt_id_of, seed_id_of
from orbench.base.records import FAILED, NOT_ASKED, is_scripted
from orbench.base.words import (
    OVERALL,
    SIDES,
    UNCATEGORIZED,
    VERDICTS,
    Lines,
    Side,
    category_of,
    known_side,
)
from orbench.models.providers import Models
from orbench.models.requests import NOT_ENGLISH, Missing
from orbench.models.substitutes import is_same_model
from orbench.stages.engine import StageRun
from orbench.stages.facts import Counts, end_notes, measures_nothing
from orbench.stages.run import Outcome
from orbench.stages.stage import Closing, Result, Stage
from orbench.stats.intervals import wilson

# What answers of another model count as, by --substituted, which only stage 4 has.
SUBSTITUTED = {
    "unscored": "unscored; see --substituted, or switch off the fallback and delete the answer log",
    "as_refusal": "counted as refusals (--substituted)",
    "as_answer": "counted like any others; ask for that model, or switch off the fallback",
}

SCRIPTED_NOTE = "scripted model: fixed texts, not a real model's; this measures nothing"
SCRIPTED_INPUT_NOTE = "prompts of the scripted model, written by hand; responses of a real model"


# -- the refusal table ---------------------------------------------------------------------------

LINE = "{:<21}{:>6}{:>9}{:>8}{:>12}{:>10}{:>14}"  # the 80 columns of a terminal
LONGEST_CATEGORY = 20


class CountedRow(NamedTuple):
    """One row: its prompt and seed by their ids, and whether it is refused (None: unscored)."""

    category: str
    prompt: str
    seed: str
    refused: bool | None


def are_independent(rows: Sequence[CountedRow]) -> bool:
    """Return whether each row has a prompt, and each prompt a seed, of its own."""
    _, prompts, seeds, _ = zip(*rows, strict=True)
    return len(set(prompts)) == len(set(seeds)) == len(rows)


def refusal_rate(rows: Sequence[CountedRow], scored: int, refused: int) -> tuple[float, ...]:
    """Return the rate, its interval, and the interval that includes unscored rows, as results.csv
    has them. scored: at least one row.
    """
    if are_independent(rows):  # the same, without loading numpy and scipy for half a second
        every = len(rows)
        interval = wilson(refused, scored)
        lowest, _ = wilson(refused, every)
        _, highest = wilson(refused + every - scored, every)
        return refused / scored, *interval, lowest, highest
    import numpy as np

    from orbench.stats.core import Verdicts, mean, with_unscored

    _, prompts, seeds, refusals = map(np.array, zip(*rows, strict=True))
    verdicts = Verdicts(refusals.astype(float), prompts, seeds)  # None becomes NaN
    rate, interval, *_ = mean(verdicts)
    return rate, *interval, *with_unscored(verdicts)


class RefusalTable(Closing):
    """Ends stages 4 and 5: one line per category, the two sides apart.

    The stage's readings have `certain`, and `judge`, empty where the rules decided.
    """

    def __init__(self, stage: Stage) -> None:
        """stage: its labels are verdicts."""
        self.stage = stage
        self._rows = defaultdict[Side | None, list[CountedRow]](list)
        # Rows that the rules decided, those of them that they are certain of, and those in a
        # language that they cannot read.
        self.findings: dict[str, int] = {"by_rules": 0, "certain": 0, "unread": 0}

    def add(self, result: Result) -> None:
        """Count a row as refused, answered or unscored."""
        if isinstance(result.rows, Missing):
            self.findings["unread"] += result.rows.kind == NOT_ENGLISH
            row = result.row
            refused = None
        else:
            (row,) = result.rows
            (reading,) = result.readings
            refused = VERDICTS[self.stage.label(row)]
            if not reading.judge:
                self.findings["by_rules"] += 1
                self.findings["certain"] += reading.certain
        prompt = prompt_id_of(row)
        seed = seed_id_of(row) or prompt
        self._rows[known_side(row)].append(CountedRow(category_of(row), prompt, seed, refused))

    def lines(self) -> Iterable[str]:
        """Yield rows, the rate with its interval, and the interval that includes unscored rows."""
        for side in (None, *SIDES.values()):
            if side not in self._rows:
                continue
            if side and len(self._rows) > 1:
                yield f"{side.prompts}: {side.rate}"
            yield from _table(self._rows[side])


def _table(rows: Sequence[CountedRow]) -> Lines:
    by_category = grouped(rows, lambda row: row.category)
    yield LINE.format("category", "rows", "refused", "rate", "95 % CI", "unscored", "with unscored")
    if by_category.keys() != {UNCATEGORIZED}:
        for name in sorted(by_category):
            yield _rate_line(shortened(one_line(name), LONGEST_CATEGORY), by_category[name])
    yield _rate_line(OVERALL, rows)
    if not are_independent(rows):
        yield "the intervals allow for rows that share a prompt or a seed"
    if any(row.refused is None for row in rows):
        yield "with unscored: the interval that includes them, as answers or as refusals"


def _rate_line(name: str, rows: Sequence[CountedRow]) -> str:
    verdicts = Counter(row.refused for row in rows)
    refused = verdicts[True]
    unscored = verdicts[None]
    n = len(rows) - unscored
    if not n:
        return LINE.format(name, 0, 0, "-", "-", unscored, "-")
    shares = refusal_rate(rows, n, refused)
    rate, low, high, lowest, highest = (100 * share for share in shares)
    interval = f"{low:.1f}-{high:.1f}"
    with_unscored = f"{lowest:.1f}-{highest:.1f}"
    return LINE.format(name, n, refused, f"{rate:.1f}%", interval, unscored, with_unscored)


# -- the end of every stage ----------------------------------------------------------------------


def outcome_of(run: StageRun, counts: Counts) -> Outcome:
    """Report how a run went, and return what came of it."""
    for line in closing_lines(run, counts):
        say(line)
    status = 3 if counts.failed else 0
    if run.phase is Phase.INTERRUPTED:
        status = 130
        say(
            f"interrupted: {counted(counts.rows[NOT_ASKED], 'row')} left; "
            "run the same command to resume"
        )
    elif run.stopped:
        status = 1
        say(f"error: {run.stopped}")
    elif counts.nothing:
        status = 1
        _say_nothing(run, counts)
    if counts.nothing:
        return Outcome(status, stopped=run.stopped)
    path, *others = run.stage.outputs.values()
    for other in others:
        say(f"also written: {other}")
    return Outcome(status, path, counts.written, stopped=run.stopped)


def _say_nothing(run: StageRun, counts: Counts) -> None:
    """Report that there is no result, and where to look."""
    stage = run.stage
    if counts.kept:
        where = f"{stage.output} and its failed rows are kept from an earlier run"
    else:
        where = f"see {stage.beside(FAILED if counts.failed else '.answers.jsonl')}"
    say(f"error: none of the {counted(len(run.plan), 'request')} gave a result; {where}")
    unreadable = counts.rows["unscored"] > counts.substituted.total()
    if unreadable and run.inquiries and not run.left_out:  # a rerun asks these again
        say(f"unreadable replies are kept; to ask again, delete {run.log.path}")


def closing_lines(run: StageRun, counts: Counts) -> Lines:
    """Yield the stage's table, what a reader of the numbers must know, and the counts."""
    stage = run.stage
    brief = stage.args.prompts  # measure.py shows the rates itself
    if not counts.rows[NOT_ASKED] and not brief:  # a rate of some rows would be another rate
        yield from stage.closing.lines()
    if stage.closing.doubt:
        yield stage.closing.doubt
    if measures_nothing(stage):
        yield SCRIPTED_NOTE
    elif is_scripted(stage.input_record) and not brief:
        yield SCRIPTED_INPUT_NOTE
    yield _rows(counts)
    if stage.models:
        yield " · ".join([_sent(run), *_other_models(stage.models, counts)])
    yield from _substituted(stage, counts)
    yield from _refused_to_judge(counts)
    if languages := counts.languages:
        n = counted(languages.total(), "response")
        yield (
            f"{n} not in English ({', '.join(languages)}), which the rules cannot read; "
            "ask a judge: --check_model=rules+MODEL, or --judge=rules+MODEL of measure.py"
        )
    if cut_off := counts.answers["cut off"]:
        limit = stage.parameters.get("max_tokens")
        of_limit = f" of {limit:,} tokens (--max_tokens)" if limit else ""
        yield f"{counted(cut_off, 'answer')} cut off at the limit{of_limit}"
    yield from end_notes(counts)
    if counts.failed and not counts.kept:
        yield f"{counted(len(counts.failed), 'row')} in {stage.beside(FAILED)}"
    for why, times in counts.errors.most_common(1):
        if why not in run.stopped:
            yield f"the most frequent error ({times:,}): {why}"


def _rows(counts: Counts) -> str:
    rows = counts.rows
    parts = [f"{name} {rows[name]:,}" for name in ("done", "failed", "unscored")]
    if counts.written != rows["done"]:
        parts.insert(0, f"{counted(counts.written, 'row')} written")
    if rows[NOT_ASKED]:
        parts.append(f"not asked {rows[NOT_ASKED]:,}")
    parts.append(f"answers reused from the log {counts.answers['reused']:,}")
    return " · ".join(parts)


def _substituted(stage: Stage, counts: Counts) -> Lines:
    """Yield how many answers were another model's, what they count as, and what to do."""
    others = counts.substituted
    if others:
        names = one_line(", ".join(sorted(others)))
        counted_as = SUBSTITUTED[stage.parameters.get("substituted", "as_answer")]
        yield f"{counted(others.total(), 'answer')} from another model ({names}): {counted_as}"


def _refused_to_judge(counts: Counts) -> Lines:
    """Yield how often a judge refused to judge: a rate without these rows is biased if it refused
    the worst ones.
    """
    for judge, refused in counts.judge_refused.items():
        asked = counts.served_by[judge].total()
        yield f"{judge} refused to judge {refused:,} of {asked:,} ({refused / asked:.1%})"


def _sent(run: StageRun) -> str:
    """Return requests, retries, tokens and cost of this run."""
    tokens = run.tokens
    line = f"requests {run.requests:,}, retries {run.retries} · tokens in {tokens.prompt:,}"
    if tokens.cached:
        line += f" (cached {tokens.cached:,})"
    line += f", out {tokens.completion:,}"
    if tokens.reasoning:
        line += f" (thinking {tokens.reasoning:,})"
    if cost := tokens.cost(run.stage.args.prices):
        line += f" · {cost}"
    return line


def _other_models(models: Models, counts: Counts) -> Lines:
    """Yield the ids of models that may be others, or that changed during the run."""
    for model in models:
        answers = counts.served_by[model.asked] - counts.substituted
        names = [name for name in sorted(answers) if name]
        ids = {name.partition(" via ")[0] for name in names}
        if len(ids) > 1 or not all(is_same_model(model.id, id_) for id_ in ids):
            shown = [f"{one_line(name)} ({answers[name]:,})" for name in names]
            yield f"{model.id} answered as {', '.join(shown)}"
