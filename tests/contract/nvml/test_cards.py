"""What a card and its MIG instances tell, and what real monitors make of them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import MIB
from simulator.nvml.build import CURRENT, environment
from simulator.nvml.state import State
from tests.support.driver import Client

CARD = 5  # the A100-40
COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
MEMORY = "nvmlDeviceGetMemoryInfo"
SECONDS = 30


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


@every_model
def test_a_card_says_what_it_is(client: Client, machine: State, card: Expected) -> None:
    """Names and numbers are those of its model, and its bus id leads back to it."""
    number, handle = card.index, f"card({card.index})"
    info = client(f"nvmlDeviceGetPciInfo({handle})")
    mode = client.ask(f"nvmlDeviceGetMigMode({handle})")

    assert card.name == client(f"nvmlDeviceGetName({handle})")
    assert machine.cards[number].uuid == client(f"nvmlDeviceGetUUID({handle})")
    assert re.fullmatch(r"\d{13}", client(f"nvmlDeviceGetSerial({handle})"))
    assert card.pci_device == info["pciDeviceId"]
    assert f"0000:{info['bus']:02X}:00.0" == info["busIdLegacy"]
    assert number == client(f"nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId({info['busId']!r}))")
    assert card.capability[0] - 4 == client(f"nvmlDeviceGetCurrPcieLinkGeneration({handle})")
    assert ([0, 0] if card.mig else "NVMLError_NotSupported") == mode.get(
        "error", mode.get("value")
    )
    assert (7 if card.mig else 0) == client(f"nvmlDeviceGetMaxMigDeviceCount({handle})")
    assert "NVMLError_NotSupported" == client.error(
        f"nvmlDeviceGetNvLinkRemoteDeviceType({handle}, 0)"
    )


@every_model
def test_a_card_says_what_it_holds(client: Client, machine: State, card: Expected) -> None:
    """What is reserved is part of what is used in the first version, and apart in the second."""
    machine.processes.put(machine.find(str(card.index)), os.getpid(), 1000 * MIB)
    used = 1000 * MIB + machine.cards[card.index].reserved
    total = card.total_mib * MIB
    second = client(f"{MEMORY}(card({card.index}), nvmlMemory_v2)")

    assert {"total": total, "used": used, "free": total - used} == client(
        f"{MEMORY}(card({card.index}))"
    )
    assert (0x02000028, 1000 * MIB) == (second["version"], second["used"])
    assert total == second["used"] + second["reserved"] + second["free"]


@every_model
def test_sensors_move_with_the_load(client: Client, machine: State, card: Expected) -> None:
    """A busy card is warmer, draws more power and clocks higher than an idle one."""
    handle = f"card({card.index})"
    sensors = (
        f"[nvmlDeviceGetTemperature({handle}, 0), nvmlDeviceGetPowerUsage({handle}), "
        f"nvmlDeviceGetClockInfo({handle}, 1)]"
    )
    idle = client(sensors)
    assert {"gpu": 0, "memory": 0} == client(f"nvmlDeviceGetUtilizationRates({handle})")
    holding = machine.processes.put(machine.find(str(card.index)), os.getpid(), 100 * MIB)
    holding.work(80)
    busy = client(sensors)

    assert all(after > before for before, after in zip(idle, busy, strict=True))
    assert busy[1] < client(f"nvmlDeviceGetEnforcedPowerLimit({handle})")
    assert busy[2] == client(f"nvmlDeviceGetMaxClockInfo({handle}, 1)")
    assert 1 == client(f"nvmlDeviceGetPersistenceMode({handle})")


def test_versions_are_text_and_numbers(client: Client) -> None:
    """Driver, library and CUDA versions have the forms that programs parse."""
    assert "580.95.05" == client("nvmlSystemGetDriverVersion()")
    assert [13000, 13000] == client(
        "[nvmlSystemGetCudaDriverVersion(), nvmlSystemGetCudaDriverVersion_v2()]"
    )


def test_uuids_are_stable(client: Client, machine: State) -> None:
    """A machine made anew of the same cards has the same UUIDs; another seed gives others."""
    uuids = "[nvmlDeviceGetUUID(card(i)) for i in range(nvmlDeviceGetCount())]"
    before = client(uuids)
    type(machine).create(machine.path, "T4,V100-16")
    again = client(uuids)
    type(machine).create(machine.path, "T4,V100-16", seed="node-b")

    assert before[:2] == again
    assert not set(client(uuids)) & set(before)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("nvmlDeviceGetHandleByIndex(8)", "InvalidArgument"),
        ("nvmlDeviceGetHandleByIndex(4_000_000_000)", "InvalidArgument"),
        ("nvmlDeviceGetHandleByUUID('GPU-0')", "NotFound"),
        ("nvmlDeviceGetHandleByPciBusId('0:ff:0.0')", "NotFound"),
        (f"{MEMORY}(cast(ctypes.c_void_p(0x1234), c_nvmlDevice_t))", "InvalidArgument"),
        (f"{MEMORY}(None)", "InvalidArgument"),
    ],
)
def test_what_is_not_there_is_refused(client: Client, call: str, error: str) -> None:
    """No index, UUID, bus id or handle leads to a card that there is not."""
    assert f"NVMLError_{error}" == client.error(call)


def test_calls_outside_init_are_uninitialized(start: Callable[..., Client]) -> None:
    """Before init and after the last shutdown there is nothing to ask."""
    client = start(init=False)
    for call in ("nvmlInit()", "nvmlInit()", "nvmlShutdown()", "nvmlDeviceGetCount()"):
        client(call)
    client("nvmlShutdown()")

    assert "NVMLError_Uninitialized" == client.error("nvmlDeviceGetCount()")


@pytest.fixture
def cut(machine: State) -> State:
    """A machine whose A100 is cut into a large and two small instances."""
    machine.cards[CARD].cut("3g.20gb", "1g.5gb", "1g.5gb")
    return machine


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
    """It has a name, ids, processors and memory of its own, and is found from and by its UUID."""
    handle, card = f"instance({CARD}, {number})", cut.cards[CARD]
    attributes = client(f"nvmlDeviceGetAttributes_v2({handle})")
    ids_of = "[nvmlDeviceGetGpuInstanceId({0}), nvmlDeviceGetComputeInstanceId({0})]"
    found = f"nvmlDeviceGetHandleByUUID({card.instances[number].uuid!r})"
    up = f"nvmlDeviceGetDeviceHandleFromMigDeviceHandle({handle})"

    assert f"{card.name} MIG {profile}" == client(f"nvmlDeviceGetName({handle})")
    assert ids == client(ids_of.format(handle)) == client(ids_of.format(found))
    assert memory_mib * MIB == client(f"{MEMORY}({handle}).total")
    assert (processors, memory_mib) == (
        attributes["multiprocessorCount"],
        attributes["memorySizeMB"],
    )
    assert card.uuid == client(f"nvmlDeviceGetUUID({up})")
    assert 1 == client(f"nvmlDeviceIsMigDeviceHandle({handle})")


def test_an_instance_has_processes_of_its_own(client: Client, cut: State) -> None:
    """An entry names the instance that its process is on."""
    cut.processes.put(cut.find(f"{CARD}:1"), os.getpid(), 500 * MIB)
    (process,) = client(f"{COMPUTE}(instance({CARD}, 1))")

    assert (os.getpid(), 500 * MIB, 7, 0) == tuple(process.values())
    assert [] == client(f"{COMPUTE}(instance({CARD}, 2))")
    with pytest.raises(InvalidError, match="is in use"):
        cut.cards[CARD].cut("7g.40gb")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (f"instance({CARD}, 3)", "NotFound"),
        (f"instance({CARD}, 7)", "InvalidArgument"),
        (f"nvmlDeviceGetDeviceHandleFromMigDeviceHandle(card({CARD}))", "InvalidArgument"),
        (f"{COMPUTE}(card({CARD}))", "NoPermission"),
        (f"{MEMORY}(card({CARD}))", "NoPermission"),
        (f"{MEMORY}(card({CARD}), nvmlMemory_v2)", "NoPermission"),
        (f"nvmlDeviceGetUtilizationRates(card({CARD}))", "NotSupported"),
        (f"nvmlDeviceGetUtilizationRates(instance({CARD}, 0))", "NotSupported"),
        (f"nvmlDeviceGetProcessUtilization(card({CARD}), 0)", "NotSupported"),
        (f"nvmlDeviceGetProcessUtilization(instance({CARD}, 0), 0)", "NotSupported"),
    ],
)
def test_what_a_cut_card_does_not_tell(client: Client, cut: State, call: str, error: str) -> None:
    """In MIG mode the whole card is for the privileged, and nothing has a utilization."""
    assert cut.cards[CARD].mig
    assert f"NVMLError_{error}" == client.error(call)


@pytest.mark.parametrize("reuse", [False, True])
def test_a_new_cut_and_old_handles(client: Client, cut: State, *, reuse: bool) -> None:
    """A handle from before a change of the instances is invalid, or means another instance."""
    client(f"held = instance({CARD}, 0)")
    before = client("nvmlDeviceGetUUID(held)")
    cut.cards[CARD].cut("2g.10gb", reuse_handles=reuse)

    if reuse:
        assert 9984 * MIB == client(f"{MEMORY}(held).total")
        assert before != client("nvmlDeviceGetUUID(held)")
    else:
        assert "NVMLError_InvalidArgument" == client.error(f"{MEMORY}(held)")
        assert 9984 * MIB == client(f"{MEMORY}(instance({CARD}, 0)).total")


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[State, list[int]]]:
    """A machine with a whole card, a cut one and three real processes on them."""
    state = State.create(tmp_path_factory.mktemp("foreign") / "cards", "T4,A100-40:3g.20gb+1g.5gb")
    scripts = (("0", "hold 2Gi; busy 63%"), ("0", "hold 1Gi"), ("1:0", "hold 4Gi"))
    command = [sys.executable, "-m", "simulator", "workload", "--state", str(state.path)]
    processes = [
        subprocess.Popen([*command, "--card", card, script], stdout=-1, text=True)
        for card, script in scripts
    ]
    for process in processes:
        assert process.stdout is not None
        while "holding on" not in process.stdout.readline():
            pass
    yield state, [process.pid for process in processes]
    for process in processes:
        process.terminate()
        process.communicate()


def run(state: State, *arguments: str, driver: str = CURRENT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, **environment(state.path, driver), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def test_nvitop_shows_cards_instances_and_processes(busy: tuple[State, list[int]]) -> None:
    """Every card, instance and process has its memory on the screen, without a complaint."""
    state, (first, second, third) = busy
    done = run(state, "nvitop", "-1")

    assert (0, "") == (done.returncode, done.stderr)
    for words in (
        ("0", "Tesla T4", "00000000:04:00.0"),
        ("3072MiB / 15360MiB", "63%"),
        ("1:0", "3g.20gb", "GI/CI: 1/0", "4096MiB / 20096MiB"),
        (str(first), "2048MiB"),
        (str(second), "1024MiB"),
        ("1:0", str(third), "4096MiB"),
    ):
        assert any(all(word in line for word in words) for line in done.stdout.splitlines()), words


def test_nvitop_copes_with_an_older_driver(busy: tuple[State, list[int]]) -> None:
    """With entries of 32 bytes nvitop, which knows about them, still shows the right processes."""
    state, (first, *_) = busy
    lines = run(state, "nvitop", "-1", driver="535.43").stdout.splitlines()

    assert [True] == ["2048MiB" in line for line in lines if f" {first} " in line]


def test_gpustat_agrees(busy: tuple[State, list[int]]) -> None:
    """The cards and processes of gpustat's machine-readable output are the simulated ones."""
    state, (first, second, _) = busy
    card, parted = json.loads(run(state, "gpustat", "--json").stdout)["gpus"]

    assert ("Tesla T4", 15360, 63) == (
        card["name"],
        card["memory.total"],
        card["utilization.gpu"],
    )
    assert {first: 2048, second: 1024} == {
        process["pid"]: process["gpu_memory_usage"] for process in card["processes"]
    }
    assert ("NVIDIA A100-SXM4-40GB", None) == (parted["name"], parted["utilization.gpu"])


def test_the_shell_verbs_work_end_to_end(tmp_path: Path) -> None:
    """What `create` prints is all that a shell needs to start a client."""
    script = (
        f'eval "$({sys.executable} -m simulator nvml create --cards 2xL4 {tmp_path}/cards)" && '
        f"{sys.executable} -m gpustat --json"
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert ["NVIDIA L4"] * 2 == [card["name"] for card in json.loads(done.stdout)["gpus"]]
