"""Look at processes and wait for what must become true."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

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
