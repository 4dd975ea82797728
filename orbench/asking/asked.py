"""What came of asking: shared by the live runner, batches and files."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from orbench.asking.adaptation import Adaptation
from orbench.asking.answer_log import AnswerLog
from orbench.asking.requests import Answer, Missing, Request, Tokens

# The requests that are to be sent now: each key once, answered and failed ones left out.
Pending = Callable[[], list[Request]]
# What to ask because of an answer (None: the request failed), if anything.
FollowUp = Callable[[Request, Answer | None], Request | None]


class Limits(NamedTuple):
    """How a run may use its endpoints."""

    concurrency: int | None = None  # requests in flight; None: the provider's default
    max_retries: int = 6  # of a request, after faults that can pass
    timeout: float = 180.0  # seconds, for a whole attempt
    requests_per_minute: float | None = None


@dataclass
class Asked:
    """What came of asking.

    failed: why requests of this run have no answer, by key. left_out: models that are asked nothing
    more in this run, and why. stopped: why the run could not go on. waiting: answers come later,
    from a batch or a file.
    """

    failed: dict[bytes, Missing] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str = ""
    waiting: bool = False
    requests: int = 0  # attempts sent
    retries: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    adaptation: Adaptation = field(default_factory=Adaptation)

    def store(self, log: AnswerLog, key: bytes, answer: Answer) -> None:
        """Count an answer and put it into the log. Raises UserError."""
        self.tokens.add(answer)
        log.append(key, answer)
