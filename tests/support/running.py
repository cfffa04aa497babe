"""How tests run: what the machine must have, how many examples, and what may be left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final, Self

import pytest
from hypothesis import HealthCheck, settings

from simulator import debian
from simulator.wheels import launch
from simulator.wheels.install import WheelsError
from tests.support.observing import eventually
from tools import ROOT

NEEDS: Final = "needs"
NOT_TRIED: Final = pytest.StashKey[dict[str, int]]()
_INSIDE: Final = ("--pid", "--fork", "--mount-proc", "--kill-child")
_PID_NAMESPACES: Final = (("unshare", "--user", "--map-root-user", *_INSIDE), ("unshare", *_INSIDE))

_NAMESPACES: Final = "let users make namespaces, or be root"


@cache
def program(name: str) -> Path:
    """Return where a program of Debian is, or a path at which there is nothing."""
    for packaged in debian.PACKAGES:
        if found := debian.find(packaged, os.environ).get(name):
            return found
    return Path("/nonexistent") / name


@cache
def pid_namespace() -> tuple[str, ...]:
    """Return what starts a command in a PID namespace of its own; empty where nothing does."""
    for prefix in _PID_NAMESPACES:
        done = subprocess.run([*prefix, "true"], capture_output=True, check=False)
        if done.returncode == 0:
            return prefix
    return ()


def _debians(name: str) -> bool:
    return program(name).is_file()


def _on_path(name: str) -> bool:
    return shutil.which(name) is not None


def _mounts() -> bool:
    try:
        launch.namespace()
    except WheelsError:
        return False
    return True


def _has_history() -> bool:
    command = ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() == "false"


REMEDIES: Final[Mapping[str, tuple[Callable[[], bool], str]]] = {
    "chromium": (partial(_debians, "chromium"), "python -m simulator build chromium"),
    "prometheus": (partial(_debians, "prometheus"), "python -m simulator build prometheus"),
    "promtool": (partial(_debians, "promtool"), "python -m simulator build prometheus"),
    "apt-get": (partial(_on_path, "apt-get"), "run it on Debian"),
    "bash": (partial(_on_path, "bash"), "install bash"),
    "older commits": (_has_history, "run it in a whole clone: git fetch --unshallow"),
    "PID namespaces": (lambda: bool(pid_namespace()), _NAMESPACES),
    "mount namespaces": (_mounts, _NAMESPACES),
}
"""What tests may need: how it is found, and what a person can do."""


@cache
def is_there(need: str) -> bool:
    found, _ = REMEDIES[need]
    return found()


def lacking(item: pytest.Item) -> list[str]:
    """Return what a test needs and this machine has not."""
    asked = [need for marker in item.iter_markers(NEEDS) for need in marker.args]
    return [need for need in asked if not is_there(need)]


def try_what_can_be(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the tests that this machine lacks something for, and keep how many those are."""
    counts: dict[str, int] = {}
    impossible = {item: needs for item in items if (needs := lacking(item))}
    for needs in impossible.values():
        for need in needs:
            counts[need] = counts.get(need, 0) + 1
    config.hook.pytest_deselected(items=list(impossible))
    items[:] = [item for item in items if item not in impossible]
    config.stash[NOT_TRIED] = counts
    if isinstance(told := getattr(config, "workeroutput", None), dict):
        told[NEEDS] = counts


def hear_of_worker(config: pytest.Config, told: Mapping[str, dict[str, int]]) -> None:
    """Take over what a worker counted; each of them collects all tests."""
    config.stash[NOT_TRIED] = told.get(NEEDS, {})


def sentences(counts: Mapping[str, int]) -> list[str]:
    """Say what was not tried, one line for each need, and what to do about it."""
    return [
        f"not tried: {number} {'test' if number == 1 else 'tests'} for want of {need};"
        f" {REMEDIES[need][1]}"
        for need, number in sorted(counts.items())
    ]


_ANSWERING: Final = "process_request_thread"
"""The name of a thread that serves one connection, whose client may be of a wider scope."""
_GUARDED: Final = "controlplane/warden.py"
"""What commands say of programs that end with a control plane or node, which outlive a test."""
_TASKS: Final = Path("/proc/self/task")


@dataclass(frozen=True)
class Running:
    """What runs at one moment beside the test's own thread."""

    threads: frozenset[threading.Thread]
    children: frozenset[int]

    @classmethod
    def now(cls) -> Self:
        threads = (each for each in threading.enumerate() if _ANSWERING not in each.name)
        return cls(frozenset(threads), _children())

    def left(self) -> list[str]:
        """Name what runs now and did not run then."""
        now = Running.now()
        return [
            *(f"thread {thread.name}" for thread in now.threads - self.threads),
            *(f"process {pid}: {command[:200]}" for pid, command in self._new(now)),
        ]

    def left_for_good(self) -> list[str]:
        """Name what does not end by itself within a minute, which a busy machine may take."""
        found: list[str] = []

        def nothing_is() -> bool:
            found[:] = self.left()
            return not found

        eventually(nothing_is)
        return found

    def _new(self, now: Running) -> Iterator[tuple[int, str]]:
        for pid in now.children - self.children:
            command = _command(pid)
            if _GUARDED not in command:
                yield pid, command


def _children() -> frozenset[int]:
    found: set[int] = set()
    for task in _TASKS.iterdir():
        with suppress(OSError):  # the thread has ended
            found.update(map(int, (task / "children").read_bytes().split()))
    return frozenset(found)


def _command(pid: int) -> str:
    with suppress(OSError):
        said = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        if said:
            return said
    return "has ended, and nobody has waited for it"


USUAL: Final = 40
_TIMES: Final = float(os.environ.get("GPUFENCE_EXAMPLES_TIMES", "0.3"))


def examples(count: int = USUAL) -> settings:
    """
    Of a long search make test takes three examples of ten, make soak twenty times as many.

    On a busy machine neither an example nor drawing it has a time: the health check for slow
    drawing goes by the clock.
    """
    most = max(round(count * _TIMES), min(count, USUAL))
    return settings(max_examples=most, deadline=None, suppress_health_check=[HealthCheck.too_slow])
