"""Intervals cover and tests err as they should: some cells of the simulation, with few draws."""

from tests import simulated_findings, simulated_rates
from tests.simulated_rates import CONTRADICTION, Group, measured

DRAWS = 30
ERRORS = 4  # Monte Carlo standard errors
LEAST = 0.16  # four of a share of .95 in that many draws
EVERY = 19  # cells: prime, so that all designs come up


def test_every_group_is_as_wanted_in_some_of_its_cells() -> None:
    cells = simulated_rates.cells()[::EVERY]
    covered = {group for cell in cells for group in cell.groups}
    for cell in simulated_rates.cells() + simulated_findings.cells():
        if not covered.issuperset(cell.groups):
            covered.update(cell.groups)
            cells.append(cell)
    shares = dict[Group, list[float]]()
    for cell in cells:
        for one in measured(cell, DRAWS):
            shares.setdefault(one.group, []).append(one.share)
    for group, of_group in shares.items():
        bound = min(group.most, max(group.least, 0.0))
        slack = max(LEAST, ERRORS * (bound * (1 - bound) / DRAWS) ** 0.5)
        if group == CONTRADICTION:
            slack = 0.0
        off = {share: group.beyond(share) for share in of_group}
        assert max(off.values()) <= slack, (group, off)
