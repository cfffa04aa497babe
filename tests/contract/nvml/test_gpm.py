"""GPU performance monitoring: what a MIG instance did between two samples, on Hopper."""

import os
import time

import pytest

from gpufence.quantity import MIB
from simulator.nvml.state import State
from tests.support.nvml_client import Client

H100, A100 = 7, 6
TAKE = "nvmlGpmMigSampleGet(card({card}), {id}, {name})"
PERIOD_SECONDS = 0.1


def take(client: Client, name: str, instance: int) -> None:
    client(f"{name} = nvmlGpmSampleAlloc()")
    client(TAKE.format(name=name, card=H100, id=instance))


def test_hopper_has_it_and_ampere_has_not(client: Client) -> None:
    """A card says whether it has performance monitoring."""
    assert 1 == client(f"nvmlGpmQueryDeviceSupport(card({H100})).isSupportedDevice")
    assert 0 == client(f"nvmlGpmQueryDeviceSupport(card({A100})).isSupportedDevice")


def test_an_ampere_instance_has_no_samples(client: Client, machine: State) -> None:
    """A card without it refuses to take a sample."""
    machine.cards[A100].cut("3g.40gb")
    instance = machine.cards[A100].instances[0].gpu_instance
    client("x = nvmlGpmSampleAlloc()")
    taking = TAKE.format(name="x", card=A100, id=instance)

    assert "NVMLError_NotSupported" == client.error(taking)


@pytest.mark.parametrize(("level", "expected"), [(0, 0.0), (40, 40.0)])
def test_an_instance_is_measured_alone(
    client: Client, machine: State, level: int, expected: float
) -> None:
    """What one instance does shows in its own metric, whatever the one beside it does."""
    machine.cards[H100].cut("3g.40gb", "3g.40gb")
    first, second = machine.cards[H100].instances
    machine.processes.put(first.place, os.getpid(), MIB).work(level)
    machine.processes.put(second.place, os.getppid(), MIB).work(90)
    time.sleep(2 * PERIOD_SECONDS)
    take(client, "a", first.gpu_instance)
    time.sleep(4 * PERIOD_SECONDS)
    take(client, "b", first.gpu_instance)

    assert expected == pytest.approx(client("percent_between(a, b)"))


def test_an_instance_that_is_not_there(client: Client, machine: State) -> None:
    """Of an id that no instance has, no sample can be taken."""
    machine.cards[H100].cut("3g.40gb")
    client("x = nvmlGpmSampleAlloc()")
    taking = TAKE.format(name="x", card=H100, id=99)

    assert "NVMLError_InvalidArgument" == client.error(taking)
