"""How NVML fails, in ordinary ways and in rare ones."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simulator.nvml.build import environment
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.support.driver import Client, NoAnswerError

MEMORY = "nvmlDeviceGetMemoryInfo"
COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
HANDLE = "nvmlDeviceGetHandleByIndex"
CLASSES = {
    NvmlCode.UNINITIALIZED: "NVMLError_Uninitialized",
    NvmlCode.NOT_SUPPORTED: "NVMLError_NotSupported",
    NvmlCode.NO_PERMISSION: "NVMLError_NoPermission",
    NvmlCode.DRIVER_NOT_LOADED: "NVMLError_DriverNotLoaded",
    NvmlCode.TIMEOUT: "NVMLError_Timeout",
    NvmlCode.GPU_IS_LOST: "NVMLError_GpuIsLost",
    NvmlCode.RESET_REQUIRED: "NVMLError_ResetRequired",
    NvmlCode.OPERATING_SYSTEM: "NVMLError_OperatingSystem",
    NvmlCode.LIB_RM_VERSION_MISMATCH: "NVMLError_LibRmVersionMismatch",
    NvmlCode.NOT_READY: "NVMLError_NotReady",
    NvmlCode.UNKNOWN: "NVMLError_Unknown",
}
every_code = pytest.mark.parametrize("code", list(CLASSES), ids=lambda code: code.name)


@every_code
@pytest.mark.parametrize("function", [MEMORY, COMPUTE])
def test_each_code_is_an_exception_of_its_own(
    client: Client, machine: State, code: NvmlCode, function: str
) -> None:
    """A code becomes a subclass of NVMLError that carries it."""
    machine.faults.add(Fault.code(code, function))
    answer = client.ask(f"{function}(card(0))")

    assert (CLASSES[code], code) == (answer["error"], answer["code"])


@pytest.mark.parametrize(
    "code",
    [
        NvmlCode.NO_PERMISSION,
        NvmlCode.DRIVER_NOT_LOADED,
        NvmlCode.OPERATING_SYSTEM,
        NvmlCode.LIB_RM_VERSION_MISMATCH,
        NvmlCode.UNKNOWN,
    ],
    ids=lambda code: code.name,
)
def test_init_can_fail(machine: State, start: Callable[..., Client], code: NvmlCode) -> None:
    """Init fails while the fault is there and works once it is gone, in the same process."""
    client = start(init=False)
    machine.faults.add(Fault.code(code, "nvmlInit"))
    failed = client.error("nvmlInit()")
    machine.faults.clear()
    client("nvmlInit()")

    assert CLASSES[code] == failed
    assert 8 == client("nvmlDeviceGetCount()")


def test_a_lost_card_is_still_counted(client: Client, machine: State) -> None:
    """One index fails while the count includes it: whoever stops there misses the rest."""
    machine.faults.add(Fault.code(NvmlCode.GPU_IS_LOST, HANDLE, card=2))

    assert 8 == client("nvmlDeviceGetCount()")
    assert ["NVMLError_GpuIsLost" if i == 2 else "" for i in range(8)] == [
        client.ask(f"{HANDLE}({i})").get("error", "") for i in range(8)
    ]


def test_a_fault_may_begin_late_and_end(client: Client, machine: State) -> None:
    """After 2 calls for 3 times: the others work."""
    machine.faults.add(Fault.code(NvmlCode.UNKNOWN, MEMORY, after=2, times=3))
    answers = ["error" in client.ask(f"{MEMORY}(card(0))") for _ in range(7)]

    assert [False, False, True, True, True, False, False] == answers


def test_the_order_of_indices_may_change(client: Client, machine: State) -> None:
    """After a reboot the indices may be others while the UUIDs stay."""
    uuids = "[nvmlDeviceGetUUID(card(i)) for i in range(8)]"
    before = client(uuids)
    machine.reorder([7, 6, 5, 4, 3, 2, 1, 0])

    assert before[::-1] == client(uuids)
    assert 7 == client(f"nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID({before[0]!r}))")


def test_a_driver_upgrade_needs_a_new_process(
    client: Client, machine: State, start: Callable[..., Client]
) -> None:
    """Who loaded the old library sees a mismatch for ever; a new process sees the new driver."""
    del client
    old = start()
    machine.upgrade_driver("590.44.01")
    failed = old.error(f"{MEMORY}(card(0))" if old.error("card(0)") else "")
    old.ask("nvmlShutdown()")
    again = old.error("nvmlInit()")

    assert "NVMLError_LibRmVersionMismatch" == failed == again
    assert "590.44.01" == start()("nvmlSystemGetDriverVersion()")


def test_calls_outside_init_are_uninitialized(start: Callable[..., Client]) -> None:
    """Before init and after the last shutdown there is nothing to ask."""
    client = start(init=False)
    client("nvmlInit()")
    client("nvmlInit()")
    client("nvmlShutdown()")
    client("nvmlDeviceGetCount()")
    client("nvmlShutdown()")

    assert "NVMLError_Uninitialized" == client.error("nvmlDeviceGetCount()")


def test_init_and_shutdown_are_counted(machine: State, start: Callable[..., Client]) -> None:
    """A machine knows how often it was opened: a client that opens it per sample is found out."""
    client = start()
    for _ in range(3):
        client("nvmlDeviceGetCount()")
    client("nvmlShutdown()")

    assert (1, 1) == (machine.calls("nvmlInit"), machine.calls("nvmlShutdown"))
    assert 3 == machine.calls("nvmlDeviceGetCount")


@pytest.mark.parametrize("number", [8, 4_000_000_000])
def test_an_index_that_is_not_there(client: Client, number: int) -> None:
    """An index beyond the count is an invalid argument."""
    assert "NVMLError_InvalidArgument" == client.error(f"{HANDLE}({number})")


@pytest.mark.parametrize(
    "lookup", ["nvmlDeviceGetHandleByUUID('GPU-0')", "nvmlDeviceGetHandleByPciBusId('0:ff:0.0')"]
)
def test_a_card_that_is_not_there(client: Client, lookup: str) -> None:
    """A UUID or bus id that no card has is not found."""
    assert "NVMLError_NotFound" == client.error(lookup)


def test_a_handle_that_was_never_given_out(client: Client) -> None:
    """A made-up or empty handle is refused instead of followed."""
    made_up = "cast(ctypes.c_void_p(0x1234), c_nvmlDevice_t)"

    assert "NVMLError_InvalidArgument" == client.error(f"{MEMORY}({made_up})")
    assert "NVMLError_InvalidArgument" == client.error(f"{MEMORY}(None)")


@pytest.mark.parametrize(
    "call",
    [
        "nvmlDeviceGetName(card(0))",
        "nvmlDeviceGetUUID(card(0))",
        "nvmlDeviceGetSerial(card(0))",
        "nvmlSystemGetDriverVersion()",
    ],
)
def test_bad_bytes_in_a_text_raise(client: Client, machine: State, call: str) -> None:
    """Strings are decoded strictly, so that broken ones are a UnicodeDecodeError."""
    machine.faults.add(Fault(FaultAction.GARBLE))

    assert "UnicodeDecodeError" == client.error(call)


def test_without_a_state_file_there_is_no_driver(start: Callable[..., Client]) -> None:
    """A machine that is not there is a driver that is not loaded, with a word on what to do."""
    client = start(init=False)
    client("environ = __import__('os').environ")
    client("environ['GPUFENCE_SIMULATOR_STATE'] = '/nonexistent'")
    failed = client.error("nvmlInit()")
    client.close_input()

    assert "NVMLError_DriverNotLoaded" == failed
    assert "remedy: python -m simulator nvml create" in client.complaints()


SECONDS = 30


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


def run(state: State, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, **environment(state.path), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def test_nvitop_shows_cards_instances_and_processes(busy: tuple[State, list[int]]) -> None:
    """
    A screen of nvitop has every card, instance and process with its memory, without a complaint.
    """
    state, (first, second, third) = busy
    done = run(state, "nvitop", "-1")
    lines = done.stdout.splitlines()

    def line_with(*words: str) -> str:
        found = [line for line in lines if all(word in line for word in words)]
        return found[0] if found else ""

    assert (0, "") == (done.returncode, done.stderr)
    assert line_with("0", "Tesla T4", "00000000:04:00.0")
    assert line_with("3072MiB / 15360MiB", "63%")
    assert line_with("1:0", "3g.20gb", "GI/CI: 1/0", "4096MiB / 20096MiB")
    assert line_with(str(first), "2048MiB")
    assert line_with(str(second), "1024MiB")
    assert line_with("1:0", str(third), "4096MiB")


def test_gpustat_agrees(busy: tuple[State, list[int]]) -> None:
    """The cards and processes of gpustat's machine-readable output are the simulated ones."""
    state, (first, second, _) = busy
    done = run(state, "gpustat", "--json")
    card, cut = json.loads(done.stdout)["gpus"]

    assert ("Tesla T4", 15360, 63) == (
        card["name"],
        card["memory.total"],
        card["utilization.gpu"],
    )
    assert {first: 2048, second: 1024} == {
        process["pid"]: process["gpu_memory_usage"] for process in card["processes"]
    }
    assert ("NVIDIA A100-SXM4-40GB", None) == (cut["name"], cut["utilization.gpu"])


