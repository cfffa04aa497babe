"""
What tests need of the machine, and what is said where it is not there.

`@pytest.mark.needs("chromium")`: such a test is not collected where there is none, and the run ends
with a line `not tried: ...`, which CI takes for a failure.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Final

import pytest

from simulator import debian
from simulator.wheels import launch
from simulator.wheels.install import WheelsError

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
    """
    Return what starts a command in a PID namespace of its own, as root or as anybody; empty where
    nothing does.
    """
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


REMEDIES: Final[Mapping[str, tuple[Callable[[], bool], str]]] = {
    "chromium": (partial(_debians, "chromium"), "python -m simulator build chromium"),
    "prometheus": (partial(_debians, "prometheus"), "python -m simulator build prometheus"),
    "promtool": (partial(_debians, "promtool"), "python -m simulator build prometheus"),
    "apt-get": (partial(_on_path, "apt-get"), "run it on Debian"),
    "bash": (partial(_on_path, "bash"), "install bash"),
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
