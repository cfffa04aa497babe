"""
How each sharing system declares memory: a pod and its node's units in, a declaration out.

One module for each system. A new one is a `read` function here, its resources in names.py, and rows
in tests/data/pods.json.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects import gpushare, hami, kai, nvidia, volcano
from gpufence.dialects.model import (
    Amount,
    Claim,
    Declared,
    Dialect,
    NeverRunsError,
    Sum,
    Undeclared,
    Units,
    Unreadable,
)
from gpufence.errors import InvalidError, Problem

if TYPE_CHECKING:
    from gpufence.pods import Pod

__all__ = [
    "Amount",
    "Claim",
    "Declared",
    "Dialect",
    "Sum",
    "Undeclared",
    "Units",
    "Unreadable",
    "read_declaration",
]

_READERS = (
    gpushare.read,
    volcano.read_memory,
    volcano.read_number,
    volcano.read_vgpu,
    hami.read,
    kai.read,
    nvidia.read_gpu,
    nvidia.read_mig,
)


def read_declaration(pod: Pod, units: Units) -> Declared | Undeclared | Unreadable:
    """
    Read what a pod declares about GPU memory.

    Two systems in one pod are unreadable: each keeps its own books, and no limit fits both.
    """
    try:
        found = [said for reader in _READERS if (said := reader(pod, units)) is not None]
    except InvalidError as error:
        return Unreadable(error.problem, never_runs=isinstance(error, NeverRunsError))
    if len(found) > 1:
        systems = ", ".join(f"{said.dialect} ({said.basis})" for said in found)
        return Unreadable(
            Problem(
                "resources.limits",
                systems,
                "are two ways to declare GPU memory in one pod",
                "keep the one whose scheduler runs the pod",
            )
        )
    if found:
        return found[0]
    if pod.has_resource_claims:
        return Undeclared(
            "it gets its devices by resource claims (DRA), which gpufence does not read"
        )
    return Undeclared("no container asks for GPU memory in a way gpufence knows")
