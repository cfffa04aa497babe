"""Older and odder drivers: missing symbols and other widths, and what pynvml makes of them."""

from collections.abc import Callable
from typing import Any

import pytest

from gpufence.quantity import MIB
from simulator.nvml.build import VARIANTS
from simulator.nvml.state import State
from tests.support.nvml_client import Client

COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
DETAIL = "nvmlDeviceGetRunningProcessDetailList"
PROTECTED = "nvmlDeviceGetConfComputeMemSizeInfo"
MEMORY_V2 = "nvmlDeviceGetMemoryInfo_v2"
EXPORTS = {
    "current": {f"{COMPUTE}_v3", f"{COMPUTE}_v2", DETAIL, PROTECTED, MEMORY_V2},
    "535.98": {f"{COMPUTE}_v2", PROTECTED, MEMORY_V2},
    "535.43": {f"{COMPUTE}_v3", f"{COMPUTE}_v2", PROTECTED, MEMORY_V2},
    "525": {f"{COMPUTE}_v3", f"{COMPUTE}_v2", MEMORY_V2},
    "450": set[str](),
    "16-byte": {f"{COMPUTE}_v3", f"{COMPUTE}_v2", DETAIL, PROTECTED, MEMORY_V2},
}
PIDS = (1000, 2000, 3000)


@pytest.fixture
def start_with_three(machine: State, start: Callable[..., Client]) -> Callable[[str], Client]:
    """Starts a client of a variant that has three processes of 1, 2 and 3 MiB to list."""
    for number, pid in enumerate(PIDS, start=1):
        machine.processes.put(machine.find("0"), pid, number * MIB, kept=True)
    return start


def pids(processes: list[dict[str, Any]]) -> list[int]:
    return [process["pid"] for process in processes]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_variant_exports_what_its_driver_does(start: Callable[..., Client], variant: Any) -> None:
    """Each variant has the symbols of its driver, and its version."""
    client = start(variant.name)
    found = {
        name
        for name in EXPORTS["current"]
        if "error" not in client.ask(f"function({name!r}) and None")
    }

    assert EXPORTS[variant.name] == found
    assert variant.driver == client("nvmlSystemGetDriverVersion()")


@pytest.mark.parametrize("variant", ["current", "525"])
def test_lists_of_24_bytes_are_read_right(
    start_with_three: Callable[[str], Client], variant: str
) -> None:
    """With the layout that pynvml expects, everything is right."""
    client = start_with_three(variant)

    assert list(PIDS) == pids(client(f"{COMPUTE}(card(0))"))
    assert [3, 3 * 24] == client(f"touched('{COMPUTE}_v3', card(0), 5)")


@pytest.mark.parametrize("variant", ["535.98", "450"])
def test_a_missing_list_is_no_nvml_error(
    start_with_three: Callable[[str], Client], variant: str
) -> None:
    """Without version 3 the unversioned functions raise a mismatch that is no NVMLError at all."""
    client = start_with_three(variant)

    assert "NVMLLibraryMismatchError" == client.error(f"{COMPUTE}(card(0))")
    assert False is client("issubclass(NVMLLibraryMismatchError, NVMLError)")
    assert "NVMLError_FunctionNotFound" == client.error(f"{COMPUTE}_v3(card(0))")


def test_the_second_version_helps_where_the_third_is_missing(
    start_with_three: Callable[[str], Client],
) -> None:
    """Driver 535.98 answers version 2."""
    client = start_with_three("535.98")

    assert list(PIDS) == pids(client(f"{COMPUTE}_v2(card(0))"))


def test_the_oldest_driver_has_no_list_that_pynvml_knows(
    start_with_three: Callable[[str], Client],
) -> None:
    """Driver 450 only has the unversioned symbols, which pynvml does not wrap."""
    client = start_with_three("450")

    assert "NVMLError_FunctionNotFound" == client.error(f"{COMPUTE}_v2(card(0))")
    assert [3, 3 * 16] == client(f"touched('{COMPUTE}', card(0), 5)")


def test_a_missing_memory_info_is_a_function_not_found(
    start_with_three: Callable[[str], Client],
) -> None:
    """The oldest driver has only the first memory info."""
    client = start_with_three("450")

    assert "NVMLError_FunctionNotFound" == client.error(
        "nvmlDeviceGetMemoryInfo(card(0), nvmlMemory_v2)"
    )
    assert 15360 * MIB == client("nvmlDeviceGetMemoryInfo(card(0)).total")


def test_entries_of_32_bytes_are_read_as_nonsense(
    start_with_three: Callable[[str], Client],
) -> None:
    """Drivers 535.43 to 535.86 write 32 bytes an entry; read as 24, only the first PID is right."""
    client = start_with_three("535.43")

    assert [1000, 0, 0xFFFFFFFF] == pids(client(f"{COMPUTE}(card(0))"))
    assert [3, 3 * 32] == client(f"touched('{COMPUTE}_v3', card(0), 5)")


def test_entries_of_16_bytes_are_read_as_nonsense(
    start_with_three: Callable[[str], Client],
) -> None:
    """A library that writes 16 bytes an entry gives bytes for PIDs and nothing for the last."""
    client = start_with_three("16-byte")

    assert [1000, 2 * MIB, 0] == pids(client(f"{COMPUTE}(card(0))"))
    assert [3, 3 * 16] == client(f"touched('{COMPUTE}_v3', card(0), 5)")
