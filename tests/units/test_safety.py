"""Simulated worlds with a known truth: toxicity, pairs of seed and rewrite, trigger words."""

from pathlib import Path

import numpy as np

from tests.simulated_safety import cases, coverage, headline, words


def test_made_worlds_are_found_out(tmp_path: Path) -> None:
    raw, agreed, truth = headline(np.random.default_rng(1), tmp_path)
    assert raw - truth > 17 and abs(agreed - truth) < 2
    planted, others = words(np.random.default_rng(2))
    assert planted >= 16 and others <= 1


def test_the_intervals_cover() -> None:
    some = [one for one in cases() if "20 x 5, icc 0.4" in one[0]][::5]
    shares = {name: coverage(name, draw, 60) for name, draw in some}
    assert min(shares.values()) > 0.84 and np.mean(list(shares.values())) > 0.92, shares
