"""When a request to a model may go out, and what becomes of one that is refused.

A refusal is a 429 or any other fault that can pass; both are treated alike.

- `size` requests may be in flight. Each window without many refusals adds a little to it, each one
  with many cuts it by twice the share refused, at most by half. If that share stays the same,
  refusals come at random: from then on it does not count, and the cut is undone.
- A refused request waits by itself: as long as Retry-After says, or longer each time.
- After as many refusals in a row as may be in flight, one probe goes out every few seconds. The
  first answer opens the gate again, at a smaller size.
- If nothing is answered for three minutes, the endpoint is given up.

Times are seconds on a clock that the caller reads.
"""

import math
import random
from collections.abc import Callable
from heapq import heappop, heappush

from orbench.asking.asked import Limits
from orbench.asking.faults import Limited, Passing
from orbench.asking.models import Model

WINDOW = 20  # requests at least, and as many as may be in flight
GROWTH = 0.04  # of the size, and at least of ten, added after a window
FEW, MOST = 0.02, 0.5  # a share refused that never matters, and one that never counts as random
CHANCE = 3.0  # standard deviations above the usual share that count as many refusals
SURE = 4.0  # log odds (55 to 1) at which refusals count as random, or as caused by the size
FADING = 0.97  # of the random share in each window, so that it is tested again now and then
ROW = 12  # refusals in a row, at least, before only probes go out
PROBE_S = 3.0  # between two probes
FIRST_WAIT_S, LONGER, LONGEST_WAIT_S = 0.5, 1.5, 8.0  # of a request without Retry-After
FIRST_PATIENCE_S, PATIENCE_S = 3.0, 180.0  # before any connection has come about, and after
LONG_S = 10.0  # a pause worth a line
LONGEST_PAUSE_S = 3600.0  # that an endpoint may ask for
NO_CONNECTION = "no answer: Cannot connect"  # as `faults.passing_faults` and aiohttp say it
LATE_S = 0.05  # that a timer may be late without loss, with a fixed rate


class Pace:
    """Decides when the next request to a model goes out. limit: the most in flight."""

    def __init__(self, model: Model, limits: Limits, say: Callable[[str], None]) -> None:
        """say: takes a line for the user."""
        self.limit = limits.concurrency or model.settings.concurrency
        self.size = float(self.limit)
        self.in_flight = 0
        self._due = 0.0
        self._spacing = 60 / (limits.requests_per_minute or math.inf)
        self._patience = max(PATIENCE_S, limits.timeout)
        self._max_retries = limits.max_retries
        self._name = model.asked
        self._say = say
        self._told = self._reached = False
        self.over = ""  # why the endpoint is given up, once it is
        self._answer_s = 1.0  # a guess, until an answer has arrived
        self._answers = 0
        self._held: list[tuple[float, float]] = []  # refusals: when they count, when they were sent
        self._since = -math.inf  # requests sent before that say nothing about this size
        self._ended = self._refused = 0  # in this window
        self._cut = (0.0, 0.0)  # share refused and size before the cut that this window judges
        self._random = 0.0  # share refused at any size
        self._row = 0  # refusals without an answer in between
        self._row_since = 0.0
        self.closed = False  # whether only probes go out
        self._probe_at = 0.0

    def take(self, now: float) -> bool:
        """Whether a request may go out now; it is counted if so."""
        while self._held and self._held[0][0] <= now:
            self._end(heappop(self._held)[1], now, refused=True)
        places = self.limit if self.closed else round(self.size)
        if self.in_flight >= places or now < self._due or (self.closed and now < self._probe_at):
            return False
        self.in_flight += 1
        self._probe_at = math.inf  # until this one is refused
        self._due = max(self._due, now - LATE_S) + self._spacing
        return True

    def answered(self, sent: float, now: float) -> None:
        """Count an answer to a request that was sent then."""
        self._answers += 1
        self._answer_s += (now - sent - self._answer_s) / min(self._answers, WINDOW)
        self._row, self._reached = 0, True
        if self.closed:
            self.closed = False  # a short pause was no outage: then the size was far too large
            self._resize(self.size / (2 if now - self._row_since > PROBE_S else 4), now)
        self._end(sent, now, refused=False)

    def refused(self, fault: Passing | Limited, sent: float, now: float, before: int) -> float:
        """Count a refusal. Gives the seconds after which this request may be sent again.

        before: how often this request was refused before. `over` may be set now.
        """
        # A refusal keeps its place for as long as an answer takes, or a few places would send, and
        # be refused, many times a second.
        heappush(self._held, (max(now, sent + self._answer_s), sent))
        asked = (fault.wait or 0.0) if isinstance(fault, Limited) else 0.0
        self._reached |= not str(fault).startswith(NO_CONNECTION)
        if not self._row:
            self._row_since = now
        self._row += 1
        silent = now - self._row_since
        self.closed |= self._row >= max(ROW, self.size)
        if self.closed:
            self._probe_at = now + max(asked, min(PROBE_S, max(FIRST_WAIT_S, silent)))
        self._judge(fault, silent, asked, before)
        if asked:
            return max(asked, FIRST_WAIT_S) + FIRST_WAIT_S * random.random()
        return min(LONGEST_WAIT_S, FIRST_WAIT_S * LONGER**before) * random.uniform(0.75, 1.25)

    def _judge(self, fault: Exception, silent: float, asked: float, before: int) -> None:
        """Give the endpoint up, or report a long pause."""
        if asked > LONGEST_PAUSE_S:
            self.over = f"the endpoint asks for a wait of {asked / 3600:.1f} hours ({fault})"
        elif not self._reached and (silent >= FIRST_PATIENCE_S or before >= self._max_retries):
            self.over = f"the endpoint cannot be reached; is it running? ({fault})"
        elif silent >= self._patience:
            self.over = f"no answer for {silent:.0f} s ({fault}); rerun the command to resume"
        elif self.closed and max(silent, asked) >= LONG_S and not self._told:
            self._told = True
            gap = max(PROBE_S, asked)
            self._say(f"{self._name}: paused; sending one request every {gap:.0f} s ({fault})")

    def _end(self, sent: float, now: float, *, refused: bool) -> None:
        """Take a request out of flight; set the size if that ends a window."""
        self.in_flight -= 1
        if sent < self._since or self.closed:
            return
        self._ended += 1
        self._refused += refused
        if self._ended < max(WINDOW, self.size):
            return
        share = self._refused / self._ended
        usual = max(FEW, self._random)
        before, full = self._cut
        if before and share <= min(2 * before, MOST):
            # Is it the same share again, or what a limit would refuse of half the size?
            limited = max(usual, 2 * before - 1)
            odds = self._refused * math.log(before / limited)
            odds += (self._ended - self._refused) * math.log((1 - before) / (1 - limited))
            if abs(odds) < SURE:
                return  # the window goes on
            if odds > 0:
                self._random = share
                self._resize(full, now)
                return
        if share > usual + CHANCE * math.sqrt(usual * (1 - usual) / self._ended):
            full = self.size
            self._resize(full * max(0.5, 1 - 2 * share), now)
            self._cut, self._random = (min(0.9, share), full), 0.0
        else:
            self._random *= FADING
            self._resize(self.size + GROWTH * max(10.0, self.size), self._since)

    def _resize(self, size: float, since: float) -> None:
        self.size, self._since = min(self.limit, max(1.0, size)), since
        self._ended, self._refused, self._cut = 0, 0, (0.0, 0.0)
