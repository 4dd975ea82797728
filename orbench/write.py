"""What a run leaves: the CSVs, the failed file, the run record, and the closing lines."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from orbench import record
from orbench.answers import AnswerLog, Tokens
from orbench.job import Job, Outcome, outcomes
from orbench.judge import is_cut_off, says_nothing
from orbench.models import Model, is_same_model
from orbench.record import FAILED, NOT_ASKED, Record
from orbench.settings import differences, settings_of
from orbench.stage import Stage
from orbench.table import PromptSet, Writer, sha256_of
from orbench.terminal import UserError, counted, one_line, say, tell

SCRIPTED_NOTE = "scripted model: fixed texts, not a real model's; the outcome measures nothing"
SCRIPTED_INPUT_NOTE = (
    "the prompts are the scripted model's, few and written by hand; the responses are a model's"
)
EMPTY_SHARE = 0.02  # of the rows, above which empty answers are warned of


@dataclass
class Counts:
    """What came of a run's rows."""

    done: int = 0
    failed: int = 0
    unscored: int = 0
    remaining: int = 0  # not asked yet
    written: int = 0  # output rows
    aside: int = 0  # in the failed file
    reused: int = 0  # answers that were in the log before this run
    cut_off: int = 0  # answers used that ended at the token limit
    empty: int = 0  # of the unscored: an answer that says nothing, not even why
    tokens: Tokens = field(default_factory=Tokens)  # of the answers used
    errors: Counter[str] = field(default_factory=Counter)
    # Model as asked -> the ids that answered, these with a gateway's providers (see
    # `Answer.served_by`), and the parameters that it rejects.
    returned: dict[str, Counter[str]] = field(default_factory=dict)
    served_by: dict[str, Counter[str]] = field(default_factory=dict)
    dropped: dict[str, set[str]] = field(default_factory=dict)
    prompts: PromptSet = field(default_factory=PromptSet)
    outputs: Mapping[str, Path] = field(default_factory=dict)  # label -> what was written
    _used: set[bytes] = field(default_factory=set)

    def add(self, one: Outcome, log: AnswerLog) -> None:
        """Count one row."""
        if "prompt" in one.row:
            self.prompts.add(one.row["prompt"])
        if isinstance(one.result, list):
            self.done += 1
            self.written += len(one.result)
        elif one.result.kind == NOT_ASKED:
            self.remaining += 1
        elif one.result.kind in ("bad_request", "gave_up"):
            self.failed += 1
            self.errors[one.result.why] += 1
        else:
            self.unscored += 1
            self.empty += any(says_nothing(answer) for _, _, answer in one.answers)
        for model, key, answer in one.answers:
            self.reused += log.was_there(key)
            self.returned.setdefault(model, Counter())[answer.model] += 1
            self.served_by.setdefault(model, Counter())[answer.served_by] += 1
            if answer.dropped:
                self.dropped.setdefault(model, set()).update(answer.dropped)
            if key not in self._used:
                self._used.add(key)
                self.cut_off += is_cut_off(answer)
                self.tokens.add(answer)


def write_outputs(job: Job) -> Counts:
    """Write the CSVs, the failed file and the run record. Raises UserError."""
    stage, counts = job.stage, Counts()
    columns = [c for c in stage.table.columns if c not in ("error_type", "error")]
    columns += ["sample"] if stage.samples > 1 else []
    try:
        writer = Writer(stage.outputs, stage.columns)
        failed = Writer({"": stage.beside(FAILED)}, [*columns, "error_type", "error"])
        try:
            for number, one in enumerate(outcomes(job)):
                counts.add(one, job.log)
                write_outcome(job, number, one, writer, failed)
            commit(job, counts, writer, failed)
        finally:
            writer.discard()
            failed.discard()
        if counts.outputs:
            write_record(job, counts)
    except OSError as error:
        raise UserError(
            f"{stage.output} cannot be written: {error.strerror}; the answers are in the log, "
            "run the same command again"
        ) from None
    return counts


def commit(job: Job, counts: Counts, writer: Writer, failed: Writer) -> None:
    """Put the finished files under their names. Where there is no row to show, what stood there
    before stays. Raises UserError, OSError.
    """
    stage = job.stage
    if job.args.from_log and counts.remaining and not counts.returned:
        raise UserError(nothing_in_log(job))
    empty = not counts.written and (counts.remaining or not stage.allow_empty)
    if empty and any(path.exists() for path in stage.outputs.values()):
        return
    counts.aside = counts.failed + counts.unscored
    counts.aside += counts.remaining if job.only_reads else 0
    if counts.aside:
        failed.commit()
    else:
        stage.beside(FAILED).unlink(missing_ok=True)
    if empty:
        return
    if stage.table.changed():
        raise UserError(
            f"{stage.table.path} changed while the run went on; the answers are in the log, run "
            "the same command again for the new rows"
        )
    writer.commit()
    counts.outputs = stage.outputs


