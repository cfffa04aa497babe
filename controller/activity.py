"""
PURE. How busy an owner is, for whoever scales it; an answer only where nothing is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from controller.decide.last_look import agents_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.model import OwnerState, PodState
    from gpufence.snapshot import Snapshot

_RUNNING: Final = "Running"
_BUSY_DIGITS: Final = 4


class OwnerActivity(NamedTuple):
    """
    `busy_replicas` is the sum of what its pods were busy of the last minute; `idle_seconds` is for
    how long all of them have been idle, None where none runs.
    """

    busy_replicas: float
    idle_seconds: float | None


class UnknownActivity(NamedTuple):
    """
    Why nobody can tell.
    """

    why: str


def nodes_of(owner: OwnerState) -> frozenset[str]:
    """
    Return the nodes whose agents know what an owner's pods do.
    """
    return frozenset(pod.node for pod in _running(owner))


def activity_of(
    owner: OwnerState, snapshots: Mapping[str, Snapshot | None]
) -> OwnerActivity | UnknownActivity:
    """
    Add up what the pods do that run; those that do not yet are known to do nothing, those that go
    do not count.
    """
    busy, idle = 0.0, []
    for pod in _running(owner):
        found = agents_word(pod, snapshots.get(pod.node))
        if isinstance(found, str):
            return UnknownActivity(found)
        if found.busy_share is None or found.idle_seconds is None:
            return UnknownActivity(f"pod {pod.name} is {found.state}: {found.why or 'no reason'}")
        busy += found.busy_share
        idle.append(found.idle_seconds)
    return OwnerActivity(round(busy, _BUSY_DIGITS), min(idle, default=None))


def _running(owner: OwnerState) -> list[PodState]:
    return [
        pod
        for pod in owner.pods
        if pod.node and pod.phase == _RUNNING and not pod.terminating and pod.gpu is not None
    ]
