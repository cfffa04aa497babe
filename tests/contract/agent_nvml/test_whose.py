"""Whose memory it is, of real processes in the cgroups of pods, on the simulated NVML."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent.clock import boottime
from agent.loop.loop import Observer
from agent.model.pod import PodOnNode, pods_on_node
from agent.model.use import PodOnCard
from agent.procfs.lookup import Lookup
from gpufence.quantity import GIB
from simulator.node.processes import ProcRoot
from simulator.nvml.layout import Lists
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import Start
from tests.support.agent.builders import pod
from tests.support.observing import wait_until

MPS_SERVER = "nvidia-cuda-mps-server"
CLIENT = Lists.COMPUTE | Lists.MPS
PODS = [pod(name, uid=f"{digit * 8}-0000-4000-8000-{digit * 12}") for name, digit in ("a1", "b2")]
A, B = PODS
KNOWN = pods_on_node(PODS)


class Ground:
    """Processes that hold memory on the machine's first card, as an observer sees them."""

    def __init__(self, machine: State, start: Start, folder: Path) -> None:
        self._machine = machine
        self._folder = folder
        self._root = ProcRoot(folder / "proc")
        self._lines: dict[int, str] = {}
        self._stack = ExitStack()
        self._observer = Observer(start(), Lookup(self._root.folder), lambda: KNOWN)

    def run(
        self,
        item: PodOnNode | None,
        held: int,
        name: str = "program",
        lists: Lists = Lists.COMPUTE,
    ) -> subprocess.Popen[bytes]:
        """Start a process by this name in a pod, or outside of all."""
        program = self._folder / name
        if not program.exists():
            shutil.copy(shutil.which("sleep") or "", program)
        process = subprocess.Popen([program, "60"])
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        self._lines[process.pid] = "0::/system.slice\n"
        if item is not None:
            (container,) = item.containers
            self._lines[process.pid] = f"0::/kubepods/pod{item.uid}/{container}\n"
        self._root.show(self._lines)
        card = self._machine.find("0")
        self._machine.processes.put(card, process.pid, held, lists=lists)
        wait_until(lambda: _is_older_than_a_tick(process.pid))
        return process

    def look(self) -> dict[str, PodOnCard]:
        """Look once, with a new list of the card."""
        card = self._machine.cards[0].uuid
        return dict(self._observer.look(frozenset({card})).cards[card].pods)

    def close(self) -> None:
        self._stack.close()


def _is_older_than_a_tick(pid: int) -> bool:
    """Return whether the kernel's clock can tell that a process started before now."""
    seen = Lookup().look(pid)
    return seen is not None and seen.started_by <= boottime()


@pytest.fixture
def ground(machine: State, start: Start, tmp_path: Path) -> Iterator[Ground]:
    made = Ground(machine, start, tmp_path)
    yield made
    made.close()


def test_a_new_process_in_every_list_counts(ground: Ground) -> None:
    """A pod that passes its memory from process to process holds it in every look."""
    counted = []
    for _ in range(4):
        process = ground.run(A, 4 * GIB)
        counted.append(ground.look()[A.uid].counted_bytes)
        process.kill()
        process.wait()

    assert [4 * GIB] * 4 == counted


@pytest.mark.parametrize("lists", [Lists.COMPUTE, CLIENT])
def test_a_tenants_mps_server_sheds_nobodys_fence(ground: Ground, lists: Lists) -> None:
    """
    A server in a pod, true or only called so, leaves the memory of every pod on the card charged.
    """
    ground.run(A, GIB, MPS_SERVER, lists)
    ground.run(A, 4 * GIB, lists=CLIENT)
    ground.run(B, 2 * GIB)
    pods = ground.look()

    assert (5 * GIB, 2 * GIB) == (pods[A.uid].counted_bytes, pods[B.uid].counted_bytes)
    assert [False, False] == [pods[item.uid].mps for item in PODS]


def test_only_the_clients_of_the_nodes_mps_server_are_uncertain(ground: Ground) -> None:
    """A server of the node makes a pod of its clients uncertain, and no other one."""
    ground.run(None, GIB, MPS_SERVER)
    ground.run(A, 4 * GIB, lists=CLIENT)
    ground.run(B, 4 * GIB)
    pods = ground.look()

    assert [True, False] == [pods[item.uid].mps for item in PODS]
