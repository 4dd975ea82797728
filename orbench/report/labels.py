"""Places for names beside the marks of a scatter plot, so that all can be read.

Each name has some hundred places to choose from, on rings around its mark; from random starts each
in turn takes the place that costs least, until none moves (local search over candidate positions;
Christensen, Marks and Shieber, ACM Transactions on Graphics 14, 1995). A name must not cover a mark
or another name; a line that leads to it should be short and cross nothing.

All in pixels; a box is x0, y0, x1, y1.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RINGS = (0.8, 1.3, 2, 3, 4.5, 6.5, 9.5, 14)  # from the mark's centre, in marks
ANGLES = 20
STARTS, ROUNDS = 6, 12
POINTS = np.linspace(0, 1, 12)[:, None]  # of a leading line, where it is looked at
# What costs how much, in pixels of distance at 100 dpi.
COVERS, CROSSES, TOUCHES_CURVE, OVER_MARKS, OVER_CURVE = 1e5, 500.0, 500.0, 150.0, 8.0


class Places(NamedTuple):
    """Where the names go."""

    boxes: Array  # n x 4
    free: Array  # n, bool: whether the name covers nothing


def place(
    marks: Array, sizes: Array, area: Array, bodies: Array, more: Array, curve: Array, mark: float
) -> Places:
    """Find a place for each name.

    marks: n x 2; sizes: n x 2, of the names, room around them included; area: a box to stay in;
    bodies: n x 4, the marks' boxes; more: m x 4, other boxes not to be covered; curve: k x 2,
    points of a line to keep clear of; mark: the width of a mark.
    """
    boxes = _candidates(marks, sizes, mark)
    ends = np.clip(marks[:, None], boxes[..., :2], boxes[..., 2:])
    lines = marks[:, None, None] + (ends - marks[:, None])[:, :, None] * POINTS
    unit = mark / 8
    own = np.hypot(*np.moveaxis(ends - marks[:, None], -1, 0)) / unit
    outside = (boxes[..., :2] < area[:2]).any(-1) | (boxes[..., 2:] > area[2:]).any(-1)
    covers = outside | _overlap(boxes, np.concatenate([bodies, more])).any(-1)
    own += COVERS * covers
    own += TOUCHES_CURVE * _inside(curve, boxes[:, :, None]).any(-1)
    over = _inside(lines[:, :, :, None], bodies)
    over[np.arange(len(marks)), :, :, np.arange(len(marks))] = False  # its own mark
    own += OVER_MARKS * over.any(-1).mean(-1)
    if len(curve):
        turns: Array = np.diff(np.sign(_side(curve, lines)), axis=-1)
        own += OVER_CURVE * turns.any(-1)
    best: tuple[float, Array] | None = None
    for seed in range(STARTS):
        chosen, cost = _search(boxes, ends, lines, marks, own, np.random.default_rng(seed))
        if best is None or cost < best[0]:
            best = cost, chosen
    assert best is not None
    every = np.arange(len(marks))
    taken = boxes[every, best[1]]
    return Places(taken, _free(taken, covers[every, best[1]]))


def _candidates(marks: Array, sizes: Array, mark: float) -> Array:
    """n x c x 4: the boxes a name may have."""
    angles = np.arange(ANGLES) / ANGLES * 2 * np.pi
    ways = np.stack([np.cos(angles), np.sin(angles)], -1)
    # A name right above a mark is centred on it, one to the right stands beside its middle.
    shift = np.clip(1.6 * ways, -1, 1)[None] * sizes[:, None] / 2
    away = np.array(RINGS)[:, None, None] * mark * ways
    centres = marks[:, None, None] + away + shift[:, None]
    centres = centres.reshape(len(marks), -1, 2)
    half = sizes[:, None] / 2
    return np.concatenate([centres - half, centres + half], -1)


def _search(
    boxes: Array, ends: Array, lines: Array, marks: Array, own: Array, rng: np.random.Generator
) -> tuple[Array, float]:
    """One local search. Gives the chosen candidates and what they cost together."""
    n = len(marks)
    chosen = np.full(n, -1)
    order = rng.permutation(n)
    for _ in range(ROUNDS):
        moved = False
        for i in order:
            others = np.flatnonzero((chosen >= 0) & (np.arange(n) != i))
            costs = own[i] + _among(boxes, ends, lines, marks, i, others, chosen[others])
            best = int(np.argmin(costs))
            if chosen[i] < 0 or costs[best] < costs[chosen[i]] - 1e-9:
                chosen[i], moved = best, True
        if not moved:
            break
    total = sum(
        own[i, chosen[i]]
        + _among(boxes, ends, lines, marks, i, np.arange(i), chosen[:i])[chosen[i]]
        for i in range(n)
    )
    return chosen, float(total)


def _among(
    boxes: Array, ends: Array, lines: Array, marks: Array, i: int, others: Array, chosen: Array
) -> Array:
    """What each candidate of name i costs for what other names do."""
    if not len(others):
        return np.zeros(boxes.shape[1])
    theirs = boxes[others, chosen]
    cost = COVERS * _overlap(boxes[i], theirs).sum(-1)
    cost += CROSSES * _inside(lines[i][:, :, None], theirs).any(1).sum(-1)
    cost += CROSSES * _inside(lines[others, chosen], boxes[i][:, None, None]).any(-1).sum(-1)
    cost += CROSSES * _cross(marks[i], ends[i], marks[others], ends[others, chosen]).sum(-1)
    return np.asarray(cost)


def _overlap(boxes: Array, others: Array) -> Array:
    """... x 4 against m x 4: ... x m, whether they overlap."""
    a = boxes[..., None, :]
    return np.asarray(((a[..., :2] < others[:, 2:]) & (others[:, :2] < a[..., 2:])).all(-1))


def _inside(points: Array, boxes: Array) -> Array:
    """Whether points (... x 2) are inside boxes (... x 4)."""
    return np.asarray(((points > boxes[..., :2]) & (points < boxes[..., 2:])).all(-1))


def _side(curve: Array, points: Array) -> Array:
    """How far points are above a curve (its points in order of x)."""
    return np.asarray(points[..., 1] - np.interp(points[..., 0], curve[:, 0], curve[:, 1]))


def _cross(start: Array, ends: Array, starts: Array, others: Array) -> Array:
    """c x m: whether the line from start to each end crosses the line of each other."""
    p, q = ends[:, None] - start, others - starts
    gap = starts - start
    with np.errstate(divide="ignore", invalid="ignore"):
        across = p[..., 0] * q[:, 1] - p[..., 1] * q[:, 0]
        t = (gap[:, 0] * q[:, 1] - gap[:, 1] * q[:, 0]) / across
        u = (gap[:, 0] * p[..., 1] - gap[:, 1] * p[..., 0]) / across
    return np.asarray((t > 0) & (t < 1) & (u > 0) & (u < 1))


def _free(boxes: Array, covers: Array) -> Array:
    """Which names cover nothing, where those before have the first choice."""
    free = ~covers
    for i in range(len(boxes)):
        free[i] &= not _overlap(boxes[i], boxes[:i][free[:i]]).any()
    return free
