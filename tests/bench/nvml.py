"""
What calls through pynvml cost on the simulated cards: `python -m tests.bench.nvml`.

Later figures measure the agent, not the simulator, as long as these stay small.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from simulator.nvml.state import State
from tests.support.driver import Client
from tests.support.observing import eventually
from tests.support.workload import Program

PROCESSES = 25
BEST_OF = 5
REPETITIONS = 2000
CALLS = (
    ("memory info", "nvmlDeviceGetMemoryInfo(h)", 20.0),
    ("memory info, version 2", "nvmlDeviceGetMemoryInfo(h, nvmlMemory_v2)", 20.0),
    ("process list", "nvmlDeviceGetComputeRunningProcesses(h)", 100.0),
    ("empty process list", "nvmlDeviceGetGraphicsRunningProcesses(h)", 20.0),
    ("handle by UUID", "nvmlDeviceGetHandleByUUID(u)", 20.0),
)


@dataclass(frozen=True)
class Figure:
    """One measurement in microseconds beside what it may be."""

    what: str
    microseconds: float
    budget: float

    @property
    def kept(self) -> bool:
        return self.microseconds <= self.budget


def measure() -> list[Figure]:
    """Measure the calls of a tick on a card that real processes share."""
    with tempfile.TemporaryDirectory() as folder:
        state = State.create(Path(folder) / "cards", "8xA100-40")
        script = f"hold 100Mi; fork {PROCESSES - 1}"
        with Program(state.path, script), Client(state.path) as client:
            _wait_for_all(state)
            client("h = card(0)")
            client("u = nvmlDeviceGetUUID(h)")
            client("timeit = __import__('timeit')")
            if len(client("nvmlDeviceGetComputeRunningProcesses(h)")) != PROCESSES:
                raise RuntimeError("not every process is listed")
            return [Figure(what, _best(client, call), budget) for what, call, budget in CALLS]


def _wait_for_all(state: State) -> None:
    if not eventually(lambda: PROCESSES == len(state.cards[0].uses)):
        raise RuntimeError("not every process has started")


def _best(client: Client, call: str) -> float:
    timing = f"timeit.repeat(lambda: {call}, number={REPETITIONS}, repeat={BEST_OF})"
    seconds: list[float] = client(timing)
    return min(seconds) / REPETITIONS * 1_000_000


def main() -> int:
    """Print the figures; a budget that is not kept is the exit code 1."""
    figures = measure()
    print(f"{f'through pynvml, {PROCESSES} processes':44} {'measured':>12} {'budget':>10}")
    for figure in figures:
        late = "" if figure.kept else "  over budget"
        budget = f"< {figure.budget:.0f} us"
        print(f"{figure.what:44} {figure.microseconds:9.1f} us {budget:>10}{late}")
    return 0 if all(figure.kept for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
