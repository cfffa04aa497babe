"""Utilization: what busy processes are sampled with."""

import os
import time

from gpufence.quantity import MIB
from simulator.nvml.faults import Fault
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.support.nvml_client import Client
from tests.support.observing import wait_until

SAMPLES = "nvmlDeviceGetProcessUtilization(card(0), {since})"
PERIOD_SECONDS = 0.1


def microseconds() -> int:
    return time.time_ns() // 1000


def samples_since(client: Client, since: int) -> list[dict[str, int]]:
    """Wait until a period with work in it is over, and return its samples."""
    question = SAMPLES.format(since=since)
    wait_until(lambda: "error" not in client.ask(question))
    answer: list[dict[str, int]] = client(question)
    return answer


def test_idle_processes_have_no_samples(client: Client, machine: State) -> None:
    """No sample since the time asked for is "not found", never an empty list."""
    machine.processes.put(machine.find("0"), os.getpid(), MIB)

    assert "NVMLError_NotFound" == client.error(SAMPLES.format(since=0))


def test_busy_processes_have_samples(client: Client, machine: State) -> None:
    """A busy process has a sample with its share of each engine and the time in microseconds."""
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    holding.work(61, bandwidth=23, encoder=7, decoder=5)
    began = microseconds()
    (sample,) = samples_since(client, began)

    assert (os.getpid(), 61, 23, 7, 5) == (
        sample["pid"],
        *(sample[f"{engine}Util"] for engine in ("sm", "mem", "enc", "dec")),
    )
    assert abs(time.time() * 1_000_000 - sample["timeStamp"]) < 5_000_000


def test_a_sample_seen_is_not_given_again(client: Client, machine: State) -> None:
    """
    Asked for what is newer than the newest sample of a process that has stopped, there is nothing.
    """
    began = microseconds()
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    holding.work(50)
    samples_since(client, began)
    holding.work(0)
    time.sleep(2 * PERIOD_SECONDS)
    (sample,) = client(SAMPLES.format(since=began))

    assert "NVMLError_NotFound" == client.error(SAMPLES.format(since=sample["timeStamp"]))


def test_a_burst_between_two_questions_is_sampled(client: Client, machine: State) -> None:
    """A kernel that came and went has an entry for whoever asks since before it."""
    began = microseconds()
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    holding.work(80)
    time.sleep(PERIOD_SECONDS / 10)
    holding.work(0)
    (sample,) = samples_since(client, began)

    assert os.getpid() == sample["pid"]
    assert 0 < sample["smUtil"] <= 80


def test_a_share_is_an_average_since_the_time_asked_for(client: Client, machine: State) -> None:
    """Who worked for half of the time has half of the share, between bounds that its clock sets."""
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    began = microseconds()
    holding.work(100)
    first = microseconds()
    time.sleep(10 * PERIOD_SECONDS)
    last = microseconds()
    holding.work(0)
    ended = microseconds()
    time.sleep(10 * PERIOD_SECONDS)
    asked = microseconds()
    (sample,) = client(SAMPLES.format(since=began))
    answered = microseconds()
    least = 100 * (last - first) / (answered - began)
    most = 100 * (ended - began) / (asked - PERIOD_SECONDS * 1_000_000 - began)

    assert least <= sample["smUtil"] <= most + 1
    assert least < 60


def test_only_who_had_some_use_has_an_entry(client: Client, machine: State) -> None:
    """Of two processes on a card the one that does nothing has no entry."""
    began = microseconds()
    machine.processes.put(machine.find("0"), os.getpid(), MIB).work(50)
    machine.processes.put(machine.find("0"), os.getppid(), MIB)

    assert [os.getpid()] == [sample["pid"] for sample in samples_since(client, began)]


def test_asked_for_everything_the_buffer_is_averaged(client: Client, machine: State) -> None:
    """
    A timestamp of 0 averages the whole buffer: a moment of full load is a few percent, and shows
    when it is over.
    """
    began = microseconds()
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    holding.work(100)
    samples_since(client, began)
    holding.work(0)
    time.sleep(2 * PERIOD_SECONDS)
    (sample,) = client(SAMPLES.format(since=0))

    assert 0 < sample["smUtil"] < 10


def test_zombies_are_entries_without_sense(client: Client, machine: State) -> None:
    """Processes that died badly give entries of no PID, with shares beyond 100 %."""
    machine.faults.add(Fault(FaultAction.PAD, "nvmlDeviceGetProcessUtilization", argument=100))
    samples = client(SAMPLES.format(since=microseconds() - 1_000_000))

    assert 100 == len(samples)
    assert all(sample["pid"] == 0 and sample["smUtil"] > 100 for sample in samples)


def test_a_small_buffer_is_told_the_size(client: Client, machine: State) -> None:
    """A buffer that is too small is refused with the number of entries there are."""
    machine.faults.add(Fault(FaultAction.PAD, "nvmlDeviceGetProcessUtilization", argument=3))
    since = microseconds() - 1_000_000

    assert [7, 3] == client(
        "(lambda n: [function('nvmlDeviceGetProcessUtilization')(card(0), None, ctypes.byref(n), "
        f"ctypes.c_ulonglong({since})), n.value])(ctypes.c_uint(1))"
    )


def test_samples_seen_before_are_not_given_again(client: Client, machine: State) -> None:
    """Asked for what is newer than the future, there is nothing."""
    machine.processes.put(machine.find("0"), os.getpid(), MIB).work(50)
    future = int(time.time() * 1_000_000) + 60_000_000

    assert "NVMLError_NotFound" == client.error(SAMPLES.format(since=future))


def test_a_card_is_as_busy_as_its_processes(client: Client, machine: State) -> None:
    """The card's utilization is the sum over its processes and never above 100 %."""
    place = machine.find("0")
    machine.processes.put(place, os.getpid(), MIB).work(70, bandwidth=30, encoder=9)
    machine.processes.put(place, os.getppid(), MIB).work(60, bandwidth=20, decoder=4)

    assert {"gpu": 100, "memory": 50} == client("nvmlDeviceGetUtilizationRates(card(0))")
    assert 9 == client("nvmlDeviceGetEncoderUtilization(card(0))")[0]
    assert 4 == client("nvmlDeviceGetDecoderUtilization(card(0))")[0]
