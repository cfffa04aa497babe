"""
PURE. What NVIDIA's container toolkit makes of a container's variables before the container starts.

Its hook `apply-cuda-memory-limits` of 1.20.1, rule by rule and in its words; a test lets the
unmodified hook agree (docs/simulator.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gpufence.names import DRIVER_LIMIT, DRIVER_REQUEST
from gpufence.quantity import MIB
from simulator.node.errors import HookError

if TYPE_CHECKING:
    from collections.abc import Iterable

HOOK = "/usr/local/nvidia/toolkit/nvidia-cdi-hook"
NO_LIMIT = 2**64 - 1
MOST_MIB = NO_LIMIT // MIB
_DIGITS = re.compile(r"[0-9]+")


class Toolkit(StrEnum):
    """The toolkit of a node: one with the hook, or any of those that leave the variables alone."""

    CURRENT = "1.20.1"
    OLDER = "older"
    LEGACY = "legacy"
    NONE = "none"

    @property
    def has_hook(self) -> bool:
        return self is Toolkit.CURRENT


@dataclass(frozen=True, slots=True)
class Wanted:
    """The limits that the hook sets on a container's own group, for each of its cards, in bytes."""

    soft: int
    hard: int


def wanted_limits(variables: Iterable[str], *, cgroup_v2: bool = True) -> Wanted | None:
    """
    Read the list of variables of an OCI spec; None where there is nothing to set.

    Raises HookError where the hook fails and, with it, the start of the container.
    """
    pairs = [entry.partition("=") for entry in variables]
    said = {name: value for name, _, value in reversed(pairs)}  # the first of a name counts
    request, limit = said.get(DRIVER_REQUEST), said.get(DRIVER_LIMIT)
    if request is None and limit is None:
        return None
    if not cgroup_v2:
        raise HookError("setting GPU memory limits is only supported in cgroup v2")
    soft = None if request is None else _mebibytes(DRIVER_REQUEST, request)
    hard = NO_LIMIT if limit is None else _mebibytes(DRIVER_LIMIT, limit)
    soft = hard if soft is None else soft
    if soft > hard:
        raise HookError(
            f"memory request ({soft // MIB} MiB) exceeds memory limit ({hard // MIB} MiB)"
        )
    return Wanted(soft, hard)


def failure_text(error: HookError) -> str:
    """Say what runc, through containerd, says of a hook that has failed."""
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed:"
        " runc create failed: unable to start container process: error during container init:"
        f" error running createRuntime hook #0: exit status {error.code}, stdout: , stderr:"
        f" {_stderr(error)}\n: unknown"
    )


def _stderr(error: HookError) -> str:
    if error.code != 1:
        return f"{HOOK}: {error}"
    quoted = str(error).replace('"', '\\"')
    return f'time="2026-11-20T00:00:00Z" level=error msg="{quoted}"'


def _mebibytes(name: str, text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise HookError(
            f'failed to parse {name}: strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    amount = int(text)
    if amount > NO_LIMIT:
        raise HookError(
            f'failed to parse {name}: strconv.ParseUint: parsing "{text}": value out of range'
        )
    if amount > MOST_MIB:
        raise HookError(
            f"failed to parse {name}: {amount} MiB exceeds the maximum supported value of"
            f" {MOST_MIB} MiB"
        )
    return amount * MIB
