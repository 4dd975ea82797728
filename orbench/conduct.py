"""The one way that all stages go: read the table, ask what has no answer yet, write the CSVs."""

import argparse
import asyncio
import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from orbench import record
from orbench.answers import AnswerLog
from orbench.chat import Answer, Request
from orbench.exchange import ShardLog, export_requests, import_answers, wanted_of
from orbench.models import Model
from orbench.options import check_ways, limits_of
from orbench.record import under_test as under_test_of
from orbench.run import CHARACTERS_A_TOKEN, Failure, Progress, Run
from orbench.stage import Outcome, RowsOf, Stage, Unscored, check_outputs, make_folder
from orbench.table import PromptSet, Row, Table, Writer, beside, sha256_of
from orbench.terminal import UserError, counted, say

if TYPE_CHECKING:
    from orbench.batch import State

PARTIAL_AFTER_S = 3.0  # the first look into a running run, and the least pause after one
PARTIAL_SHARE = 0.05  # of the time, at most, goes into the partial CSV
SLICE_S = 0.005  # so long at most it holds up the requests
NOT_ASKED = "not_asked"
SCRIPTED = "scripted model: fixed texts from no model; whatever comes out measures nothing"


def conduct(stage: Stage, args: argparse.Namespace, command: Sequence[str]) -> int:
    """Run a stage over its table. Gives the exit status; the path of the main CSV goes to
    stdout.
    """
    check_ways(args)
    if args.dry_run:
        return Conductor(stage, args, command, write=False).plan()
    return Conductor(stage, args, command, write=True).go()


