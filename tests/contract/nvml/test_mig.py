"""Cards in MIG mode: the tree of instances, who may see what, and what a change does to handles."""

import os

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import MIB
from simulator.nvml.state import State
from tests.support.nvml_client import Client

CARD = 5  # the A100-40
COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
MEMORY = "nvmlDeviceGetMemoryInfo"


@pytest.fixture
def cut(machine: State) -> State:
    """A machine whose A100 is cut into a large and two small instances."""
    machine.cards[CARD].cut("3g.20gb", "1g.5gb", "1g.5gb")
    return machine


def test_the_instances_are_found_by_counting(client: Client, cut: State) -> None:
    """Instances have places from 0; the free ones are not found."""
    assert [i.uuid for i in cut.cards[CARD].instances] == [
        client(f"nvmlDeviceGetUUID(instance({CARD}, {number}))") for number in range(3)
    ]
    assert "NVMLError_NotFound" == client.error(f"instance({CARD}, 3)")
    assert "NVMLError_InvalidArgument" == client.error(f"instance({CARD}, 7)")


@pytest.mark.parametrize(
    ("number", "profile", "ids", "memory_mib", "processors"),
    [
        (0, "3g.20gb", [1, 0], 20096, 42),
        (1, "1g.5gb", [7, 0], 4864, 14),
        (2, "1g.5gb", [8, 0], 4864, 14),
    ],
)
def test_an_instance_says_what_it_is(
    client: Client,
    cut: State,
    number: int,
    profile: str,
    ids: list[int],
    memory_mib: int,
    processors: int,
) -> None:
    """An instance has a name, ids, a share of the processors and memory of its own."""
    handle = f"instance({CARD}, {number})"
    attributes = client(f"nvmlDeviceGetAttributes_v2({handle})")

    assert f"{cut.cards[CARD].name} MIG {profile}" == client(f"nvmlDeviceGetName({handle})")
    assert ids == client(
        f"[nvmlDeviceGetGpuInstanceId({handle}), nvmlDeviceGetComputeInstanceId({handle})]"
    )
    assert memory_mib * MIB == client(f"{MEMORY}({handle}).total")
    assert (processors, memory_mib) == (
        attributes["multiprocessorCount"],
        attributes["memorySizeMB"],
    )


def test_an_instance_leads_to_its_card(client: Client, cut: State) -> None:
    """The way up from an instance ends at the card it was cut from."""
    up = f"nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance({CARD}, 1))"

    assert cut.cards[CARD].uuid == client(f"nvmlDeviceGetUUID({up})")
    assert 1 == client(f"nvmlDeviceIsMigDeviceHandle(instance({CARD}, 1))")
    assert "NVMLError_InvalidArgument" == client.error(
        f"nvmlDeviceGetDeviceHandleFromMigDeviceHandle(card({CARD}))"
    )


def test_an_instance_has_processes_and_memory_of_its_own(client: Client, cut: State) -> None:
    """What a process holds on one instance does not show on its sibling."""
    cut.processes.put(cut.find(f"{CARD}:1"), os.getpid(), 500 * MIB)
    (process,) = client(f"{COMPUTE}(instance({CARD}, 1))")

    assert (os.getpid(), 500 * MIB, 7, 0) == tuple(process.values())
    assert 500 * MIB == client(f"{MEMORY}(instance({CARD}, 1)).used")
    assert [] == client(f"{COMPUTE}(instance({CARD}, 2))")
    assert 0 == client(f"{MEMORY}(instance({CARD}, 2)).used")


def test_an_instance_is_found_by_uuid(client: Client, cut: State) -> None:
    """The UUID that a container was given leads to the instance."""
    uuid = cut.cards[CARD].instances[2].uuid

    assert 8 == client(f"nvmlDeviceGetGpuInstanceId(nvmlDeviceGetHandleByUUID({uuid!r}))")


def test_the_whole_card_is_for_the_privileged(client: Client, cut: State) -> None:
    """Without privilege the card itself shows neither memory nor processes."""
    assert cut.cards[CARD].mig
    assert "NVMLError_NoPermission" == client.error(f"{COMPUTE}(card({CARD}))")
    assert "NVMLError_NoPermission" == client.error(f"{MEMORY}(card({CARD}))")
    assert "NVMLError_NoPermission" == client.error(f"{MEMORY}(card({CARD}), nvmlMemory_v2)")


@pytest.mark.parametrize("handle", [f"card({CARD})", f"instance({CARD}, 0)"])
@pytest.mark.parametrize(
    "call",
    ["nvmlDeviceGetUtilizationRates({})", "nvmlDeviceGetProcessUtilization({}, 0)"],
)
def test_there_is_no_utilization(client: Client, cut: State, call: str, handle: str) -> None:
    """In MIG mode neither card nor instance has a utilization."""
    assert cut.cards[CARD].mig
    assert "NVMLError_NotSupported" == client.error(call.format(handle))


def test_a_new_cut_ends_old_handles(client: Client, cut: State) -> None:
    """A handle from before a change of the instances is invalid after it."""
    client(f"held = instance({CARD}, 0)")
    cut.cards[CARD].cut("2g.10gb")

    assert "NVMLError_InvalidArgument" == client.error(f"{MEMORY}(held)")
    assert 9984 * MIB == client(f"{MEMORY}(instance({CARD}, 0)).total")


def test_a_new_cut_may_reuse_old_handles(client: Client, cut: State) -> None:
    """An old handle may also mean another instance, with other memory and another UUID."""
    client(f"held = instance({CARD}, 0)")
    before = client("nvmlDeviceGetUUID(held)")
    cut.cards[CARD].cut("2g.10gb", reuse_handles=True)

    assert 9984 * MIB == client(f"{MEMORY}(held).total")
    assert before != client("nvmlDeviceGetUUID(held)")


def test_a_card_in_use_is_not_cut(cut: State) -> None:
    """As on hardware, the instances can only change when nobody uses them."""
    cut.processes.put(cut.find(f"{CARD}:0"), os.getpid(), MIB)

    with pytest.raises(InvalidError, match="is in use"):
        cut.cards[CARD].cut("7g.40gb")
