"""
Event sets and utilization samples: what is waited for and what is sampled.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from gpufence.quantity import MIB
from simulator.nvml.codes import Code
from simulator.nvml.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulator.nvml.state import State
    from tests.support.nvml_client import Client

XID = 0x8
SAMPLES = "nvmlDeviceGetProcessUtilization(card(0), {since})"


@pytest.fixture
def watching(client: Client) -> Iterator[Client]:
    """
    A client with an event set in which the first two cards are registered for XID errors.
    """
    client("events = nvmlEventSetCreate()")
    client(f"nvmlDeviceRegisterEvents(card(0), {XID}, events)")
    client(f"nvmlDeviceRegisterEvents(card(1), {XID}, events)")
    yield client
    client("nvmlEventSetFree(events)")


def test_waiting_in_vain_is_a_timeout(watching: Client) -> None:
    """
    Without an event, waiting ends with a timeout after the time asked for.
    """
    begin = time.monotonic()

    assert "NVMLError_Timeout" == watching.error("nvmlEventSetWait(events, 50)")
    assert time.monotonic() - begin >= 0.05


def test_an_xid_names_its_card(watching: Client, machine: State) -> None:
    """
    An event carries the card, the type and the number of the error.
    """
    machine.post_xid(1, 79)
    watching("seen = nvmlEventSetWait(events, 1000)")

    assert [XID, 79] == watching("[seen.eventType, seen.eventData]")
    assert 1 == watching("nvmlDeviceGetIndex(seen.device)")


def test_an_event_ends_the_waiting(watching: Client, machine: State) -> None:
    """
    Who is waiting already wakes up when something happens.
    """
    watching.send("nvmlEventSetWait(events, 10000).eventData")
    machine.post_xid(0, 45)

    assert 45 == watching.receive()["value"]


def test_events_come_in_order_and_once(watching: Client, machine: State) -> None:
    """
    Several events are answered one by one, the oldest first.
    """
    for xid in (31, 43, 48):
        machine.post_xid(0, xid)

    assert [31, 43, 48] == watching("[nvmlEventSetWait(events, 100).eventData for _ in range(3)]")
    assert "NVMLError_Timeout" == watching.error("nvmlEventSetWait(events, 0)")


def test_other_cards_are_not_heard(watching: Client, machine: State) -> None:
    """
    A card that is not registered wakes nobody.
    """
    machine.post_xid(2, 79)

    assert "NVMLError_Timeout" == watching.error("nvmlEventSetWait(events, 20)")


def test_the_past_is_not_heard(client: Client, machine: State) -> None:
    """
    An event set hears what happens after it was made.
    """
    machine.post_xid(0, 79)
    client("late = nvmlEventSetCreate()")
    client(f"nvmlDeviceRegisterEvents(card(0), {XID}, late)")

    assert "NVMLError_Timeout" == client.error("nvmlEventSetWait(late, 0)")
    client("nvmlEventSetFree(late)")


def test_waiting_may_end_early(watching: Client, machine: State) -> None:
    """
    A wait may come back before its time without an event.
    """
    machine.faults.add(Fault.code(Code.TIMEOUT, "nvmlEventSetWait"))
    begin = time.monotonic()

    assert "NVMLError_Timeout" == watching.error("nvmlEventSetWait(events, 5000)")
    assert time.monotonic() - begin < 1.0


@pytest.mark.parametrize(
    ("code", "name"),
    [(Code.NOT_SUPPORTED, "NVMLError_NotSupported"), (Code.UNKNOWN, "NVMLError_Unknown")],
)
def test_registration_can_fail(client: Client, machine: State, code: Code, name: str) -> None:
    """
    A card that cannot be registered leaves the set usable for the others.
    """
    machine.faults.add(Fault.code(code, "nvmlDeviceRegisterEvents", card=1))
    client("events = nvmlEventSetCreate()")
    failed = client.error(f"nvmlDeviceRegisterEvents(card(1), {XID}, events)")
    client(f"nvmlDeviceRegisterEvents(card(0), {XID}, events)")
    machine.post_xid(0, 79)

    assert name == failed
    assert 79 == client("nvmlEventSetWait(events, 100).eventData")
    client("nvmlEventSetFree(events)")


def test_unknown_types_are_not_supported(watching: Client) -> None:
    """
    A type that the card does not report cannot be registered.
    """
    call = "nvmlDeviceRegisterEvents(card(0), 1 << 40, events)"

    assert "NVMLError_NotSupported" == watching.error(call)


def test_instances_are_refused(watching: Client, machine: State) -> None:
    """
    Events are registered for cards, never for MIG instances.
    """
    machine.cards[5].cut("1g.5gb")

    assert "NVMLError_InvalidArgument" == watching.error(
        f"nvmlDeviceRegisterEvents(instance(5, 0), {XID}, events)"
    )


def test_an_event_of_an_instance_names_it(watching: Client, machine: State) -> None:
    """
    An error that belongs to an instance carries its ids.
    """
    machine.cards[5].cut("1g.5gb")
    watching(f"nvmlDeviceRegisterEvents(card(5), {XID}, events)")
    machine.post_xid(5, 43, instance=0)
    watching("seen = nvmlEventSetWait(events, 1000)")

    assert [7, 0] == watching("[seen.gpuInstanceId, seen.computeInstanceId]")


def test_a_freed_set_is_gone(client: Client) -> None:
    """
    A set that was freed can neither be waited for nor freed again.
    """
    client("gone = nvmlEventSetCreate()")
    client("nvmlEventSetFree(gone)")

    assert "NVMLError_InvalidArgument" == client.error("nvmlEventSetWait(gone, 0)")
    assert "NVMLError_InvalidArgument" == client.error("nvmlEventSetFree(gone)")


def test_idle_processes_have_no_samples(client: Client, machine: State) -> None:
    """
    No sample since the time asked for is "not found", never an empty list.
    """
    machine.processes.put(machine.find("0"), os.getpid(), MIB)

    assert "NVMLError_NotFound" == client.error(SAMPLES.format(since=0))


def test_busy_processes_have_samples(client: Client, machine: State) -> None:
    """
    A busy process has a sample with its share of each engine and the time in microseconds.
    """
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    holding.work(61, bandwidth=23, encoder=7, decoder=5)
    (sample,) = client(SAMPLES.format(since=0))

    assert (os.getpid(), 61, 23, 7, 5) == (
        sample["pid"],
        *(sample[f"{engine}Util"] for engine in ("sm", "mem", "enc", "dec")),
    )
    assert abs(time.time() * 1_000_000 - sample["timeStamp"]) < 5_000_000


def test_samples_seen_before_are_not_given_again(client: Client, machine: State) -> None:
    """
    Asked for what is newer than the future, there is nothing.
    """
    machine.processes.put(machine.find("0"), os.getpid(), MIB).work(50)
    future = int(time.time() * 1_000_000) + 60_000_000

    assert "NVMLError_NotFound" == client.error(SAMPLES.format(since=future))


def test_newer_programs_get_the_same_samples(client: Client, machine: State) -> None:
    """
    The newer function for samples agrees with the older one.
    """
    machine.processes.put(machine.find("0"), os.getpid(), MIB).work(50, bandwidth=20)
    (sample,) = client("nvmlDeviceGetProcessesUtilizationInfo(card(0), 0)")

    assert (os.getpid(), 50, 20) == (sample["pid"], sample["smUtil"], sample["memUtil"])


def test_a_card_is_as_busy_as_its_processes(client: Client, machine: State) -> None:
    """
    The card's utilization is the sum over its processes and never above 100 %.
    """
    place = machine.find("0")
    machine.processes.put(place, os.getpid(), MIB).work(70, bandwidth=30, encoder=9)
    machine.processes.put(place, os.getppid(), MIB).work(60, bandwidth=20, decoder=4)

    assert {"gpu": 100, "memory": 50} == client("nvmlDeviceGetUtilizationRates(card(0))")
    assert 9 == client("nvmlDeviceGetEncoderUtilization(card(0))")[0]
    assert 4 == client("nvmlDeviceGetDecoderUtilization(card(0))")[0]
