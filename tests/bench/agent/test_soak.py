"""Whether an agent's memory stays what it is: hours of looks at twenty times the usual speed."""

import itertools
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufence.quantity import MIB
from simulator.progress import Progress
from tests.bench.agent.machine import CARDS, EVICTING, Machine, crowd, machine
from tests.bench.agent.ticks import PER_CARD, PODS, TICKS, Reading, after, hurry, read
from tests.support.agent.node_site import AgentProcess

HOURS = 5
MOST_MIB_AN_HOUR = 0.25
"""Of the last two hours; what the first ones take is what an agent remembers, and has bounds."""
MOST_MIB_AN_HOUR_OF_CHURN = 0.5
"""
With some seven hundred new pods in each of them; 0.1 was measured in the fourth hour, while Python
held no more of any type: what is left is the C library's, between what it gave and got back.
"""
_CHANGED_AT_ONCE = 3


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("assets")
@pytest.mark.parametrize("churned", [False, True], ids=["the same pods", "other pods all the time"])
def test_memory_levels_off(
    tmp_path: Path,
    churned: bool,  # noqa: FBT001 (a column of the table)
) -> None:
    """Hours of looks, at the same pods or at ever new ones, take no more memory in the end."""
    with machine(tmp_path) as node:
        crowd(node, PODS, PER_CARD)
        with node.agent(**hurry(lists=10)) as agent:
            held = [look.mib for look in _hours(node, agent, churned=churned)]
    Progress(sys.stderr).say(" ".join(f"{mib:.2f}" for mib in held))

    most = MOST_MIB_AN_HOUR_OF_CHURN if churned else MOST_MIB_AN_HOUR

    assert held[-1] - held[-3] < 2 * most, held


def _hours(node: Machine, agent: AgentProcess, *, churned: bool) -> Iterator[Reading]:
    """Read the agent after each hour's worth of looks."""
    numbers, dice = itertools.count(), random.Random(1)
    for hour in range(1, HOURS + 1):
        while churned and read(agent).ticks < hour * TICKS:
            for _ in range(_CHANGED_AT_ONCE):
                _change(node, dice, f"new-{next(numbers)}")
            node.show()
            time.sleep(0.5)
        yield after(agent, hour * TICKS)


def _change(node: Machine, dice: random.Random, name: str) -> None:
    """Put a new pod in the place of one of those that are there."""
    leaving = dice.choice(list(node.tenants.values()))
    processes = len(leaving.holdings)
    node.dismiss(leaving)
    coming = node.admit(name, EVICTING, units=2)
    for _ in range(processes):
        node.start(coming, dice.randrange(CARDS), 300 * MIB)
