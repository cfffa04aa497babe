"""Cards that are parted, and all that a card tells."""

import os
import re
from dataclasses import dataclass

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import MIB
from simulator.nvml.state import State
from tests.support.driver import Client

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


@dataclass(frozen=True)
class Expected:
    """What the product's data sheet and driver say."""

    index: int
    name: str
    total_mib: int
    capability: tuple[int, int]
    pci_device: int
    mig: bool

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


EXPECTED = (
    Expected(0, "Tesla T4", 15360, (7, 5), 0x1EB810DE, mig=False),
    Expected(1, "Tesla V100-SXM2-16GB", 16384, (7, 0), 0x1DB110DE, mig=False),
    Expected(2, "Tesla V100-SXM2-32GB", 32768, (7, 0), 0x1DB510DE, mig=False),
    Expected(3, "NVIDIA A10G", 23028, (8, 6), 0x223710DE, mig=False),
    Expected(4, "NVIDIA L4", 23034, (8, 9), 0x27B810DE, mig=False),
    Expected(5, "NVIDIA A100-SXM4-40GB", 40960, (8, 0), 0x20B010DE, mig=True),
    Expected(6, "NVIDIA A100-SXM4-80GB", 81920, (8, 0), 0x20B210DE, mig=True),
    Expected(7, "NVIDIA H100 80GB HBM3", 81559, (9, 0), 0x233010DE, mig=True),
)
every_model = pytest.mark.parametrize("card", EXPECTED, ids=str)


def test_versions_are_text_and_numbers(client: Client) -> None:
    """Driver, library and CUDA versions have the forms that programs parse."""
    assert "580.95.05" == client("nvmlSystemGetDriverVersion()")
    assert [13000, 13000] == client(
        "[nvmlSystemGetCudaDriverVersion(), nvmlSystemGetCudaDriverVersion_v2()]"
    )


@every_model
def test_identity(client: Client, machine: State, card: Expected) -> None:
    """A card says its name, UUID, index and serial number."""
    number = card.index

    assert card.name == client(f"nvmlDeviceGetName(card({number}))")
    assert machine.cards[number].uuid == client(f"nvmlDeviceGetUUID(card({number}))")
    assert number == client(f"nvmlDeviceGetIndex(card({number}))")
    assert re.fullmatch(r"\d{13}", client(f"nvmlDeviceGetSerial(card({number}))"))


@every_model
def test_pci_info_finds_the_card_again(client: Client, card: Expected) -> None:
    """A card's bus id leads back to the same card."""
    info = client(f"nvmlDeviceGetPciInfo(card({card.index}))")
    again = client(f"nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId({info['busId']!r}))")

    assert card.index == again
    assert card.pci_device == info["pciDeviceId"]
    assert f"0000:{info['bus']:02X}:00.0" == info["busIdLegacy"]


@every_model
def test_first_memory_info_counts_reserved_as_used(
    client: Client, machine: State, card: Expected
) -> None:
    """In version 1, used is reserved plus allocated and the rest is free."""
    machine.processes.put(machine.find(str(card.index)), os.getpid(), 1000 * MIB)
    memory = client(f"nvmlDeviceGetMemoryInfo(card({card.index}))")

    used = 1000 * MIB + machine.cards[card.index].reserved
    total = card.total_mib * MIB
    assert {"total": total, "used": used, "free": total - used} == memory


@every_model
def test_second_memory_info_shows_reserved_apart(
    client: Client, machine: State, card: Expected
) -> None:
    """In version 2, used is what is allocated, and all parts add up to the total."""
    machine.processes.put(machine.find(str(card.index)), os.getpid(), 1000 * MIB)
    memory = client(f"nvmlDeviceGetMemoryInfo(card({card.index}), nvmlMemory_v2)")

    assert 0x02000028 == memory["version"]
    assert 1000 * MIB == memory["used"]
    assert card.total_mib * MIB == memory["used"] + memory["reserved"] + memory["free"]


@every_model
def test_mig_mode_is_known_where_there_is_one(client: Client, card: Expected) -> None:
    """Cards that can be cut say that they are not; the others say that they cannot."""
    call = f"nvmlDeviceGetMigMode(card({card.index}))"

    if card.mig:
        assert [0, 0] == client(call)
    else:
        assert "NVMLError_NotSupported" == client.error(call)
    assert (7 if card.mig else 0) == client(f"nvmlDeviceGetMaxMigDeviceCount(card({card.index}))")


@every_model
def test_idle_cards_have_no_processes(client: Client, card: Expected) -> None:
    """Without processes, every list is empty and the utilization is zero."""
    for kind in ("Compute", "Graphics", "MPSCompute"):
        assert [] == client(f"nvmlDeviceGet{kind}RunningProcesses(card({card.index}))")
    assert {"gpu": 0, "memory": 0} == client(f"nvmlDeviceGetUtilizationRates(card({card.index}))")


@every_model
def test_error_memory_and_persistence(client: Client, card: Expected) -> None:
    """No memory error is counted, and persistence mode is on, as in a data centre."""
    handle = f"card({card.index})"

    assert 0 == client(f"nvmlDeviceGetTotalEccErrors({handle}, 0, 0)")
    assert 1 == client(f"nvmlDeviceGetPersistenceMode({handle})")


@every_model
def test_sensors_move_with_the_load(client: Client, machine: State, card: Expected) -> None:
    """A busy card is warmer, draws more power and clocks higher than an idle one."""
    sensors = (
        f"[nvmlDeviceGetTemperature(card({card.index}), 0), "
        f"nvmlDeviceGetPowerUsage(card({card.index})), "
        f"nvmlDeviceGetClockInfo(card({card.index}), 1)]"
    )
    idle = client(sensors)
    holding = machine.processes.put(machine.find(str(card.index)), os.getpid(), 100 * MIB)
    holding.work(80)
    busy = client(sensors)

    assert all(after > before for before, after in zip(idle, busy, strict=True))
    assert busy[1] < client(f"nvmlDeviceGetEnforcedPowerLimit(card({card.index}))")
    assert busy[2] == client(f"nvmlDeviceGetMaxClockInfo(card({card.index}), 1)")


def test_uuids_are_stable(client: Client, machine: State) -> None:
    """A machine made anew of the same cards has the same UUIDs; another seed gives others."""
    uuids = "[nvmlDeviceGetUUID(card(i)) for i in range(nvmlDeviceGetCount())]"
    before = client(uuids)
    type(machine).create(machine.path, "T4,V100-16")
    again = client(uuids)
    type(machine).create(machine.path, "T4,V100-16", seed="node-b")
    other = client(uuids)

    assert before[:2] == again
    assert not set(other) & set(before)


@every_model
def test_links(client: Client, card: Expected) -> None:
    """A card tells the generation of its PCIe slot, and that it has no NVLinks to look behind."""
    handle = f"card({card.index})"
    no_links = [
        f"nvmlDeviceGetNvLinkRemoteDeviceType({handle}, 0)",
        f"nvmlDeviceGetNvLinkRemotePciInfo({handle}, 0)",
        f"nvmlDeviceGetGpuFabricInfoV({handle}, ctypes.create_string_buffer(64))",
    ]

    assert card.capability[0] - 4 == client(f"nvmlDeviceGetCurrPcieLinkGeneration({handle})")
    assert ["NVMLError_NotSupported"] * 3 == [client.error(call) for call in no_links]
