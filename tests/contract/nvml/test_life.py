"""A life with the library, and the lists of processes in it."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gpufence.quantity import MIB
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction, Lists
from simulator.nvml.state import State
from tests.support.driver import Client
from tests.support.observing import PATIENCE_SECONDS
from tests.support.running import pid_namespace

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


ANY_CARD = "nvmlDeviceGetComputeRunningProcesses"
LISTS = {
    Lists.COMPUTE: ANY_CARD,
    Lists.GRAPHICS: "nvmlDeviceGetGraphicsRunningProcesses",
    Lists.MPS: "nvmlDeviceGetMPSComputeRunningProcesses",
}
DETAILS = "nvmlDeviceGetRunningProcessDetailList(card(7), 0x01000018, {mode})"
NOBODY = 0xFFFFFFFF
FIRST_MADE_UP_PID = 0x3F0000


def put(machine: State, count: int = 1, card: int = 0, lists: Lists = Lists.COMPUTE) -> list[int]:
    """List processes that need not exist, of 100, 101, 102 ... MiB."""
    place = machine.find(str(card))
    pids_of = list(range(1_000_001, 1_000_001 + count))
    for number, pid in enumerate(pids_of):
        machine.processes.put(place, pid, (100 + number) * MIB, lists=lists, kept=True)
    return pids_of


def pids_of(processes: list[dict[str, Any]]) -> list[int]:
    return [process["pid"] for process in processes]


@pytest.mark.parametrize("kind", list(LISTS), ids=lambda kind: kind.name.lower())
def test_a_process_is_only_in_its_list(client: Client, machine: State, kind: Lists) -> None:
    """A process shows up in the list of its kind and in no other."""
    (pid,) = put(machine, lists=kind)

    for other, name in LISTS.items():
        expected = [pid] if other is kind else []
        assert expected == pids_of(client(f"{name}(card(0))"))


def test_an_entry_has_all_fields(client: Client, machine: State) -> None:
    """Without MIG an entry is PID, bytes and the two ids that mean none."""
    put(machine)

    assert [
        {
            "pid": 1_000_001,
            "usedGpuMemory": 100 * MIB,
            "gpuInstanceId": NOBODY,
            "computeInstanceId": NOBODY,
        }
    ] == client(f"{ANY_CARD}(card(0))")


def test_an_empty_probe_succeeds_only_without_processes(client: Client, machine: State) -> None:
    """Asked without a buffer, an empty list is a success; any other is too big for it."""
    assert [NvmlCode.SUCCESS, 0] == client(f"raw('{ANY_CARD}_v3', card(0), None)")
    put(machine, 3)
    assert [NvmlCode.INSUFFICIENT_SIZE, 3] == client(f"raw('{ANY_CARD}_v3', card(0), None)")


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [(2, NvmlCode.INSUFFICIENT_SIZE), (3, NvmlCode.SUCCESS), (9, NvmlCode.SUCCESS)],
)
def test_a_small_buffer_is_answered_with_the_size_it_takes(
    client: Client, machine: State, capacity: int, expected: NvmlCode
) -> None:
    """A buffer must hold the whole list; the count is right either way."""
    put(machine, 3)

    assert [expected, 3] == client(f"raw('{ANY_CARD}_v3', card(0), {capacity})")


def test_growth_within_what_pynvml_allows_for_is_unnoticed(client: Client, machine: State) -> None:
    """
    Room for 2n+5 entries is what pynvml asks for, so a few newcomers between its two calls fit.
    """
    put(machine, 2)
    machine.faults.add(Fault(FaultAction.PAD, ANY_CARD, argument=7, after=1, times=1))

    assert 9 == len(client(f"{ANY_CARD}(card(0))"))


def test_growth_beyond_it_is_an_error_that_pynvml_does_not_retry(
    client: Client, machine: State
) -> None:
    """From 2 to 42 processes between the two calls raises; asked again, it works."""
    put(machine, 2)
    machine.faults.add(Fault(FaultAction.PAD, ANY_CARD, argument=40, after=1, times=1))

    assert "NVMLError_InsufficientSize" == client.error(f"{ANY_CARD}(card(0))")
    assert 2 == len(client(f"{ANY_CARD}(card(0))"))


def test_memory_that_is_not_available_arrives_as_none(client: Client, machine: State) -> None:
    """2^64-1 becomes None, which is neither zero nor huge."""
    put(machine)
    machine.faults.add(Fault(FaultAction.NOT_AVAILABLE, ANY_CARD))

    assert None is client(f"{ANY_CARD}(card(0))")[0]["usedGpuMemory"]


def test_the_detail_list_cannot_carry_unavailable_memory(client: Client, machine: State) -> None:
    """The wrapper of the detail list in pynvml stumbles over N/A with a TypeError."""
    put(machine, card=7)
    machine.faults.add(Fault(FaultAction.NOT_AVAILABLE))

    assert "TypeError" == client.error(DETAILS.format(mode=0))


def test_a_wrong_namespace_shows_an_empty_list(client: Client, machine: State) -> None:
    """Success with nobody listed while the card is in use: an idle look without idleness."""
    put(machine, 2)
    machine.faults.add(Fault(FaultAction.KEEP, ANY_CARD, argument=0))

    assert [] == client(f"{ANY_CARD}(card(0))")
    assert 201 * MIB == client("nvmlDeviceGetMemoryInfo(card(0), nvmlMemory_v2).used")


def test_managed_memory_shows_on_the_device_only(client: Client, machine: State) -> None:
    """UVM memory fills the card and is charged to nobody."""
    holding = machine.processes.put(machine.find("0"), os.getpid(), 500 * MIB)
    holding.resize(managed=5000 * MIB)

    assert 500 * MIB == client(f"{ANY_CARD}(card(0))")[0]["usedGpuMemory"]
    assert 5500 * MIB == client("nvmlDeviceGetMemoryInfo(card(0), nvmlMemory_v2).used")


def test_the_detail_list_has_no_room_for_growth(client: Client, machine: State) -> None:
    """Exactly n entries are what pynvml asks for there, so that one newcomer is an error."""
    put(machine, 2, card=7)
    machine.faults.add(
        Fault(FaultAction.PAD, "nvmlDeviceGetRunningProcessDetailList", argument=1, after=1)
    )

    assert "NVMLError_InsufficientSize" == client.error(DETAILS.format(mode=0))


def test_older_cards_blame_the_version_of_the_detail_list(client: Client) -> None:
    """Before Hopper the detail list is a version mismatch, not "not supported"."""
    call = DETAILS.format(mode=0).replace("card(7)", "card(0)")

    assert "NVMLError_ArgumentVersionMismatch" == client.error(call)