def test_nvitop_copes_with_an_older_driver(busy: tuple[State, list[int]]) -> None:
    """With entries of 32 bytes nvitop, which knows about them, still shows the right processes."""
    state, (first, *_) = busy
    done = subprocess.run(
        [sys.executable, "-m", "nvitop", "-1"],
        env={**os.environ, **environment(state.path, "535.43")},
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )

    assert [True] == [
        "2048MiB" in line for line in done.stdout.splitlines() if f" {first} " in line
    ]


def test_the_shell_verbs_work_end_to_end(tmp_path: Path) -> None:
    """What `create` prints is all that a shell needs to start a client."""
    script = (
        f'eval "$({sys.executable} -m simulator nvml create --cards 2xL4 {tmp_path}/cards)" && '
        f"{sys.executable} -m gpustat --json"
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert ["NVIDIA L4"] * 2 == [card["name"] for card in json.loads(done.stdout)["gpus"]]


LIST = "nvmlDeviceGetComputeRunningProcesses"


def seconds_for(client: Client, expression: str) -> float:
    begin = time.monotonic()
    client(expression)
    return time.monotonic() - begin


def test_a_call_may_be_slow(client: Client, machine: State) -> None:
    """A delay slows its function down and no other."""
    machine.faults.add(Fault.delay(0.2, LIST))

    assert seconds_for(client, f"{LIST}(card(0))") >= 0.2
    assert min(seconds_for(client, f"{MEMORY}(card(0))") for _ in range(10)) < 0.2


def test_a_call_may_never_return(machine: State, start: Callable[..., Client]) -> None:
    """A hanging call answers nothing and is deaf to SIGTERM; only SIGKILL ends the process."""
    client = start()
    machine.faults.add(Fault(FaultAction.HANG, MEMORY, card=1))
    client(f"{MEMORY}(card(0))")
    client.send(f"{MEMORY}(card(1))")
    with pytest.raises(NoAnswerError):
        client.receive(0.3)
    client.process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        client.process.wait(0.3)
    client.process.kill()

    assert -signal.SIGKILL == client.process.wait(30)


def test_a_hanging_call_leaves_other_threads_alone(
    machine: State, start: Callable[..., Client]
) -> None:
    """While one thread hangs in NVML another one can still ask it: calls are not serialised."""
    client = start()
    machine.faults.add(Fault(FaultAction.HANG, MEMORY))
    client("threading = __import__('threading')")
    client("ask = lambda: nvmlDeviceGetMemoryInfo(card(0))")
    client("threading.Thread(target=ask, daemon=True).start()")

    assert [] == client(f"{LIST}(card(0))")
    client.process.kill()


def test_a_call_may_crash_the_process(machine: State, start: Callable[..., Client]) -> None:
    """A driver bug inside a call ends the process by SIGSEGV."""
    client = start()
    machine.faults.add(Fault(FaultAction.CRASH, LIST, after=1))
    client.send(f"{LIST}(card(0))")
    client.receive()
    client.send(f"{LIST}(card(0))")
    with pytest.raises(NoAnswerError):
        client.receive()

    assert -signal.SIGSEGV == client.process.wait(30)
