"""Intervals cover and tests err as they should: some cells of the simulation, with few draws."""

from tests.simulated_rates import CONTRADICTION, WANTED, beyond, cells, measured

DRAWS = 30
SLACK = 0.16  # four standard errors of a share of .95 in that many draws
EVERY = 19  # cells: prime, so that all designs come up


def test_every_group_is_as_wanted_in_some_of_its_cells() -> None:
    found = dict[str, list[float]]()
    for cell in cells()[::EVERY]:
        for group, share in measured(cell, DRAWS):
            found.setdefault(group, []).append(share)
    assert set(found) == set(WANTED)
    for group, shares in found.items():
        slack = 0.0 if group == CONTRADICTION else SLACK
        off = {share: beyond(group, share) for share in shares}
        assert max(off.values()) <= slack, (group, off)
