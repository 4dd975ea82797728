"""How every stage runs: send what is missing from the answer log, then write what follows."""

import asyncio
from functools import partial
from pathlib import Path

from orbench.asking.answer_log import AnswerLog
from orbench.asking.asked import Limits
from orbench.asking.requests import Answer, Missing, Request
from orbench.base.messages import UserError, counted, say, tell
from orbench.base.records import read_record
from orbench.base.tables import make_folder, sha256_of
from orbench.stages import output
from orbench.stages.job import Job, after_unreadable, outcome, pending_requests
from orbench.stages.stage import Stage, check_outputs

CHARACTERS_A_TOKEN = 4  # rule of thumb for English
LATER_TOKENS = 700  # of a request about a response that is not there yet


def run_stage(stage: Stage) -> int:
    """Run a stage. Returns the exit status; the CSV's path goes to stdout. Raises UserError."""
    args = stage.args
    check_outputs(stage)
    looks = args.dry_run or args.preflight is not None
    works = not (looks or args.from_log)
    if works:
        make_folder(stage.output.parent)
    with AnswerLog(stage.beside(".answers.jsonl"), write=works and bool(stage.models)) as log:
        output.check_not_replaced(stage)  # under the lock, while no other run asks
        if stage.finished:
            say(f"{stage.output} is complete; --overwrite reads the answers again")
            tell(stage.output)
            return 0
        job = Job(stage, log, read_record(stage.table.path))
        if looks:
            return estimate(job)
        if args.from_log and not len(log):
            raise UserError(f"{log.path} holds no answers")
        say_before(job)
        while True:
            plan(job)
            ask(job)
            over = job.asked.stopped or job.asked.interrupted or job.handed_over
            if over or not stage.grows:
                break
            if not stage.more([outcome(job, *planned)[0] for planned in job.plan]):
                break
        if job.handed_over:
            if job.asked.interrupted:
                raise KeyboardInterrupt
            if job.asked.stopped:
                raise UserError(job.asked.stopped)
            return 0
        counts = output.write_outputs(job)
    return output.close(job, counts)


def plan(job: Job) -> None:
    """Build the requests of the rows that have no plan yet."""
    for row in job.stage.table.rows[len(job.plan) :]:
        job.plan.append((row, job.stage.requests(row)))


def say_before(job: Job) -> None:
    """Report which models are asked, and what is wrong with the input."""
    for model in job.stage.models:
        if model.id != model.asked or model.base_url != model.settings.base_url:
            name = model.asked if model.asked == model.id else f"{model.asked} is {model.id}"
            say(f"{name} at {model.address}")
    before = job.input_record
    path = job.stage.table.path
    written = before.get("output", {}).get("csv")
    if before.get("stage") == "alignment_checker" and written not in (None, sha256_of(path)):
        job.stage.notes.append("responses edited since stage 4 wrote them")
    for note in job.stage.notes:
        say(note)
    if before.get("complete") is False:
        say(f"{path} is from an unfinished run: rows are missing")


def ask(job: Job) -> None:
    """Send what is missing: live, through a batch service, or through files."""
    stage = job.stage
    args = stage.args
    asked = job.asked
    pending = partial(pending_requests, job)
    if args.from_log or not stage.models:
        pending()  # for the count of unreadable replies
        return
    if args.import_answers:
        from orbench.asking.files import import_answers

        import_answers(pending, job.log, asked, list(map(Path, args.import_answers)))
    elif args.batch:
        from orbench.asking.batch import ask_in_batches

        state = stage.beside(".batches.json")
        ask_in_batches(pending, stage.models, job.log, asked, args.batch == "wait", state)
    elif requests := pending():
        if waiting := in_batches(stage).intersection(request.key for request in requests):
            raise UserError(
                f"{counted(len(waiting), 'request')} are already in batches and would be paid for "
                f"twice; collect them with --batch, or delete {stage.beside('.batches.json')}"
            )
        if args.export_requests:
            from orbench.asking.files import export_requests

            export_requests(lambda: requests, Path(args.export_requests), stage.models)
        else:
            ask_now(job, requests)
    elif args.export_requests:
        say("nothing to export: the log holds every answer")
    for note in asked.adaptation.notes:
        say(note)
    asked.adaptation.notes.clear()


def ask_now(job: Job, requests: list[Request]) -> None:
    """Send the requests live, and again while an answer cannot be read."""
    from orbench.asking.live import Progress, ask_live

    stage = job.stage
    progress = Progress(stage.name, len(requests), quiet=stage.args.quiet)

    def follow_up(request: Request, answer: Answer | None) -> Request | None:
        if answer is None:
            return request.substitute
        if stage.asks == 1:
            return None
        reading = stage.read(request, answer)
        if not request.attempt:  # repetitions of a few odd rows come in a row, at the end
            job.count(request, reading)
        if not isinstance(reading, Missing):
            return None
        return after_unreadable(job, request, answer, reading)

    args = stage.args
    models = stage.models
    limits = Limits(args.concurrency, args.max_retries, args.timeout, args.requests_per_minute)
    ask_live(lambda: requests, models, job.log, job.asked, limits, follow_up, progress)


def in_batches(stage: Stage) -> set[bytes]:
    """The keys of requests that are under way in a provider's batches."""
    state = stage.beside(".batches.json")
    if not state.exists():  # as a rule, and the import takes time
        return set()
    from orbench.asking.batch import under_way

    return under_way(state)


def estimate(job: Job) -> int:
    """Report what a run would send and cost. Returns the exit status."""
    stage = job.stage
    plan(job)
    waiting = in_batches(stage)
    pending = pending_requests(job)
    requests = [request for request in pending if request.key not in waiting]
    every = {r.key for _, some in job.plan if not isinstance(some, Missing) for r in some}
    n = len(requests)
    texts = (message["content"] for request in requests for message in request.messages)
    tokens = sum(map(len, texts)) // CHARACTERS_A_TOKEN
    if stage.args.preflight is not None:
        foresee(stage, n, tokens)
        return 0
    answered = len(every) - len(pending)
    say(f"requests: {len(every):,}, answered in the log: {answered:,}, to send: {n:,}")
    if len(pending) > n:
        say(f"already in batches: {len(pending) - n:,}; --batch collects them")
    most = sum(request.parameters.get("max_tokens", 0) for request in requests)
    of_answers = f", at most {most:,} in the answers (max_tokens)" if most else ""
    say(f"tokens: about {tokens:,} in the prompts{of_answers}")
    if prices := stage.args.prices:
        cost = (tokens * prices.prompt + most * prices.completion) / 1e6
        say(f"cost: {'at most' if most else 'for the prompts'} about {cost:.2f}")
    return 0


def foresee(stage: Stage, to_send: int, tokens: int) -> None:
    """For measure.py: try each endpoint that is needed, unless this is a dry run; print requests to
    send, tokens and seconds on stdout. Raises UserError.
    """
    from orbench.asking.live import probe

    args = stage.args
    later = args.preflight if stage.models else 0
    if stage.under_test and not stage.table.rows:  # stage 4, which comes first
        raise UserError(f"{stage.table.path} holds no prompts, or --limit is 0")
    n = to_send + later
    models = stage.models if n else []
    replies = [asyncio.run(probe(one, args.max_tokens, dry=args.dry_run)) for one in models]
    seconds = n * sum(replies) / max(1, len(models))
    print(n, tokens + later * LATER_TOKENS, round(seconds))
