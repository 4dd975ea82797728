"""What a run would send and cost, without sending anything (`--dry_run`)."""

from orbench.asking.inquiry import pending
from orbench.base.messages import say
from orbench.base.prompts import text_of
from orbench.stages.engine import StageRun, not_in_batches
from orbench.stages.run import Outcome

CHARACTERS_A_TOKEN = 4  # rule of thumb for English


def dry_run(run: StageRun) -> Outcome:
    """Report what a run would send and cost. Raises UserError."""
    to_send = pending(run)
    requests = not_in_batches(run.stage, to_send)
    inquiries = {inquiry.request.key for inquiry in run.inquiries}
    n = len(requests)
    answered = len(inquiries) - len(to_send)
    say(f"requests: {len(inquiries):,}, answered in the log: {answered:,}, to send: {n:,}")
    if len(to_send) > n:
        say(f"already in batches: {len(to_send) - n:,}; --batch collects them")
    characters = 0
    most = 0
    for request in requests:
        characters += sum(len(text_of(turn)) for turn in request.messages)
        most += request.parameters.get("max_tokens", 0)
    tokens = characters // CHARACTERS_A_TOKEN
    line = f"tokens: about {tokens:,} in the prompts"
    if most:
        line += f", at most {most:,} in the answers (max_tokens)"
    say(line)
    cost = 0.0
    if prices := run.stage.args.prices:
        cost = (tokens * prices.prompt + most * prices.completion) / 1e6
        limit = "at most" if most else "for the prompts"
        say(f"cost: {limit} about {cost:.2f}")
    return Outcome(0, to_send=n, tokens=tokens, cost=cost, models=run.stage.models, stored=answered)
