"""
A machine of two cards for each test, a client of NVML who looks at it, and programs of the driver.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simulator.nvml.state import State
from tests.support.driver import Client, CudaProgram

CARDS = "2xA100-40"


@pytest.fixture(scope="module")
def state_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this module's machines stand, one after the other."""
    return tmp_path_factory.mktemp("cuda") / "cards"


@pytest.fixture
def machine(state_path: Path) -> State:
    return State.create(state_path, CARDS)


@pytest.fixture(scope="module")
def looker(state_path: Path) -> Iterator[Client]:
    State.create(state_path, CARDS)
    with Client(state_path) as client:
        yield client


class Watched:
    """What pynvml shows of a card."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def pids(self, card: int = 0) -> dict[int, int]:
        """The memory in MiB that each PID holds."""
        found = self._client(f"nvmlDeviceGetComputeRunningProcesses(card({card}))")
        return {one["pid"]: one["usedGpuMemory"] >> 20 for one in found}

    def used(self, card: int = 0) -> int:
        return int(self._client(f"nvmlDeviceGetMemoryInfo(card({card}), nvmlMemory_v2).used")) >> 20


@pytest.fixture
def nvml(machine: State, looker: Client) -> Watched:
    del machine
    return Watched(looker)


@pytest.fixture
def start(machine: State) -> Iterator[Callable[..., CudaProgram]]:
    programs: list[CudaProgram] = []

    def start_program(**options: object) -> CudaProgram:
        programs.append(CudaProgram(machine.path, **options))  # type: ignore[arg-type]  # passed on as they come
        return programs[-1]

    yield start_program
    for one in programs:
        one.close()


@pytest.fixture
def program(start: Callable[..., CudaProgram]) -> CudaProgram:
    return start()
