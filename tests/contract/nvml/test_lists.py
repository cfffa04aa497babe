"""The process lists: protocol, contents and everything that pynvml makes of odd ones."""

import os
from typing import Any

import pytest

from gpufence.quantity import MIB
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction, Lists
from simulator.nvml.state import State
from tests.support.nvml_client import Client

COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
LISTS = {
    Lists.COMPUTE: COMPUTE,
    Lists.GRAPHICS: "nvmlDeviceGetGraphicsRunningProcesses",
    Lists.MPS: "nvmlDeviceGetMPSComputeRunningProcesses",
}
DETAILS = "nvmlDeviceGetRunningProcessDetailList(card(7), 0x01000018, {mode})"
NOBODY = 0xFFFFFFFF
FIRST_MADE_UP_PID = 0x3F0000


def put(machine: State, count: int = 1, card: int = 0, lists: Lists = Lists.COMPUTE) -> list[int]:
    """List processes that need not exist, of 100, 101, 102 ... MiB."""
    place = machine.find(str(card))
    pids = list(range(1_000_001, 1_000_001 + count))
    for number, pid in enumerate(pids):
        machine.processes.put(place, pid, (100 + number) * MIB, lists=lists, kept=True)
    return pids


def pids(processes: list[dict[str, Any]]) -> list[int]:
    return [process["pid"] for process in processes]


@pytest.mark.parametrize("kind", list(LISTS), ids=lambda kind: kind.name.lower())
def test_a_process_is_only_in_its_list(client: Client, machine: State, kind: Lists) -> None:
    """A process shows up in the list of its kind and in no other."""
    (pid,) = put(machine, lists=kind)

    for other, name in LISTS.items():
        expected = [pid] if other is kind else []
        assert expected == pids(client(f"{name}(card(0))"))


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
    ] == client(f"{COMPUTE}(card(0))")


def test_an_empty_probe_succeeds_only_without_processes(client: Client, machine: State) -> None:
    """Asked without a buffer, an empty list is a success; any other is too big for it."""
    assert [NvmlCode.SUCCESS, 0] == client(f"raw('{COMPUTE}_v3', card(0), None)")
    put(machine, 3)
    assert [NvmlCode.INSUFFICIENT_SIZE, 3] == client(f"raw('{COMPUTE}_v3', card(0), None)")


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [(2, NvmlCode.INSUFFICIENT_SIZE), (3, NvmlCode.SUCCESS), (9, NvmlCode.SUCCESS)],
)
def test_a_small_buffer_is_answered_with_the_size_it_takes(
    client: Client, machine: State, capacity: int, expected: NvmlCode
) -> None:
    """A buffer must hold the whole list; the count is right either way."""
    put(machine, 3)

    assert [expected, 3] == client(f"raw('{COMPUTE}_v3', card(0), {capacity})")


def test_growth_within_what_pynvml_allows_for_is_unnoticed(client: Client, machine: State) -> None:
    """
    Room for 2n+5 entries is what pynvml asks for, so a few newcomers between its two calls fit.
    """
    put(machine, 2)
    machine.faults.add(Fault(FaultAction.PAD, COMPUTE, argument=7, after=1, times=1))

    assert 9 == len(client(f"{COMPUTE}(card(0))"))


def test_growth_beyond_it_is_an_error_that_pynvml_does_not_retry(
    client: Client, machine: State
) -> None:
    """From 2 to 42 processes between the two calls raises; asked again, it works."""
    put(machine, 2)
    machine.faults.add(Fault(FaultAction.PAD, COMPUTE, argument=40, after=1, times=1))

    assert "NVMLError_InsufficientSize" == client.error(f"{COMPUTE}(card(0))")
    assert 2 == len(client(f"{COMPUTE}(card(0))"))


def test_memory_that_is_not_available_arrives_as_none(client: Client, machine: State) -> None:
    """2^64-1 becomes None, which is neither zero nor huge."""
    put(machine)
    machine.faults.add(Fault(FaultAction.NOT_AVAILABLE, COMPUTE))

    assert None is client(f"{COMPUTE}(card(0))")[0]["usedGpuMemory"]


def test_the_detail_list_cannot_carry_unavailable_memory(client: Client, machine: State) -> None:
    """The wrapper of the detail list in pynvml stumbles over N/A with a TypeError."""
    put(machine, card=7)
    machine.faults.add(Fault(FaultAction.NOT_AVAILABLE))

    assert "TypeError" == client.error(DETAILS.format(mode=0))


def test_a_wrong_namespace_shows_an_empty_list(client: Client, machine: State) -> None:
    """Success with nobody listed while the card is in use: an idle look without idleness."""
    put(machine, 2)
    machine.faults.add(Fault(FaultAction.KEEP, COMPUTE, argument=0))

    assert [] == client(f"{COMPUTE}(card(0))")
    assert 201 * MIB == client("nvmlDeviceGetMemoryInfo(card(0), nvmlMemory_v2).used")


def test_managed_memory_shows_on_the_device_only(client: Client, machine: State) -> None:
    """UVM memory fills the card and is charged to nobody."""
    holding = machine.processes.put(machine.find("0"), os.getpid(), 500 * MIB)
    holding.resize(managed=5000 * MIB)

    assert 500 * MIB == client(f"{COMPUTE}(card(0))")[0]["usedGpuMemory"]
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
