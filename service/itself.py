"""
What a program says of itself on its page of metrics: its version, and what it takes of its machine
by the names that every dashboard of processes knows.
"""

from __future__ import annotations

import os
import platform
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from service.command import version
from service.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Iterator

_SELF: Final = Path("/proc/self")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM, _STARTED, _SIZE, _PAGES = 11, 12, 19, 20, 21
"""Fields of /proc/self/stat behind the name."""


class Itself:
    """The process that runs, called `program`; children that measure are not part of it."""

    def __init__(self, program: str) -> None:
        self._info = {
            "program": program,
            "version": version(),
            "python": platform.python_version(),
        }
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        # Once: of a clock that is set meanwhile a process has not started anew.
        self._started = round(booted + _stat()[_STARTED] / _TICKS, 2)

    def families(self) -> Iterator[Family]:
        yield _gauge(
            "gpufence_build_info",
            "Always 1: the program, its version and Python's",
            1.0,
            self._info,
        )
        stat = _stat()
        cpu = (stat[_USER] + stat[_SYSTEM]) / _TICKS
        text = "Total user and system CPU time spent in seconds"
        yield Family("process_cpu_seconds_total", "counter", text, (({}, cpu),))
        size = stat[_SIZE]
        yield _gauge("process_virtual_memory_bytes", "Virtual memory size in bytes", size)
        resident = stat[_PAGES] * resource.getpagesize()
        yield _gauge("process_resident_memory_bytes", "Resident memory size in bytes", resident)
        text = "Start time of the process since the Unix epoch in seconds"
        yield _gauge("process_start_time_seconds", text, self._started)
        # One of them is the folder that is read.
        opened = len(list((_SELF / "fd").iterdir())) - 1
        yield _gauge("process_open_fds", "Number of open file descriptors", opened)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        yield _gauge("process_max_fds", "Maximum number of open file descriptors", most)


def _gauge(name: str, text: str, value: float, labels: dict[str, str] | None = None) -> Family:
    return Family(name, "gauge", text, ((labels or {}, value),))


def _stat() -> list[int]:
    """Return the numbers behind the name, which may hold blanks and brackets; the first is none."""
    fields = (_SELF / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return [0, *map(int, fields[1:])]
