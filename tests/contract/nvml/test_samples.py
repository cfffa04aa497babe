"""
Utilization: what busy processes are sampled with.
"""

import os
import time

from gpufence.quantity import MIB
from simulator.nvml.state import State
from tests.support.nvml_client import Client

SAMPLES = "nvmlDeviceGetProcessUtilization(card(0), {since})"


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
