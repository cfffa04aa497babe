"""Look at processes and wait for what must become true; tell how much is done beside a test."""

import gc
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from socketserver import BaseServer
from types import FrameType
from typing import Self, TypeVar

PATIENCE_SECONDS = 60.0
MEASURING = "agent.nvml"  # the agent's child that speaks with the driver
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.1
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def wait_until(
    condition: Callable[[], object], what: object = "", seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until the condition holds, and say what did not become so."""
    assert eventually(condition, seconds), what or "it never became so"


def eventually(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> bool:
    """
    Wait, within bounds, until the condition holds; return whether it did.

    Many a condition starts a program, so it is looked at less often the longer it takes.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    return True


def processes_naming(text: str) -> set[int]:
    """Find the living processes whose command line contains the text, ourselves left out."""
    return {pid for pid in _everybody() if pid != os.getpid() and text in _command(pid)}


def children_naming(parent: int, text: str) -> list[int]:
    """Find the children of a process whose command line contains the text."""
    return [pid for pid in _everybody() if _parent(pid) == parent and text in _command(pid)]


def memory_of(pid: int) -> int:
    """Return what a process holds, in bytes; nothing once it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def memory_mib(process_id: int) -> tuple[float, float]:
    """Return what a process holds and what it held at most."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    held, peak = (status.split(f"{key}:")[1].split()[0] for key in ("VmRSS", "VmHWM"))
    return int(held) / 1024, int(peak) / 1024


def cpu_seconds(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def _everybody() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


_SHUTDOWN_SECONDS = 0.01


class Beside(ABC):
    """Runs while its block does; `over` is set at the block's end, and every thread waited for."""

    def __init__(self, threads: int = 1) -> None:
        self.over = threading.Event()
        self._threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    @abstractmethod
    def run(self) -> None:
        """Go on until it is over."""


class Serving(Beside):
    """Serves beside the test; handlers that hang on purpose wait for `over`."""

    def __init__(self, server: BaseServer) -> None:
        super().__init__()
        self._serving = server

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._serving.shutdown()
        super().__exit__()
        self._serving.server_close()

    def run(self) -> None:
        self._serving.serve_forever(_SHUTDOWN_SECONDS)


Given = TypeVar("Given")

YARDSTICK_SECONDS = 0.00083
"""
What `_yardstick` takes where nothing else runs: the least of 12,000, Python 3.11,
AMD EPYC (Zen 5) at 2.6 GHz. The lowest thousandth of them lay within a hundredth of it.
"""

_STEPS = 8000
_ROUNDS = 12
_LOOKS = 3  # behind each round's call
_FASTEST = 10  # no machine is as many times as fast as that of the yardstick


def quiet_seconds(
    call: Callable[[Given], object],
    given: Callable[[], Given],
    *,
    enough: float = 0.0,
    rounds: int = _ROUNDS,
) -> float:
    """
    Return the least that a call takes the processor, as on the quiet machine of the yardstick.

    Each round hands it something made anew; no other begins once less than `enough` was taken,
    which on any machine is so if here it was a tenth of it.
    """
    least = yardstick = float("inf")
    for _ in range(rounds):
        least = min(least, _seconds(call, given()))
        if least * _FASTEST < enough:
            return least * _FASTEST
        yardstick = min(yardstick, *(_seconds(_yardstick, _STEPS) for _ in range(_LOOKS)))
        if least / yardstick * YARDSTICK_SECONDS < enough:
            break
    return least / yardstick * YARDSTICK_SECONDS


def _yardstick(steps: int) -> None:
    """Do what an interpreter does most: call, look up, and make short texts."""
    seen: dict[str, int] = {}
    for number in range(steps):
        key = f"k{number % 512}"
        seen[key] = seen.get(key, 0) + len(key)


@cache
def _is_frozen() -> bool:
    """Tell, once, whether all tests of a run were set apart: it is counted one by one."""
    return gc.get_freeze_count() > 0


def _seconds(call: Callable[[Given], object], value: Given) -> float:
    """Return what one call takes of the processor in this thread, and nothing of a tracer's."""
    trace, profile = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    sys.setprofile(None)
    if not _is_frozen():
        gc.freeze()  # what is there already is no garbage of the call's
    try:
        began = time.thread_time()
        call(value)
        return time.thread_time() - began
    finally:
        if not _is_frozen():
            gc.unfreeze()
        sys.setprofile(profile)
        sys.settrace(trace)


def calls(do: Callable[[], object]) -> int:
    """Return how many functions were called."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        do()
    finally:
        sys.setprofile(before)
    return count


@dataclass(frozen=True)
class Figure:
    """One measurement; `budget` is empty where the figure only informs."""

    what: str
    value: float
    unit: str
    budget: str = ""
    kept: bool = True

    @property
    def text(self) -> str:
        decimals = 0 if self.value >= 100 else 2 if self.value < 10 else 1
        return f"{self.value:,.{decimals}f} {self.unit}".rstrip()


def at_most(what: str, value: float, unit: str, budget: float) -> Figure:
    return Figure(what, value, unit, f"< {budget:g} {unit}".rstrip(), value < budget)


def at_least(what: str, value: float, unit: str, budget: float) -> Figure:
    return Figure(what, value, unit, f">= {budget:g} {unit}".rstrip(), value >= budget)


def as_text(figures: Sequence[Figure]) -> str:
    """Write a table for the terminal."""
    lines = [f"{'what':58} {'measured':>14} {'budget':>12}"]
    for figure in figures:
        late = "" if figure.kept else "  over budget"
        lines.append(f"{figure.what:58} {figure.text:>14} {figure.budget:>12}{late}")
    return "\n".join(lines)


def as_markdown(figures: Sequence[Figure]) -> str:
    """Write the same table for docs/benchmarks.md."""
    rows = [f"| {figure.what} | {figure.text} | {figure.budget} |" for figure in figures]
    return "\n".join(["| what | measured | budget |", "|---|---:|---:|", *rows])


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
