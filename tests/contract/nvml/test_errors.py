"""Errors per function, card and call, and what pynvml makes of them."""

from collections.abc import Callable

import pytest

from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.support.nvml_client import Client

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
