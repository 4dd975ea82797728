"""When a request to a model may go out, and what becomes of one that is rejected.

A rejection is a 429 or any other fault that can pass; both are treated alike.

- `size` requests may be in flight. Each window without many rejections adds a little to it, each
  one with many cuts it by twice the share rejected, at most by half, and spaces requests out to
  the rate that was answered.
- A limit rejects nothing below it. If requests are rejected soon after a cut, a deeper one follows;
  if they are rejected after that, too, they are rejected at random: from then on their share does
  not count, and the cuts are undone.
- A request that times out while others are answered stood in a queue: from then on, only as many
  are in flight as are answered in half of that time.
- A server of one's own has slots in place of a limit. It is asked a few requests at first, and
  twice as many for as long as answers take no longer for it.
- A rejected request waits by itself: as long as Retry-After says, or longer each time.
- After as many rejections in a row as may be in flight, one probe goes out every few seconds. The
  first answer opens the gate again, at a smaller size.
- If nothing is answered for three minutes, the endpoint is given up.

Not covered: limits on tokens (they show as rejections, and are found as any other limit), limits
that several models or processes share, and what an endpoint announces in headers other than
Retry-After. Times are seconds on a clock that the caller reads.
"""

import math
import random
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from orbench.asking.inquiry import Limits
from orbench.models.errors import NotReached, TimedOut, TransientError
from orbench.models.providers import LOCAL, Model

WINDOW = 20  # requests at least; and as many as may be in flight, unless many are rejected
GROWTH = 0.04  # of the size, and at least of ten, added after a window
FEW = 0.05  # a share rejected that never matters: if a limit rejects it, that is cheap
MOST = 0.5  # one that never counts as random
CHANCE = 3.0  # standard deviations above the usual share that count as many rejections
SOON = 5  # windows after a cut in which a limit rejects next to nothing
LEFT = 4  # rejections in them that are too many for a limit
RECENT = 0.1  # weight of a window in the random share, so that one low window decides nothing
RATE_S = 1.0  # over which the rate of answers is taken: the shortest period that limits have
MARGIN = 1.1  # of the spacing over the answered one, so that a full bucket can recover
DEEPER = 1.25  # the margin of a cut that tells a limit from rejections at random
FASTER = 0.021  # added to the rate's growth in a window, for each second since the last cut
SMALL = 4  # requests in flight at first, to a server of one's own
LONGER_QUEUE = 1.5  # times as long as with half as many: the answers stand in a queue
ROW = 12  # rejections in a row, at least, before only probes go out
PROBE_S = 3.0  # between two probes
FIRST_WAIT_S = 0.5  # of a request without Retry-After
LONGER = 1.5  # times
LONGEST_WAIT_S = 8.0
FIRST_PATIENCE_S = 3.0  # before any connection has come about
PATIENCE_S = 180.0
LONG_S = 10.0  # a pause worth a line
LONGEST_PAUSE_S = 3600.0  # that an endpoint may ask for
LATE_S = 0.05  # that a timer may be late without loss, with a fixed rate


def _rest(wait: float, before: int) -> float:
    """Return the seconds after which a rejected request goes out again, spread at random.

    wait: what the endpoint asks for, if anything. before: earlier rejections of this request.
    """
    if wait:
        return max(wait, FIRST_WAIT_S) + FIRST_WAIT_S * random.random()
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * LONGER**before) * random.uniform(0.75, 1.25)


class _Answers:
    """When the answers of the last seconds arrived, and how long they took."""

    def __init__(self) -> None:
        self.n = 0
        self.seconds = 1.0  # a guess, until an answer has arrived
        self._arrived = deque[float]()

    def add(self, sent: float, now: float) -> None:
        """Count the answer to a request that was sent then."""
        self.n += 1
        self.seconds += (now - sent - self.seconds) / min(self.n, WINDOW)
        self._arrived.append(now)

    def spacing(self, now: float) -> float:
        """Return the seconds between requests at which all would have been answered of late; 0
        without answers.
        """
        period = max(RATE_S, self.seconds)
        while self._arrived and self._arrived[0] < now - period:
            self._arrived.popleft()
        if not self._arrived:
            return 0.0
        return MARGIN * period / len(self._arrived)