def nothing_in_log(job: Job) -> str:
    """Why --from_log found no answer at all, in one line."""
    if not len(job.log):
        return f"there is no answer in {job.log.path}"
    others = "; ".join(differences(job.log.made_with, settings_of(job.stage)))
    return (
        f"{job.log.path} holds answers of another address, other settings or another input"
        f"{': ' * bool(others)}{others}. Nothing is written"
    )


def write_outcome(job: Job, number: int, one: Outcome, writer: Writer, failed: Writer) -> None:
    """Write what came of one row, and tell the stage's summary."""
    stage, summary = job.stage, job.stage.summary
    if isinstance(one.result, list):
        for out in one.result:
            writer.write(out, stage.label_of(out) if stage.split else "")
            if summary:
                summary.scored(out)
        return
    kind, why, _ = one.result
    if kind != NOT_ASKED or job.only_reads:
        failed.write({**one.row, "error_type": kind, "error": why})
    if kind != NOT_ASKED and summary:
        summary.unscored(one.row)
    if kind.startswith("empty_") and number % stage.samples == 0:
        say(f"row {number // stage.samples + 1}: {why}")


def write_record(job: Job, counts: Counts) -> None:
    """The run record, beside each CSV. Raises OSError."""
    stage, asked = job.stage, job.run
    entry: Record = {
        "stage": stage.name,
        "command": list(job.command),
        "models": [
            {
                "asked": model.asked,
                "id": model.id,
                "provider": model.provider,
                "endpoint": model.endpoint,
                "family": model.family,
                "protocol": model.protocol,
                "returned": sorted(counts.returned.get(model.asked, ())),
                "served_by": dict(counts.served_by.get(model.asked, {})),
            }
            for model in stage.models
        ],
        "under_test": dict(stage.under_test) or record.under_test(job.input_record)._asdict(),
        "selectors": record.selectors(job.input_record),
        "missing_before": dict(stage.missing_before),
        "written_by": record.written_by(stage.name, stage.models, job.input_record),
        "notes": list(stage.notes),
        "scripted": job.scripted,
        "scripted_input": job.scripted_input,
        "parameters": dict(stage.parameters),
        "dropped_parameters": {name: sorted(gone) for name, gone in counts.dropped.items()},
        "left_out": dict(asked.given_up),
        "prompt_file_sha256": stage.prompt_file and sha256_of(stage.prompt_file),
        "part_of_input": job.input_record.get("part") or job.input_record.get("part_of_input", ""),
        "settings": settings_of(stage),
        "input": input_of(job),
        "prompt_set": counts.prompts.hexdigest(),
        "source": job.input_record.get("source") or {},
        "counts": {
            "done": counts.done,
            "failed": counts.failed,
            "unscored": counts.unscored,
            "empty": counts.empty,
            "remaining": counts.remaining,
            "written": counts.written,
            "reused": counts.reused,
            "requests": asked.requests,
            "retries": asked.retries,
        },
        "tokens": asdict(counts.tokens),
        "findings": dict(stage.summary.findings()) if stage.summary else {},
        "complete": not counts.remaining,
        "finished_round": finished_round(job, counts),
        "versions": record.versions(),
        "start": job.start.isoformat(timespec="seconds"),
        "end": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    for part, path in stage.outputs.items():
        record.write(path, entry | {"part": part})


def finished_round(job: Job, counts: Counts) -> int:
    """The last round of asking that came to its end: the next run may ask again what it could not
    read. Re-reading the log does not end a round.
    """
    if counts.remaining or job.args.from_log:
        before = job.previous.get("finished_round")
        return before if isinstance(before, int) else 0
    return job.log.round


def input_of(job: Job) -> Record:
    """What the rows of a run were: file, hash, how many, sampled how."""
    stage, shuffle = job.stage, getattr(job.args, "shuffle", None)
    about = {"path": path_of_input(stage), "sha256": stage.table.sha256, "rows": stage.table.n}
    return about | {"samples": stage.samples, "shuffle": shuffle}


def path_of_input(stage: Stage) -> str:
    """The input as seen from the folder of the CSV; "" for stage 1, which has none."""
    if not stage.table.sha256:
        return ""
    return os.path.relpath(stage.table.path.resolve(), stage.output.parent.resolve())


# ---------------------------------------------------------------------------------- close


def close_without_csv(job: Job) -> int:
    """Say where the answers are, and give the exit status. Nothing goes to stdout."""
    asked, args = job.run, job.args
    if args.export_requests and not job.handed_over and not asked.stopped:
        say("every request has an answer in the log: there is nothing to export")
    if args.shard is not None and not job.handed_over:
        say(
            f"{args.shard}: {counted(asked.answered, 'answer')}, {len(asked.failed):,} failed; "
            f"they are in {job.log.path}. When all {args.shard.of} are done, append their logs to "
            f"{job.stage.beside('.answers.jsonl')} and run without --shard"
        )
    if asked.interrupted:
        say("interrupted; run the same command to resume")
        return 130
    if asked.stopped:
        say(f"error: {asked.stopped}")
        return 1
    return 3 if asked.failed or asked.given_up or job.lacking else 0


def close(job: Job, counts: Counts) -> int:
    """Say how it went, print the path of the CSV, and give the exit status."""
    stage, asked = job.stage, job.run
    say_outcome(job, counts)
    nothing = stage.n > 0 and not counts.written and stage.allow_empty
    if asked.interrupted:
        say(f"interrupted: {counted(counts.remaining, 'row')} left; run the same command to resume")
    elif asked.stopped:
        if counts.outputs:
            say(f"{counted(counts.done, 'row')} done, {counts.remaining:,} not: {stage.output}")
        say(f"error: {asked.stopped}")
    elif nothing:
        say(f"error: nothing came out of the {counted(stage.n, 'row')} of {stage.table.path}")
    paths = [] if nothing else list(counts.outputs.values())
    for path in paths[1:]:
        say(f"also written: {path}")
    if paths:
        tell(paths[0])
    if asked.interrupted:
        return 130
    if asked.stopped or nothing:
        return 1
    return 3 if counts.failed + counts.unscored + counts.remaining else 0


def say_outcome(job: Job, counts: Counts) -> None:
    """The stage's table, what a reader of the numbers must know, and the counts."""
    stage, asked = job.stage, job.run
    if stage.summary and counts.done + counts.unscored + counts.failed:
        for line in stage.summary.lines():
            say(line)
    if job.scripted:
        say(SCRIPTED_NOTE)
    elif job.scripted_input:
        say(SCRIPTED_INPUT_NOTE)
    for name, why in asked.given_up.items():
        if why not in asked.stopped:  # which is the last line
            say(f"{name} was dropped during the run and has no answers after that: {why}")
    for line in closing_lines(job, counts):
        say(line)
    if counts.cut_off:
        most = stage.parameters.get("max_tokens")
        of = f" of {most:,} tokens (--max_tokens)" if isinstance(most, int) else ""
        say(f"{counted(counts.cut_off, 'answer')} cut off at the limit{of}")
    if counts.aside:
        say(f"{counted(counts.aside, 'row')} in {stage.beside(FAILED)}")
    warn_of_empty(counts)
    for why, times in counts.errors.most_common(1):
        if why not in asked.stopped:
            say(f"the most frequent error ({times:,}): {why}")
    if job.only_reads and counts.remaining:
        say(f"{counted(counts.remaining, 'row')} not asked yet")


def warn_of_empty(counts: Counts) -> None:
    """Say it where many answers are empty: some gateways make that of a refusal."""
    rows = counts.done + counts.failed + counts.unscored
    if counts.empty > EMPTY_SHARE * rows:
        say(
            f"{counts.empty:,} of {rows:,} answers are empty and do not say why: perhaps refusals "
            "that a gateway hides; they are unscored, see the bounds"
        )


def closing_lines(job: Job, counts: Counts) -> list[str]:
    """done / failed / unscored / reused; requests, retries, tokens, cost, answers by others."""
    asked, args, tokens = job.run, job.args, job.run.tokens
    line = (
        f"done {counts.done:,} · failed {counts.failed:,} · unscored {counts.unscored:,} · reused "
        f"from the log {counts.reused:,}"
    )
    sent = f"requests {asked.requests:,}, retries {asked.retries:,} · tokens in {tokens.prompt:,}"
    sent += f" (cached {tokens.cached:,})" if tokens.cached else ""
    sent += f", out {tokens.completion:,}"
    sent += f" (thinking {tokens.reasoning:,})" if tokens.reasoning else ""
    if counts.written != counts.done:
        line = f"{counted(counts.written, 'row')} written · " + line
    if args.price_in is not None and args.price_out is not None:
        cached = args.price_in if args.price_cached is None else args.price_cached
        cost = (tokens.prompt - tokens.cached) * args.price_in + tokens.cached * cached
        sent += f" · cost {(cost + tokens.completion * args.price_out) / 1e6:.4f}"
    return [line, " · ".join([sent, *other_models(job.stage.models, counts)])]


def other_models(models: Sequence[Model], counts: Counts) -> Iterator[str]:
    """Who else answered than the model that was asked, and where that changed during the run."""
    for model in models:
        found = counts.returned.get(model.asked, Counter())
        others = {id_: n for id_, n in found.items() if not is_same_model(model.id, id_)}
        named = {id_: n for id_, n in found.items() if id_}
        if others:
            yield f"{sum(others.values()):,} not from {model.id} but from {_those(others)}"
        elif len(named) > 1:
            yield f"{model.id} answered as {_those(named)}"


def _those(found: Mapping[str, int]) -> str:
    return ", ".join(f"{one_line(id_)} ({n:,})" for id_, n in sorted(found.items()))
