"""
How each sharing system declares memory: a pod and its node's units in, a declaration out.

One module for each system. A new one is a `read` function here, its resources in names.py, and rows
in tests/data/pods.json.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
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
    from collections.abc import Callable, Iterator

    from gpufence.pods import Pod

    Reader = Callable[[Pod, Units], Declared | None]

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
    (gpushare.read, {names.GPUSHARE_MEMORY}),
    (volcano.read_memory, {names.VOLCANO_MEMORY}),
    (volcano.read_number, {names.VOLCANO_NUMBER}),
    (volcano.read_vgpu, set(volcano.VGPU)),
    (hami.read, set(hami.MEMORY)),
    (nvidia.read_gpu, set(nvidia.GPU)),
)
"""Who reads which resources; KAI and MIG are known by an annotation and by a prefix."""


def read_declaration(pod: Pod, units: Units) -> Declared | Undeclared | Unreadable:
    """
    Read what a pod declares about GPU memory.

    Two systems in one pod are unreadable: each keeps its own books, and no limit fits both.
    """
    try:
        found = [said for reader in _readers(pod) if (said := reader(pod, units)) is not None]
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


def _readers(pod: Pod) -> Iterator[Reader]:
    asked = {resource for container in pod.containers for resource in container.limits}
    for reader, resources in _READERS:
        if not asked.isdisjoint(resources):
            yield reader
    if not pod.annotations.keys().isdisjoint(names.KAI_KEYS):
        yield kai.read
    if any(resource.startswith(names.NVIDIA_MIG_PREFIX) for resource in asked):
        yield nvidia.read_mig