class Conductor:
    """One run of a stage: what is open while it goes, and what has been counted."""

    def __init__(
        self, stage: Stage, args: argparse.Namespace, command: Sequence[str], *, write: bool
    ) -> None:
        self.stage, self.args, self.command = stage, args, command
        self.start = datetime.now(UTC)
        check_outputs(stage)
        if write:
            make_folder(stage.output.parent)
        self.outputs = stage.split or {"": stage.output}
        self.previous = record.read(next(iter(self.outputs.values())))
        self.input_record = record.read(stage.table.path)
        log = self.open_log(write=write and bool(stage.models))
        if log.garbled:
            say(f"{log.path}: {log.garbled} lines cannot be read and are passed over")
        # A finished run that left rows unscored is followed by one that asks about them again.
        finished = self.previous.get("finished_log")
        self.finished: int = finished if isinstance(finished, int) else 0
        over = 0 if args.from_log else self.finished
        self.run = Run(
            log, limits_of(args), stage.unreadable, stage.asks, over, self.failed_before()
        )
        left_out = self.previous.get("left_out")
        if args.from_log and isinstance(left_out, dict):  # by the run that made the log
            self.run.given_up = {str(model): str(why) for model, why in left_out.items()}
        self.settled = self.reused = self.done = self.unscored = self.failed = 0
        self.remaining = self.written = self.unreadable = 0
        self.errors: Counter[str] = Counter()
        self.used: set[bytes] = set()  # keys of the answers in the CSV
        self.tokens = [0, 0]  # of those: prompts, completions
        self.scripted = any(model.scripted for model in stage.models) or bool(
            self.input_record.get("scripted")
        )
        self.prompts = PromptSet()
        self.returned: dict[str, set[str]] = {}  # model as asked -> ids that answered
        self.dropped: dict[str, set[str]] = {}  # model as asked -> parameters it rejects
        self.lack = False  # after an import: requests are left without an answer
        self.handed_over = False  # the answers come later: a file, or batches that nobody waits for

    def open_log(self, *, write: bool) -> AnswerLog:
        """The answer log, for a shard one of its own."""
        merged = beside(self.stage.output, ".answers.jsonl")
        if self.args.shard is None:
            return AnswerLog(merged, write=write)
        path = beside(self.stage.output, f".{self.args.shard}.answers.jsonl")
        return ShardLog(path, merged, write=write)

    def failed_before(self) -> int:
        """How many rows failed in the last run: the next must get past them, should they again."""
        try:
            return Table(beside(self.stage.output, "_failed.csv")).n
        except UserError:
            return 0

    # -- before ---------------------------------------------------------------------------------

    def pending(self, model: Model | None = None) -> Iterator[tuple[Request, Request]]:
        """The requests without a usable answer, each once and with how it is to be asked next;
        those that go to one model, or all.
        """
        seen: set[bytes] = set()
        for row in self.stage.rows():
            requests = self.stage.requests_of(row)
            if isinstance(requests, Unscored):
                continue
            for request in requests:
                if model is not None and request.model != model:
                    continue
                key = request.key()
                if self.args.shard is not None and not self.args.shard.holds(key):
                    continue
                if key not in seen:
                    seen.add(key)
                    if asked := self.run.next_ask(request):
                        yield request, asked
                    else:
                        self.settled += 1

    def plan(self) -> int:
        """Say what a run would send."""
        stage, count, characters, first = self.stage, 0, 0, None
        under_way = {key for state in self.batch_states() for key in state.under_way()}
        waiting = 0
        for _, asked in self.pending():
            if asked.key() in under_way:
                waiting += 1
                continue
            first = first or asked
            count += 1
            characters += sum(len(message["content"]) for message in asked.messages)
        tokens_in = characters // CHARACTERS_A_TOKEN
        most = stage.parameters.get("max_tokens")
        every = count + waiting + self.settled
        say(f"requests: {every:,}, of which {self.settled:,} are answered in the log")
        if waiting:
            say(f"under way in batches: {waiting:,}, which --batch collects")
        say(
            f"to send: {count:,}, about {tokens_in:,} tokens in (characters / {CHARACTERS_A_TOKEN})"
        )
        if most:
            say(f"tokens out: at most {count * most:,} (max_tokens {most})")
        if self.args.price_in is not None:
            say(f"cost of the tokens in: about {tokens_in / 1e6 * self.args.price_in:.2f}")
        if self.args.price_out is not None and most:
            say(f"cost of the tokens out: at most {count * most / 1e6 * self.args.price_out:.2f}")
        if first is not None:
            say(f"the first request, to {first.model.endpoint}:")
            for line in json.dumps(first.body(), indent=2).splitlines():
                say(line)
        return 0

    # -- the run --------------------------------------------------------------------------------

    def go(self) -> int:
        """Ask, write, say what came of it."""
        stage, run = self.stage, self.run
        for model in stage.models:
            if model.id != model.asked or model.base_url != model.settings.base_url:
                say(f"{model.asked} is {model.id} at {model.endpoint}")
        if self.input_record.get("complete") is False:
            say(f"{stage.table.path} is from a run that did not finish: rows are missing in it")
        try:
            while True:
                if stage.models and not self.args.from_log:
                    self.ask()
                ended = run.stopped or run.interrupted or self.handed_over
                if ended or not stage.more(self.outcomes()):
                    break
            if self.handed_over or self.args.export_requests or self.args.shard is not None:
                return self.end_without_csv()
            outputs = self.write()
        finally:
            run.log.close()
            with suppress(OSError):  # a look for people; that it stays behind harms nobody
                beside(stage.output, ".partial.csv").unlink(missing_ok=True)
        return self.close(outputs)

    def ask(self) -> None:
        """Get the answers that the log lacks."""
        args = self.args
        if not args.import_answers:
            self.check_nothing_is_under_way()
        if args.export_requests or args.import_answers:
            self.exchange()
            return
        if args.batch and self.ask_in_batches() != "left":
            return
        total = self.stage.n * len(self.stage.models)
        if len(self.run.log) or args.shard is not None:
            total = sum(1 for _ in self.lacking())
        if not total:
            return
        progress = Progress(self.stage.name, total, quiet=args.quiet)
        beside_it = self.refresh if args.shard is None else None
        try:
            self.run.answer_all(self.lacking, self.stage.models, progress, beside_it)
        finally:
            progress.close()
        self.say_notes()

    def say_notes(self) -> None:
        """Say what the endpoints made clear (a parameter that a model rejects), once."""
        notes = self.run.adaptation.notes
        while notes:
            say(notes.pop(0))

    def lacking(self, model: Model | None = None) -> Iterator[Request]:
        """The pending requests but for those that failed in a batch of this run."""
        failed = frozenset(self.run.failed)
        return (request for request, _ in self.pending(model) if request.key() not in failed)

    def batch_states(self) -> list["State"]:
        """What stands on disk of this output's batches: those of the whole and of its shards."""
        from orbench.batch import State

        stem = escape(self.stage.output.stem)
        paths = self.stage.output.parent.glob(f"{stem}*.batches.json")
        ours = re.compile(
            rf"{re.escape(self.stage.output.stem)}(\.shard-\d+-of-\d+)?\.batches\.json"
        )
        return [State(path) for path in sorted(paths) if ours.fullmatch(path.name)]

    def batches_path(self) -> Path:
        """Where this run notes its batches."""
        path = self.run.log.path
        return path.with_name(path.name.removesuffix(".answers.jsonl") + ".batches.json")

    def check_nothing_is_under_way(self) -> None:
        """Raise UserError where requests of this run are in batches that it does not collect."""
        for state in self.batch_states():
            if self.args.batch and state.path == self.batches_path():
                continue
            under_way = state.under_way()
            n = under_way and sum(asked.key() in under_way for _, asked in self.pending())
            if n:
                raise UserError(
                    f"{n:,} of the requests are under way in batches ({state.path}): the command "
                    "that handed them in collects them; to ask (and pay) again, delete that file"
                )

    def exchange(self) -> None:
        """Write the pending requests to a file, or take answers from files."""
        stage, args = self.stage, self.args
        if args.export_requests:
            path = Path(args.export_requests)
            self.handed_over = export_requests(self.pending(), stage.models, path) > 0
            return
        new = 0
        while True:  # an unreadable answer is followed by the next ask's
            wanted = wanted_of(self.pending())
            if not wanted:
                break
            counts = import_answers(self.run, wanted, [Path(name) for name in args.import_answers])
            counts.known -= new
            new += counts.answers
            say(counts.line(len(wanted) - counts.answers))
            if not counts.answers or not counts.foreign:
                break
        self.lack = any(True for _ in self.pending())

    def ask_in_batches(self) -> str:
        """Get the answers through the provider's batch service; "left" where it leaves some."""
        from orbench.batch import Batches, Way

        args, path = self.args, self.batches_path()
        way = Way(
            args.poll_interval, args.batch_size, not args.no_wait, args.batch_fallback, args.quiet
        )
        end = Batches(self.run, self.stage.models, self.pending, path, way).go()
        self.handed_over = end == "waiting"
        if end != "left":
            self.say_notes()
        return end

    async def refresh(self) -> None:
        """Keep a partial CSV for people who look into a long run."""
        pause = PARTIAL_AFTER_S
        while True:
            await asyncio.sleep(pause)
            try:
                spent = await self.write_partial()
            except (OSError, UserError):
                return  # no room for it, or its input is gone: the run itself tells that at its end
            pause = max(PARTIAL_AFTER_S, spent / PARTIAL_SHARE)

    async def write_partial(self) -> float:
        """Write what there is, in slices between the requests. Gives the seconds it took."""
        began, spent = time.monotonic(), 0.0
        writer = Writer({"": beside(self.stage.output, ".partial.csv")}, self.stage.columns)
        try:
            for _, result in self.outcomes():
                for row in result if isinstance(result, list) else ():
                    writer.write(row)
                if time.monotonic() - began > SLICE_S:
                    spent += time.monotonic() - began
                    await asyncio.sleep((time.monotonic() - began) / PARTIAL_SHARE)
                    began = time.monotonic()
            writer.commit()
        finally:
            writer.discard()
        return spent + time.monotonic() - began

    # -- what comes of the answers --------------------------------------------------------------

    def outcomes(self) -> Iterator[Outcome]:
        """Each input row with its output rows, or why it has none; None where it is not asked
        yet.
        """
        rows_of = self.stage.reader()
        finished = self.finished_rows()
        for number, row in enumerate(self.stage.rows()):
            yield row, self.outcome(row, rows_of, finished=number < finished)

    def finished_rows(self) -> int:
        """How many of the first rows a finished run of the same input and models has done."""
        before, models = self.previous.get("input"), self.previous.get("models")
        if not isinstance(before, dict) or not isinstance(models, list):
            return 0
        asked = [model.get("asked") for model in models if isinstance(model, dict)]
        same = asked == [model.asked for model in self.stage.models]
        same = same and before.get("sha256") == self.stage.table.sha256
        rows = before.get("rows")
        if not same or self.previous.get("complete") is not True or not isinstance(rows, int):
            return 0
        return rows * self.stage.samples

    def outcome(
        self, row: Row, rows_of: RowsOf, *, finished: bool
    ) -> list[Row] | Unscored | Failure | None:
        """What came of one input row. finished: a finished run has done it."""
        requests = self.stage.requests_of(row)
        if isinstance(requests, Unscored):
            return requests
        answers: list[Answer | Failure] = []
        for request in requests:
            answer = self.answer_to(request)
            if answer is None:
                return None
            if isinstance(answer, Failure) and not (
                # The row goes on with what the others said; where one was only not asked yet, it
                # waits, unless a finished run has done without that answer.
                self.stage.failures_count and (finished or answer.error_type != NOT_ASKED)
            ):
                return answer
            answers.append(answer)
        return rows_of(row, answers)

    def answer_to(self, request: Request) -> Answer | Failure | None:
        """The usable answer to a request, else the last unusable one, else why there is none."""
        *_, (asked, answer) = self.run.chain(request)
        if answer is None:
            return self.failure_of(request)
        key = asked.key()
        self.reused += self.run.log.was_there(key)
        if key not in self.used:
            self.used.add(key)
            self.tokens[0] += answer.prompt_tokens
            self.tokens[1] += answer.completion_tokens
        self.returned.setdefault(request.model.asked, set()).add(answer.model)
        if answer.dropped:
            self.dropped.setdefault(request.model.asked, set()).update(answer.dropped)
        return answer

    def failure_of(self, request: Request) -> Failure | None:
        """Why a request has no answer; None where it will be asked by the next run."""
        failure = self.run.failed.get(request.key())
        if not (failure or self.run.stopped) and request.model.asked in self.run.given_up:
            failure = Failure("gave_up", self.run.given_up[request.model.asked])
        if failure is None and self.without_requests():
            failure = Failure(NOT_ASKED, "there is no answer in the log")
        return failure

    def write(self) -> Mapping[str, Path]:
        """Write the CSVs and the failed file. Gives label -> path of what was written."""
        stage = self.stage
        # From here on the answers that go into the CSV are counted.
        self.reused, self.used, self.tokens = 0, set(), [0, 0]
        failed_path = beside(stage.output, "_failed.csv")
        failed_columns = [c for c in stage.table.columns if c not in ("error_type", "error")]
        failed_columns += ["sample"] if stage.samples > 1 else []
        try:
            writer = Writer(self.outputs, stage.columns)
            failed = Writer({"": failed_path}, [*failed_columns, "error_type", "error"])
            try:
                for number, (row, result) in enumerate(self.outcomes(), 1):
                    self.count(row, result, number)
                    if isinstance(result, list):
                        self.written += len(result)
                        for out in result:
                            writer.write(out, stage.label_of(out) if stage.split else "")
                    elif result is not None:
                        failed.write({**row, "error_type": result[0], "error": result[1]})
                aside = self.failed + self.unscored
                if aside or (self.remaining and self.without_requests()):
                    failed.commit()
                else:
                    failed_path.unlink(missing_ok=True)
                if not self.written and (self.remaining or not stage.allow_empty):
                    return {}  # nothing to show: what stood there before stays
                self.check_input_is_the_same()
                writer.commit()
            finally:
                writer.discard()
                failed.discard()
            self.write_record()
        except OSError as error:
            raise UserError(
                f"{stage.output} cannot be written: {error.strerror}; the answers are in the log, "
                "the same command goes on"
            ) from None
        return self.outputs

    def check_input_is_the_same(self) -> None:
        """Raise UserError where the input is not what was asked about."""
        table = self.stage.table
        if table.sha256 and sha256_of(table.path) != table.sha256:
            raise UserError(
                f"{table.path} changed while the run went; the answers are in the log, the same "
                "command starts over with the new rows"
            )

    def count(self, row: Row, result: list[Row] | Unscored | Failure | None, number: int) -> None:
        """Count one input row's outcome."""
        if "prompt" in row:
            self.prompts.add(row["prompt"])
        summary = self.stage.summary
        if result is None or result[:1] == (NOT_ASKED,):
            self.remaining += 1
        elif isinstance(result, list):
            self.done += 1
            if summary:
                for out in result:
                    summary.scored(out)
        else:
            if isinstance(result, Unscored):
                self.unscored += 1
                self.unreadable += result.error_type == "unscored"
            else:
                self.failed += 1
                self.errors[result.error] += 1
            samples = self.stage.samples
            if result[0].startswith("empty_") and (number - 1) % samples == 0:
                say(f"row {(number - 1) // samples + 1}: {result[1]}")
            if summary:
                summary.unscored(row)

    # -- after ----------------------------------------------------------------------------------

    def end_without_csv(self) -> int:
        """Say where the answers are, and give the exit status. Nothing goes to stdout."""
        run, args = self.run, self.args
        if args.export_requests and not self.handed_over and not run.stopped:
            say("every request has an answer in the log: there is nothing to export")
        if args.shard is not None and not self.handed_over:
            merged = beside(self.stage.output, ".answers.jsonl")
            say(
                f"{args.shard}: {run.answered:,} answers, {len(run.failed):,} failed; they are in "
                f"{run.log.path}. When all {args.shard.of} are done, append their logs to {merged} "
                "and run without --shard"
            )
        if run.interrupted:
            say("interrupted; the same command goes on")
            return 130
        if run.stopped:
            say(f"error: {run.stopped}")
            return 1
        return 3 if run.failed or run.given_up or self.lack else 0

    def close(self, outputs: Mapping[str, Path]) -> int:
        """Say how it went, and give the exit status."""
        stage, run = self.stage, self.run
        if stage.summary and self.done + self.unscored:
            for line in stage.summary.lines():
                say(line)
        if self.scripted:
            say(SCRIPTED)
        for name, why in run.given_up.items():
            say(f"{name} gave no answer to the rows it was left out of: {why}")
        say(self.closing_line())
        aside = self.failed + self.unscored + (self.remaining if self.without_requests() else 0)
        if aside:
            say(f"{counted(aside, 'row')} in {beside(stage.output, '_failed.csv')}")
        for why, times in self.errors.most_common(1):
            say(f"what failed most ({times:,}): {why}")
        if self.without_requests() and self.remaining:
            say(f"{counted(self.remaining, 'row')} not asked yet")
        if run.interrupted:
            say(f"interrupted: {self.remaining:,} rows remain; the same command goes on")
        elif run.stopped:
            if outputs:
                say(f"{counted(self.done, 'row')} done, {self.remaining:,} not: {stage.output}")
            say(f"error: {run.stopped}")
        for path in list(outputs.values())[1:]:
            say(f"also written: {path}")
        if outputs:
            print(next(iter(outputs.values())))
        if run.interrupted:
            return 130
        if run.stopped:
            return 1
        return 3 if self.failed + self.unscored + self.remaining else 0

    def without_requests(self) -> bool:
        """Whether this run only reads answers."""
        return bool(self.args.from_log or self.args.import_answers)

    def closing_line(self) -> str:
        """done / failed / unscored / reused, requests, retries, tokens, cost."""
        run, args = self.run, self.args
        line = (
            f"done {self.done:,} · failed {self.failed:,} · unscored {self.unscored:,} · reused "
            f"from the log {self.reused:,} · requests {run.requests:,}, retries {run.retries:,} · "
            f"tokens in {run.prompt_tokens:,}, out {run.completion_tokens:,}"
        )
        if self.written != self.done:
            line = f"{self.written:,} rows written · " + line
        if args.price_in is not None and args.price_out is not None:
            cost = run.prompt_tokens * args.price_in + run.completion_tokens * args.price_out
            line += f" · cost {cost / 1e6:.4f}"
        return line

    def write_record(self) -> None:
        """The run record, beside each CSV."""
        stage, run = self.stage, self.run
        under_test = stage.under_test or under_test_of(self.input_record)._asdict()
        table = stage.table
        entry: record.Record = {
            "stage": stage.name,
            "command": list(self.command),
            "models": [
                {
                    "asked": model.asked,
                    "id": model.id,
                    "provider": model.provider,
                    "endpoint": model.endpoint,
                    "family": model.family,
                    "returned": sorted(self.returned.get(model.asked, ())),
                }
                for model in stage.models
            ],
            "under_test": dict(under_test),
            "missing_before": dict(stage.missing_before),
            "scripted": self.scripted,
            "parameters": dict(stage.parameters),
            "dropped_parameters": {name: sorted(gone) for name, gone in self.dropped.items()},
            "left_out": dict(run.given_up),
            "prompt_file_sha256": stage.prompt_file and sha256_of(stage.prompt_file),
            "part_of_input": self.input_record.get("part")
            or self.input_record.get("part_of_input", ""),
            "input": {
                "path": self.path_of_input(),  # from the CSV's folder
                "sha256": table.sha256,
                "rows": table.n,
            },
            "prompt_set": self.prompts.hexdigest(),
            "counts": {
                "done": self.done,
                "failed": self.failed,
                "unscored": self.unscored,
                "remaining": self.remaining,
                "reused": self.reused,
                "requests": run.requests,
                "retries": run.retries,
            },
            "tokens": {"prompt": self.tokens[0], "completion": self.tokens[1]},
            "findings": dict(stage.summary.findings()) if stage.summary else {},
            "unreadable": self.unreadable,
            "complete": not self.remaining,
            "finished_log": self.finished_log(),
            "versions": versions(),
            "start": self.start.isoformat(timespec="seconds"),
            "end": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        for part, path in self.outputs.items():
            record.write(path, entry | {"part": part})

    def finished_log(self) -> int:
        """The log's bytes when a finished run had left rows unscored: what it could not use before
        that is asked again. Only reading a log anew does not open another round.
        """
        anew = self.args.from_log and self.previous
        if self.remaining or not self.unreadable or anew:
            return self.finished
        return self.run.log.size

    def path_of_input(self) -> str:
        """The input as seen from the folder of the CSV; "" for stage 1, which has none."""
        path = self.stage.table.path
        if not self.stage.table.sha256:
            return ""
        return os.path.relpath(path.resolve(), self.stage.output.parent.resolve())


def versions() -> dict[str, str]:
    """The versions a number depends on."""
    from importlib.metadata import version
    from platform import python_version

    return {"python": python_version(), "openai": version("openai")}
