"""What a hostile tenant takes before it is evicted: the bound, the deciding half, the driver."""

import random
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from agent.model.policy import Budgets, EvictionPolicy, EvictWhen
from gpufence.quantity import GIB, MIB, read_bytes
from simulator.nvml.groups import GROUP, GroupTree
from simulator.nvml.layout import Memacct
from simulator.nvml.state import State
from simulator.progress import Progress
from tests.adversary import tricks
from tests.adversary.bound import (
    HOUR,
    beyond_driver,
    most_taken,
    seconds_borrowed,
    seconds_over,
    seconds_until_gone,
    tolerated_bytes,
)
from tests.adversary.search import Search, told
from tests.adversary.stage import played
from tests.adversary.tricks import Kind, Trick
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES
from tests.support.driver import CudaProgram, set_limit
from tools import ROOT

SEED = 20261
SECONDS = 900
FEW_SECONDS = 60
SHORT_PLAYS, LONG_PLAYS = 10, 1200
POLICIES = [EvictionPolicy(evict_when=when) for when in EvictWhen]
NOTHING = Trick(Kind.HOLD, 0, SECONDS, 1, 0, 1, 100)
TAKES = NOTHING._replace(at=0, seconds=SECONDS, mebibytes=16000)


def searched(policy: EvictionPolicy, seed: int, plays: int, seconds: int = SECONDS) -> Search:
    search = Search(seed, seconds, partial(played, policy=policy))
    search.go_on(plays)
    return search


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: str(policy.evict_when))
def test_no_scheme_beats_the_bound(policy: EvictionPolicy) -> None:
    """No scheme of a short search takes more than the policy allows, or has another pod evicted."""
    search = searched(policy, SEED, SHORT_PLAYS)

    assert [] == [told(item) for item in search.broken]
    assert any(item.haul.stolen > GIB for item in search.worst), "it never took anything"
    assert any(item.haul.evictions for item in search.worst), "nobody was ever caught"


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: str(policy.evict_when))
def test_no_scheme_of_a_million_seconds_beats_the_bound(
    policy: EvictionPolicy, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither does any scheme of a search through a million seconds."""
    search = searched(policy, SEED + 1, LONG_PLAYS)
    with capsys.disabled():
        said = Progress(sys.stderr).say
        said(f"evict when {policy.evict_when}, {search.plays} schemes, seed {search.seed}:")
        for item in search.worst:
            said(told(item))

    assert [] == [told(item) for item in search.broken]


def test_who_takes_nothing_has_taken_nothing() -> None:
    """A tenant who stays within his limits takes nothing, and none of his pods goes."""
    haul = played((NOTHING,), SECONDS, EvictionPolicy())

    assert 0 == haul.stolen == haul.evictions
    assert not haul.broke_a_promise


def test_who_takes_all_is_seen_to() -> None:
    """What a pod takes from a neighbour who was promised it is counted for as long as it does."""
    never = EvictionPolicy(hold_seconds=80_000, short_hold_seconds=80_000)
    haul = played((TAKES,), 100, never)

    assert 0 == haul.evictions
    assert 4 * GIB * 100 == haul.stolen


BURSTS = NOTHING._replace(kind=Kind.BURST, at=0, seconds=SECONDS, mebibytes=16000)
LULL = BURSTS._replace(kind=Kind.LULL, period=SECONDS)


def test_what_an_idle_neighbour_lends_is_not_taken() -> None:
    """A tenant who borrows what an idle neighbour lends takes nothing, and stays."""
    haul = played((TAKES._replace(mebibytes=4000), BURSTS, LULL), SECONDS, EvictionPolicy())

    assert 0 == haul.stolen == haul.evictions
    assert not haul.broke_a_promise


@pytest.mark.parametrize("period", [1, 20, 40, 90])
def test_what_is_borrowed_is_given_back(period: int) -> None:
    """Where the neighbour wakes up again and again, the tenant keeps no more than the bound."""
    waking = LULL._replace(period=period, percent=50)
    haul = played((TAKES, BURSTS, waking), SECONDS, EvictionPolicy())

    assert haul.evictions
    assert not haul.broke_a_promise


def test_an_eviction_of_somebody_else_breaks_a_promise() -> None:
    """An eviction of a pod that was never over its limit is found, as is a haul above the bound."""
    haul = played((TAKES,), 100, EvictionPolicy())

    assert not haul.broke_a_promise
    assert haul._replace(stolen=haul.allowed + 1).broke_a_promise
    assert haul._replace(false=(Act(7, "victim"),)).broke_a_promise


def test_a_scheme_can_be_written_and_read() -> None:
    """A scheme that was printed plays as the one that was found."""
    search = searched(EvictionPolicy(), SEED, 5, FEW_SECONDS)
    found = search.worst[0]

    assert found.scheme == tricks.read(tricks.written(found.scheme))
    assert found.haul == played(found.scheme, FEW_SECONDS, EvictionPolicy())


def test_a_seed_names_a_search() -> None:
    """The same seed tries the same schemes."""
    one, other = (searched(EvictionPolicy(), 7, 6, FEW_SECONDS) for _ in range(2))

    assert one.worst == other.worst


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


def test_the_page_states_the_bound_of_loans() -> None:
    """So does the row of a pod that borrows."""
    kept, gone = seconds_borrowed(POLICY), partial(seconds_until_gone, POLICY, GIB, borrowed=True)
    margin = tolerated_bytes(POLICY, LIMIT) * (HOUR - kept)
    row = (kept, 4 * kept + margin / GIB, gone(shielded=False), gone())
    said = " | ".join(f"{figure:.0f}" for figure in row)

    assert f"| 4 GiB borrowed within its limit | {said} |" in PAGE


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


DRIVER_LIMIT = 3000
CONTEXT = 300
OUT_OF_MEMORY = 2
MOVES = 120
MANAGED = "given(driver.cuMemAllocManaged, wide(100 * MIB), 1)"
BOTH = pytest.mark.parametrize("kind", [Memacct.MISC, Memacct.DMEM], ids=["misc", "dmem"])
TAKING = ("take({} * MIB)", "pooled({} * MIB)", "create({} * MIB)")
"""Three ways to memory of a card: at once, from a pool, and as pages to be mapped."""


class Tenant:
    """Programs in containers whose limits the toolkit has set, and what they hold of a card."""

    def __init__(self, folder: Path, kind: Memacct, *limits: int) -> None:
        self.machine = State.create(folder / "cards", "T4")
        self.machine.groups.memacct = kind
        self.tree = GroupTree(folder / "cgroup")
        self.leaves = [self.tree.add(f"pod.slice/{place}.scope") for place in range(len(limits))]
        for leaf, limit in zip(self.leaves, limits, strict=True):
            set_limit(self.machine.path, leaf, limit * MIB)
        self._programs: list[CudaProgram] = []

    def start(self, group: Path) -> CudaProgram:
        program = CudaProgram(self.machine.path, variables={GROUP: str(group)})
        self._programs.append(program)
        return program

    def held(self) -> int:
        """Return the MiB that its processes hold, as NVML lists them."""
        return sum(use.memory for use in self.machine.cards[0].uses) // MIB

    def close(self) -> None:
        for program in self._programs:
            program.close()


@pytest.fixture
def tenants() -> Iterator[list[Tenant]]:
    """Collect the tenants of a test, whose programs end with it."""
    found: list[Tenant] = []
    yield found
    for tenant in found:
        tenant.close()


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_a_container_takes_no_more_than_its_limit(
    tmp_path: Path, tenants: list[Tenant], kind: Memacct, seed: int
) -> None:
    """Its processes may do what they like, in its group and below it: nothing above it is had."""
    dice = Random(f"{kind}{seed}")
    tenant = Tenant(tmp_path, kind, DRIVER_LIMIT)
    tenants.append(tenant)
    below = tenant.tree.add("pod.slice/0.scope/own")
    programs = [tenant.start(group) for group in (*tenant.leaves, below)]
    most = 0
    for _ in range(MOVES):
        program = dice.choice(programs)
        size = dice.choice((1, 2, 30, 200, 700, 1500, DRIVER_LIMIT))
        program(f"held = {dice.choice(TAKING).format(size)}")
        if dice.random() < 1 / 3:
            program("give(held[1])")
        if dice.random() < 1 / 10:
            program(MANAGED)
        most = max(most, tenant.held())
    refused = [programs[0]("take(100 * MIB)")[0] for _ in range(DRIVER_LIMIT // 100)][-1]

    assert (OUT_OF_MEMORY, True) == (refused, most <= DRIVER_LIMIT)
    assert DRIVER_LIMIT - 100 < tenant.held() <= DRIVER_LIMIT
    assert 0 == beyond_driver(DRIVER_LIMIT, (DRIVER_LIMIT,))


@BOTH
def test_containers_take_the_sum_of_their_limits(
    tmp_path: Path, tenants: list[Tenant], kind: Memacct
) -> None:
    """Of a pod with several containers each is held by itself; eviction is for the rest."""
    tenant = Tenant(tmp_path, kind, DRIVER_LIMIT, 1000)
    tenants.append(tenant)
    for leaf, limit in zip(tenant.leaves, (DRIVER_LIMIT, 1000), strict=True):
        program = tenant.start(leaf)
        program(f"take({limit - CONTEXT} * MIB)")
        program("take(2 * MIB)")

    assert DRIVER_LIMIT + beyond_driver(DRIVER_LIMIT, (DRIVER_LIMIT, 1000)) == tenant.held()


@pytest.mark.parametrize("stale", [1000, 9000])
def test_a_stale_limit_is_replaced_by_the_next_containers_own(
    tmp_path: Path, tenants: list[Tenant], stale: int
) -> None:
    """On misc a group may inherit a deleted one's limit; what is set at its start counts alone."""
    tenant = Tenant(tmp_path, Memacct.MISC, stale)
    tenants.append(tenant)
    tenant.tree.remove("pod.slice/0.scope")
    leaf = tenant.tree.add("pod.slice/next.scope")
    tenant.machine.groups.hand_on(tenant.leaves[0], leaf)
    inherited = tenant.machine.groups.headroom(0, str(leaf)) // MIB
    set_limit(tenant.machine.path, leaf, DRIVER_LIMIT * MIB)
    program = tenant.start(leaf)
    program(f"take({DRIVER_LIMIT - CONTEXT} * MIB)")
    program("take(2 * MIB)")

    assert [stale, DRIVER_LIMIT] == [inherited, tenant.held()]
