"""What a pod can take at most, and that the judge lets nobody take more."""

import random
import re

import pytest

from agent.model.policy import Budgets, EvictionPolicy, EvictWhen
from gpufence.quantity import GIB, MIB, read_bytes
from tests.adversary.bound import (
    HOUR,
    most_taken,
    seconds_over,
    seconds_until_gone,
    tolerated_bytes,
)
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.world import World
from tests.support.builders import T4_BYTES
from tools import ROOT

POLICY = EvictionPolicy()
PAGE = (ROOT / "docs" / "isolation.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([\d.]+) (MiB|GiB) \| (\d+) \| (\d+) \| (\w+) \| (\w+) \|$", re.MULTILINE)
UUID = CARDS[0].uuid


@pytest.mark.parametrize("row", ROW.findall(PAGE), ids=lambda row: f"{row[0]} {row[1]}")
def test_the_page_states_the_bound(row: tuple[str, ...]) -> None:
    """The table of what a tenant can take is what follows from the default settings."""
    amount, unit, over, taken, gone, shielded = row
    excess = round(float(amount) * read_bytes(f"1{unit[:2]}", "unit"))
    found = ["3600", f"{HOUR * excess / GIB:.0f}", "never", "never"]
    if excess > tolerated_bytes(POLICY, LIMIT):
        found = [
            f"{seconds_over(POLICY, excess):.0f}",
            f"{most_taken(POLICY, excess, LIMIT) / GIB:.0f}",
            f"{seconds_until_gone(POLICY, excess, shielded=False):.0f}",
            f"{seconds_until_gone(POLICY, excess):.0f}",
        ]

    assert [over, taken, gone, shielded] == found


def test_the_page_has_figures() -> None:
    """The table that is held to the code is read."""
    assert 6 == len(ROW.findall(PAGE))


def test_respected_budgets_have_no_bound() -> None:
    """Where the operator lets budgets shield whomever they cover, they do so for ever."""
    policy = EvictionPolicy(budgets=Budgets.RESPECT)

    assert float("inf") == seconds_until_gone(policy, GIB)
    assert GIB * HOUR == most_taken(policy, GIB, LIMIT, gone=1) - most_taken(policy, GIB, LIMIT)


def test_evictions_add_up() -> None:
    """Each pod that was evicted has taken its part."""
    each = GIB * seconds_until_gone(POLICY, GIB)

    assert 3 * each == pytest.approx(
        most_taken(POLICY, GIB, LIMIT, gone=3) - most_taken(POLICY, GIB, LIMIT)
    )


def robbery(policy: EvictionPolicy) -> World:
    """Make a card on which a neighbour is owed nearly all, and another pod may take it."""
    world = World(policy=policy, cards=1, leaves_after=40)
    world.add(pod("thief"), GIB)
    world.add(pod("b", limit=T4_BYTES - LIMIT, namespace="team-b"), GIB)
    world.settle_in()
    return world


def taken(world: World, schedule: list[int]) -> float:
    """Let a pod follow a schedule until it is told to go and has ended, and return what it took."""
    total = 0.0
    for second, used in enumerate(schedule):
        if "thief" not in world.pods:
            break
        world.hold("thief", used)
        world.run(second + 1)
        total += max(used - LIMIT, 0)
    return total


def schedules(dice: random.Random, seconds: int, most: int) -> list[int]:
    """Draw what a pod holds in each second: swinging with a period, resting long, or by chance."""
    period, over = dice.randint(2, 200), dice.random()
    high, low = LIMIT + dice.randint(1, most), LIMIT + dice.choice([0, 256 * MIB])
    if dice.random() < 0.3:
        return [dice.choice((high, low)) if dice.random() < over else low for _ in range(seconds)]
    return [high if second % period < over * period else low for second in range(seconds)]


@pytest.mark.parametrize("when", EvictWhen)
@pytest.mark.parametrize("seed", range(10))
def test_no_schedule_beats_the_bound(seed: int, when: EvictWhen) -> None:
    """Whatever a pod holds from second to second, it takes no more than the bound says."""
    dice = random.Random(seed)
    policy = EvictionPolicy(evict_when=when)
    seconds, most = 600, dice.choice((GIB, 4 * GIB, 11 * GIB))
    world = robbery(policy)
    total = taken(world, schedules(dice, seconds, most))
    bound = most_taken(policy, most, LIMIT, seconds=seconds, gone=len(world.acts))

    assert total <= bound


def test_the_bound_of_one_who_stays_is_not_far_away() -> None:
    """A pod that swings as far as it can without going takes most of what the bound allows."""
    world = robbery(POLICY)
    excess, seconds = 9 * GIB, 3600
    level, schedule = 0.0, []
    for _ in range(seconds):
        over = level + 1 * POLICY.speed(excess) < POLICY.hold_seconds - 0.1
        level = level + POLICY.speed(excess) if over else max(level - 0.5, 0.0)
        schedule.append(LIMIT + (excess if over else 256 * MIB))
    total = taken(world, schedule)

    assert [] == world.acts
    assert total > 0.9 * most_taken(POLICY, excess, LIMIT, seconds=seconds)
