"""
What measuring the cards costs, parent and child together: `python -m tests.bench.agent_nvml`.

8 cards with 25 processes each on the simulated library, whose own calls are in these figures; the
real one's depend on the driver.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.nvml.child import Child
from agent.nvml.sampler import Sampler
from agent.nvml.settings import SamplerSettings
from gpufence.names import SIMULATOR_STATE
from simulator.nvml.build import library_path
from simulator.nvml.state import State

CARDS, PROCESSES = 8, 25
SAMPLES = 300
MIB = 2**20
WALL_MILLISECONDS = 50.0
SAMPLE_MILLISECONDS = 5.0
"""Half of the whole tick's budget: the rest is for owners, judging, events and metrics."""

CHILD_MEBIBYTES = 30.0


@dataclass(frozen=True)
class Figure:
    """One measurement beside what it may be."""

    what: str
    measured: float
    budget: float
    unit: str

    @property
    def kept(self) -> bool:
        return self.measured <= self.budget


def measure() -> Iterator[Figure]:
    """Measure samples without lists, samples with all lists, and the child's memory."""
    with tempfile.TemporaryDirectory() as folder:
        state = _machine(Path(folder) / "cards")
        children: list[Child] = []

        def start(settings: SamplerSettings) -> Child:
            children.append(Child(settings))
            return children[-1]

        settings = SamplerSettings(
            list_seconds=1e6,
            library_path=library_path(),
            environment={**os.environ, SIMULATOR_STATE: str(state.path)},
        )
        sampler = Sampler(settings, start=start)
        first = sampler.sample(frozenset())
        everybody = frozenset(card.card.uuid for card in first.cards)
        if CARDS * PROCESSES != sum(
            len(card.processes.processes) for card in first.cards if card.processes
        ):
            raise RuntimeError(f"not every process is listed: {first}")
        (child,) = children
        for what, suspects in (("memory only", frozenset()), ("with all lists", everybody)):
            parent_ms, child_ms, wall_ms = _cost(sampler, child.pid, suspects)
            total = parent_ms + child_ms
            yield Figure(f"{what}, CPU of both", total, SAMPLE_MILLISECONDS, "ms")
            yield Figure(f"{what}, CPU of the parent", parent_ms, SAMPLE_MILLISECONDS, "ms")
            yield Figure(f"{what}, from call to answer", wall_ms, WALL_MILLISECONDS, "ms")
        yield Figure("memory of the child", _resident(child.pid), CHILD_MEBIBYTES, "MiB")
        sampler.close()


def _machine(path: Path) -> State:
    state = State.create(path, f"{CARDS}xA100-40")
    for index in range(CARDS):
        for number in range(PROCESSES):
            pid = 1_000_000 + index * PROCESSES + number
            state.processes.put(state.find(str(index)), pid, 100 * MIB, kept=True)
    return state


def _cost(sampler: Sampler, child: int, suspects: frozenset[str]) -> tuple[float, float, float]:
    """Return a sample's milliseconds of CPU here and in the child, and by the clock."""
    before = time.process_time(), _cpu_seconds(child), time.monotonic()
    for _ in range(SAMPLES):
        sampler.sample(suspects)
    after = time.process_time(), _cpu_seconds(child), time.monotonic()
    parent, own, wall = ((b - a) / SAMPLES * 1000 for a, b in zip(before, after, strict=True))
    return parent, own, wall


def _cpu_seconds(pid: int) -> float:
    nanoseconds = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]
    return int(nanoseconds) / 1e9


def _resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if "VmRSS" in line)


def main() -> int:
    """Print the figures; a budget that is not kept is the exit code 1."""
    print(f"{f'{CARDS} cards x {PROCESSES} processes':44} {'measured':>12} {'budget':>12}")
    late = 0
    for figure in measure():
        kept = "" if figure.kept else "  over budget"
        late += not figure.kept
        shown = f"{figure.measured:.2f} {figure.unit}", f"{figure.budget:.0f} {figure.unit}"
        print(f"{figure.what:44} {shown[0]:>12} {shown[1]:>12}{kept}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
