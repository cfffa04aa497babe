"""Every function the agent needs, on every model of card, through NVIDIA's own bindings."""

import os
import re
from dataclasses import dataclass

import pytest

from gpufence.quantity import MIB
from simulator.nvml.state import State
from tests.support.nvml_client import Client


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