class Pace:
    """Decides when the next request to a model goes out."""

    in_flight = 0
    closed = False  # whether only probes go out
    over = ""  # why the endpoint is given up, once it is
    _told = _reached = False  # of a long pause; whether any connection has come about
    _row = 0  # rejections without an answer in between
    _random = 0.0  # the share rejected at any size
    _soon = _left = 0  # windows for which a cut is new; rejections in them
    _deeper = False  # the last cut
    _due = _row_since = _probe_at = 0.0
    _spacing = 0.0  # seconds between requests, as rejections taught
    _since = -math.inf  # requests sent before that say nothing about this size
    _ended = _rejected = 0  # in this window
    _seconds = 0.0  # that its answers took

    def __init__(self, model: Model, limits: Limits, say: Callable[[str], None]) -> None:
        """say: takes a line for the user."""
        self.limit = limits.concurrency or model.settings.concurrency  # the most in flight
        self.size = float(self.limit)  # how many may be in flight
        self._starts_small = limits.concurrency is None and not model.settings.many_at_once
        self._doubles = False  # while answers take no longer for it
        self._before = math.inf  # seconds that an answer took with half as many in flight
        if LOCAL.match(model.base_url):
            self.start_small(-math.inf)
        self.answers = _Answers()
        self._name = model.asked
        self._say = say
        self._patience = max(PATIENCE_S, limits.timeout)
        self.max_retries = limits.max_retries
        self._least_spacing = 60 / (limits.requests_per_minute or math.inf)
        self._held: list[float] = []  # rejections that do not count yet: when they were sent

    def start_small(self, now: float) -> None:
        """Ask few requests at once, and then more: the server may have few slots, and a queue."""
        if self._starts_small:
            self._starts_small = False
            self._doubles = True
            self._resize(min(self.size, SMALL), now)

    def take(self, now: float) -> bool:
        """Return whether a request may go out now; it is counted if so."""
        while self._held and self._held[0] + self.answers.seconds <= now:
            self._end(heappop(self._held), now, rejected=True)
        places = self.limit if self.closed else round(self.size)
        waits = now < self._due or (self.closed and now < self._probe_at)
        if waits or self.in_flight >= places:
            return False
        self.in_flight += 1
        self._probe_at = math.inf  # until this one is rejected
        spacing = max(self._spacing, self._least_spacing)
        self._due = max(self._due, now - LATE_S) + spacing
        return True

    def answered(self, sent: float, now: float) -> None:
        """Count an answer to a request that was sent then."""
        self.answers.add(sent, now)
        if self._spacing and sent < self._since:  # was in flight when the rate was taken
            self._spacing = min(self._spacing, self.answers.spacing(now))
        self._row = 0
        self._reached = True
        if self.closed:
            self.closed = False
            # A short pause was no outage: then the size was far too large.
            pause = now - self._row_since
            self._resize(self.size / (2 if pause > PROBE_S else 4), now)
        self._end(sent, now, rejected=False)

    def rejected(self, fault: TransientError, sent: float, now: float, before: int) -> float:
        """Count a rejection. Return the seconds after which this request may be sent again.

        before: how often this request was rejected before. `over` may be set now.
        """
        if isinstance(fault, TimedOut) and self.answers.spacing(now):
            self._shorten_queue(sent, now)
        else:
            # A rejection keeps its place for as long as an answer takes, or a few places would
            # send, and be rejected, many times a second.
            heappush(self._held, sent)
        self._reached |= not isinstance(fault, NotReached)
        if not self._row:
            self._row_since = now
        self._row += 1
        silent = now - self._row_since
        self.closed |= self._row >= max(ROW, self.size)
        if self.closed:
            self._probe_at = now + max(fault.wait, min(PROBE_S, max(FIRST_WAIT_S, silent)))
        self._judge_endpoint(fault, silent, before)
        return _rest(fault.wait, before)

    def _judge_endpoint(self, fault: TransientError, silent: float, before: int) -> None:
        """Give the endpoint up, or report a long pause."""
        wait = fault.wait
        if wait > LONGEST_PAUSE_S:
            self.over = f"the endpoint asks for a wait of {wait / 3600:.1f} hours ({fault})"
        elif not self._reached and (silent >= FIRST_PATIENCE_S or before >= self.max_retries):
            self.over = f"the endpoint cannot be reached; is it running? ({fault})"
        elif silent >= self._patience:
            self.over = f"no answer for {silent:.0f} s ({fault}); rerun the command to resume"
        elif max(silent, wait) >= LONG_S and not self._told:
            self._told = True
            self._say(
                f"{self._name}: waiting at least {max(PROBE_S, wait):.0f} s before retrying "
                f"({fault})"
            )

    def _shorten_queue(self, sent: float, now: float) -> None:
        """Have no more in flight than are answered in half of the time that this one waited."""
        self.in_flight -= 1
        self._doubles = False
        answered = (now - sent) / self.answers.spacing(now)
        if sent >= self._since:
            self._resize(min(self.size, answered / 2), now)

    def _end(self, sent: float, now: float, *, rejected: bool) -> None:
        """Take a request out of flight; set the size if that ends a window."""
        self.in_flight -= 1
        if sent < self._since or self.closed:
            return
        self._ended += 1
        self._rejected += rejected
        self._seconds += now - sent
        if self._doubles and self.size < self.limit:
            self._try_twice_as_many(now)
        elif self._ended >= (self.size if self._random else WINDOW):
            self._end_window(self._rejected / self._ended, now)

    def _try_twice_as_many(self, now: float) -> None:
        """Double the size after a few answers, unless they took longer than with half of it."""
        if self._ended < max(SMALL, self.size / 2):
            return
        seconds = self._seconds / self._ended
        if seconds < LONGER_QUEUE * self._before:
            self._before = seconds
            self.size *= 2
        self._resize(self.size, now)

    def _end_window(self, share: float, now: float) -> None:
        """Set the size by the share rejected in a window."""
        if self._soon and share <= MOST:
            self._soon -= 1
            self._left += self._rejected
            if self._left >= LEFT:
                self._test_again(share, now)
                return
        usual = max(FEW, self._random)
        many = share > usual + CHANCE * math.sqrt(usual * (1 - usual) / self._ended)
        if many:
            self._cut(share, now)
        elif self._ended >= self.size:
            self._grow(share, now)

    def _test_again(self, share: float, now: float) -> None:
        """Cut deeper, to see if rejections end; if that was done, send as before the cuts: they
        come at random.
        """
        if not self._deeper:
            self._cut(share, now, DEEPER)
            return
        self._random = share
        self._soon = 0
        self._spacing = 0.0
        self._resize(self.limit, now)

    def _grow(self, share: float, now: float) -> None:
        """Send a little more: few were rejected in this window."""
        if self._random:
            self._random += (share - self._random) * RECENT
        self._spacing /= 1 + FASTER * (now - self._since)
        self._resize(self.size + GROWTH * max(10.0, self.size), self._since)

    def _cut(self, share: float, now: float, margin: float = MARGIN) -> None:
        """Send no more than was answered of late: a limit rejects what is more than that."""
        self._doubles = False
        self._deeper = margin == DEEPER
        answered = self._spacing / max(MOST, 1 - share)
        self._spacing = max(answered * margin, self.answers.spacing(now))
        self._soon = SOON
        self._left = 0
        self._random = 0.0
        self._resize(self.size * max(MOST, 1 - 2 * share), now)

    def _resize(self, size: float, since: float) -> None:
        if self._spacing:  # as many as this rate needs, or up to twice that
            needed = self.answers.seconds / self._spacing
            size = min(max(size, needed), max(10.0, 2 * needed))
        self.size = min(self.limit, max(1.0, size))
        self._since = since
        self._ended = 0
        self._rejected = 0
        self._seconds = 0.0
