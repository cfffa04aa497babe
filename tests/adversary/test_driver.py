"""
A hostile tenant whose containers the driver holds: what it can take, on a simulated driver of both
backends.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from gpufence.quantity import MIB
from simulator.nvml.groups import GROUP, GroupTree
from simulator.nvml.layout import Memacct
from simulator.nvml.state import State
from tests.adversary.bound import beyond_driver
from tests.support.driver import CudaProgram, set_limit

LIMIT = 3000
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
    tenant = Tenant(tmp_path, kind, LIMIT)
    tenants.append(tenant)
    below = tenant.tree.add("pod.slice/0.scope/own")
    programs = [tenant.start(group) for group in (*tenant.leaves, below)]
    most = 0
    for _ in range(MOVES):
        program = dice.choice(programs)
        size = dice.choice((1, 2, 30, 200, 700, 1500, LIMIT))
        program(f"held = {dice.choice(TAKING).format(size)}")
        if dice.random() < 1 / 3:
            program("give(held[1])")
        if dice.random() < 1 / 10:
            program(MANAGED)
        most = max(most, tenant.held())
    refused = [programs[0]("take(100 * MIB)")[0] for _ in range(LIMIT // 100)][-1]

    assert (OUT_OF_MEMORY, True) == (refused, most <= LIMIT)
    assert LIMIT - 100 < tenant.held() <= LIMIT
    assert 0 == beyond_driver(LIMIT, (LIMIT,))


@BOTH
def test_containers_take_the_sum_of_their_limits(
    tmp_path: Path, tenants: list[Tenant], kind: Memacct
) -> None:
    """Of a pod with several containers each is held by itself; eviction is for the rest."""
    tenant = Tenant(tmp_path, kind, LIMIT, 1000)
    tenants.append(tenant)
    for leaf, limit in zip(tenant.leaves, (LIMIT, 1000), strict=True):
        program = tenant.start(leaf)
        program(f"take({limit - CONTEXT} * MIB)")
        program("take(2 * MIB)")

    assert LIMIT + beyond_driver(LIMIT, (LIMIT, 1000)) == tenant.held()


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
    set_limit(tenant.machine.path, leaf, LIMIT * MIB)
    program = tenant.start(leaf)
    program(f"take({LIMIT - CONTEXT} * MIB)")
    program("take(2 * MIB)")

    assert [stale, LIMIT] == [inherited, tenant.held()]
