"""Who is listed: living processes, with their PIDs as the asker's PID namespace sees them."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gpufence.quantity import MIB
from simulator.nvml.state import State
from tests.support.nvml_client import Client
from tests.support.observing import PATIENCE_SECONDS
from tests.support.tried import pid_namespace

COMPUTE = "nvmlDeviceGetComputeRunningProcesses(card(0))"
USED = "nvmlDeviceGetMemoryInfo(card(0), nvmlMemory_v2).used"
SECONDS = 10.0
HOLDER = """
import sys, time
from pathlib import Path
from simulator.nvml.state import State
state = State.open(Path(sys.argv[1]))
holding = state.processes.hold(state.find("0"), int(sys.argv[2]))
holding.work(10)
print("holding", flush=True)
sys.stdin.read()
"""


def start_holder(
    machine: State, memory: int = 200 * MIB, prefix: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """Start a process that holds memory until its input ends."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", HOLDER, str(machine.path), str(memory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "holding\n" == process.stdout.readline()
    return process


def finish(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(SECONDS)
    process.stdout.close()


@pytest.fixture
def holder(machine: State) -> Iterator[subprocess.Popen[str]]:
    process = start_holder(machine)
    yield process
    finish(process)


def pids(client: Client, call: str = COMPUTE) -> list[int]:
    return [process["pid"] for process in client(call)]


def test_a_holder_is_listed_under_its_pid(client: Client, holder: subprocess.Popen[str]) -> None:
    """
    A process that holds memory is listed with its PID, without anybody having written it down.
    """
    assert [holder.pid] == pids(client)
    assert 200 * MIB == client(USED)


def test_a_killed_holder_is_gone_at_once(
    client: Client, machine: State, holder: subprocess.Popen[str]
) -> None:
    """When a process dies, however it dies, its memory is free without anybody's help."""
    holder.kill()
    holder.wait(SECONDS)

    assert [] == pids(client)
    assert 0 == client(USED)
    assert 0 == machine.cards[0].room.taken


def test_a_client_sees_its_own_memory(client: Client, machine: State) -> None:
    """A process that both holds memory and asks NVML is in its own list."""
    client("from_state = __import__('simulator.nvml.state', fromlist=['State']).State")
    client("from_path = __import__('pathlib').Path")
    client(f"mine = from_state.open(from_path({str(machine.path)!r}))")
    client(f"held = mine.processes.hold(mine.find('0'), {300 * MIB})")

    assert [client.process.pid] == pids(client)
    assert 300 * MIB == client(USED)
    client("held = held.release()")


def test_opening_it_again_drops_no_lock(client: Client, machine: State) -> None:
    """A second view of the file that comes and goes leaves what this process holds alone."""
    holding = machine.processes.hold(machine.find("0"), 300 * MIB)
    before = pids(client)
    type(machine).open(machine.path)
    gc.collect()

    assert [os.getpid()] == before == pids(client)
    assert 300 * MIB == holding.memory


def test_a_reused_number_is_not_the_old_process(client: Client, machine: State) -> None:
    """A record whose holder died is not revived by a new process with the same PID."""
    process = start_holder(machine)
    process.kill()
    finish(process)
    state = machine.processes.record(0)
    state.pid = client.process.pid  # as if the client had been given the dead process's number
    state.name_space = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - one number

    assert [] == pids(client)


def test_a_pid_by_number_is_listed_while_it_lives(client: Client, machine: State) -> None:
    """A PID that was only written down is checked against the living."""
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
    machine.processes.put(machine.find("0"), process.pid, MIB)
    before = pids(client)
    process.kill()
    process.communicate()

    assert [process.pid] == before
    assert [] == pids(client)


def test_a_kept_pid_needs_no_process(client: Client, machine: State) -> None:
    """A PID without a /proc entry can be listed until it is released."""
    holding = machine.processes.put(machine.find("0"), 4_000_000, MIB, kept=True)
    before = pids(client)
    holding.release()

    assert [4_000_000] == before
    assert [] == pids(client)


def test_a_dead_allocator_blocks_nobody(machine: State) -> None:
    """A process that dies in the middle of an allocation leaves no lock behind."""
    code = (
        "import os, sys; from pathlib import Path; from simulator.nvml.file import StateFile;"
        "file = StateFile.open(Path(sys.argv[1]));"
        "file.locks.allocation().__enter__(); print('locked', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(machine.path)], stdin=-1, stdout=-1, text=True
    )
    assert process.stdout is not None
    assert "locked\n" == process.stdout.readline()
    process.kill()
    process.communicate()
    begin = time.monotonic()
    machine.processes.put(machine.find("0"), os.getpid(), MIB)

    assert time.monotonic() - begin < PATIENCE_SECONDS


@pytest.fixture
def nested(machine: State) -> Iterator[subprocess.Popen[str]]:
    """A holder in a PID namespace of its own."""
    process = start_holder(machine, prefix=pid_namespace())
    yield process
    finish(process)


@pytest.fixture
def nested_client(machine: State) -> Iterator[Client]:
    """A client in a PID namespace of its own."""
    with Client(machine.path, prefix=pid_namespace()) as one:
        yield one


def child_of(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children") as children:  # noqa: PTH123 - one line
        return int(children.read())


@pytest.mark.needs("PID namespaces")
def test_the_outside_sees_a_nested_process_by_its_outer_pid(
    client: Client, nested: subprocess.Popen[str]
) -> None:
    """A process that is PID 1 in its own namespace is listed by the PID it has here."""
    assert [child_of(nested.pid)] == pids(client)


@pytest.mark.needs("PID namespaces")
def test_the_inside_does_not_see_the_outside(
    nested_client: Client, holder: subprocess.Popen[str]
) -> None:
    """
    Without hostPID a modern driver answers success and an empty list while the card is in use.
    """
    assert holder.poll() is None
    assert [] == pids(nested_client)
    assert 200 * MIB == nested_client(USED)
