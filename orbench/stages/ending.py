"""What a run says at its end: its table, the counts, what a reader of the numbers must know."""

from collections.abc import Iterator

from orbench.base.messages import counted, one_line, say
from orbench.base.records import FAILED, NOT_ASKED, is_scripted
from orbench.models.providers import is_same_model
from orbench.stages.account import measures_nothing
from orbench.stages.counts import Counts
from orbench.stages.engine import Job
from orbench.stages.run import BRIEF, Outcome

SCRIPTED_NOTE = "scripted model: fixed texts, not a real model's; this measures nothing"
SCRIPTED_INPUT_NOTE = "prompts of the scripted model, written by hand; responses of a real model"


def end(job: Job) -> Outcome:
    """Report how a run went, and return what came of it."""
    run = job.run
    counts = job.counts
    for line in closing_lines(job):
        say(line)
    nothing = bool(job.plan) and not counts.written
    if run.interrupted:
        left = counted(counts.rows[NOT_ASKED], "row")
        say(f"interrupted: {left} left; run the same command to resume")
    elif run.stopped:
        say(f"error: {run.stopped}")
    elif nothing:
        none = f"none of the {counted(len(job.plan), 'request')} gave a result"
        say(f"error: {none}{_see(job)}")
        if counts.rows["unscored"]:
            say(f"unreadable replies are kept; to ask again, delete {job.log.path}")
    path, *others = job.stage.outputs.values()
    if not nothing:
        for other in others:
            say(f"also written: {other}")
    if run.interrupted:
        status = 130
    elif run.stopped or nothing:
        status = 1
    else:
        status = 3 if counts.aside else 0
    return Outcome(status, None if nothing else path, counts.written)


def _see(job: Job) -> str:
    """Return where to look after a run without a result."""
    if job.counts.kept:
        return f"; {job.stage.output} and its failed rows are kept from an earlier run"
    return f"; see {job.stage.beside(FAILED if job.counts.aside else '.answers.jsonl')}"


def closing_lines(job: Job) -> Iterator[str]:
    """Yield the stage's table, what a reader of the numbers must know, and the counts."""
    stage = job.stage
    counts = job.counts
    rows = counts.rows
    brief = BRIEF.get()
    if not rows[NOT_ASKED] and not brief:  # a rate of some rows would be another rate
        yield from job.closing.lines()
    if doubt := job.closing.doubt():
        yield doubt
    if measures_nothing(job):
        yield SCRIPTED_NOTE
    elif is_scripted(job.input_record) and not brief:
        yield SCRIPTED_INPUT_NOTE
    parts = []
    if counts.written != rows["done"]:
        parts.append(f"{counted(counts.written, 'row')} written")
    parts += [f"{name} {rows[name]:,}" for name in ("done", "failed", "unscored")]
    if rows[NOT_ASKED]:
        parts.append(f"not asked {rows[NOT_ASKED]:,}")
    parts.append(f"answers reused from the log {counts.answers['reused']:,}")
    yield " · ".join(parts)
    if stage.models:
        yield " · ".join([_sent(job), *_other_models(job)])
    yield from _refused_to_judge(counts)
    if cut_off := counts.answers["cut off"]:
        limit = stage.parameters.get("max_tokens")
        of = f" of {limit:,} tokens (--max_tokens)" if limit else ""
        yield f"{counted(cut_off, 'answer')} cut off at the limit{of}"
    if counts.aside and not counts.kept:
        yield f"{counted(counts.aside, 'row')} in {stage.beside(FAILED)}"
    for why, times in counts.errors.most_common(1):
        if why not in job.run.stopped:
            yield f"the most frequent error ({times:,}): {why}"


def _refused_to_judge(counts: Counts) -> Iterator[str]:
    """Yield how often a judge refused to judge, by category: a rate without these rows is biased
    if it refused the worst ones.
    """
    for judge, refused in counts.judge_refused.items():
        asked = counts.judged[judge]
        shares = [
            f"{one_line(category)} {_share(n, asked[category])}"
            for category, n in sorted(refused.items())
        ]
        every = _share(refused.total(), asked.total())
        yield f"{judge} refused to judge {every}: {', '.join(shares)}"


def _share(n: int, of: int) -> str:
    return f"{n:,} of {of:,} ({n / of:.1%})"


def _sent(job: Job) -> str:
    """Return requests, retries, tokens and cost of this run."""
    run = job.run
    tokens = run.tokens
    line = f"requests {run.requests:,}, retries {run.retries} · tokens in {tokens.prompt:,}"
    if tokens.cached:
        line += f" (cached {tokens.cached:,})"
    line += f", out {tokens.completion:,}"
    if tokens.reasoning:
        line += f" (thinking {tokens.reasoning:,})"
    cost = tokens.cost(job.stage.args.prices)
    return f"{line} · {cost}" if cost else line


def _other_models(job: Job) -> Iterator[str]:
    """Yield which other models answered, and which changed during the run."""
    for model in job.stage.models:
        answers = dict(job.counts.served_by[model.asked])
        answers.pop("", None)
        ids = {name.partition(" via ")[0] for name in answers}
        named = ", ".join(f"{one_line(name)} ({n:,})" for name, n in sorted(answers.items()))
        if not all(is_same_model(model.id, id_) for id_ in ids):
            yield f"{sum(answers.values()):,} answered by {named} instead of {model.id}"
        elif len(ids) > 1:
            yield f"{model.id} answered as {named}"
