"""PURE. How busy an owner is, for whoever scales it; an answer only where nothing is unknown."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.decide.owners import RUNNING, agents_word, running, unmeasured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.model import OwnerState, PodState
    from gpufence.snapshot import Snapshot

_BUSY_DIGITS: Final = 4


class OwnerActivity(NamedTuple):
    """
    `busy_replicas` is the sum of what its replicas were busy of the last minute; `idle_seconds` is
    for how long all its pods have been idle, None where none runs.
    """

    busy_replicas: float
    idle_seconds: float | None


class UnknownActivity(NamedTuple):
    """Why nobody can tell."""

    why: str


def activity_of(
    owner: OwnerState, snapshots: Mapping[str, Snapshot | None]
) -> OwnerActivity | UnknownActivity:
    """
    Add up what the pods do that run; those that do not yet are known to do nothing, those that go
    do not count. Several pods that are one replica are as busy as the busiest of them. One that
    works without a GPU, or is being initialized, leaves nothing known.
    """
    for pod in owner.pods:
        works = bool(pod.node) and not pod.terminating
        if works and (pod.phase == RUNNING or pod.initializing) and (why := unmeasured(pod, owner)):
            return UnknownActivity(f"pod {pod.name} {why}")
    busy: dict[str, float] = defaultdict(float)
    idle = []
    for pod in running(owner):
        found = agents_word(pod, snapshots.get(pod.node))
        if isinstance(found, str):
            return UnknownActivity(found)
        if found.busy_share is None or found.idle_seconds is None:
            return UnknownActivity(f"pod {pod.name} is {found.state}: {found.why or 'no reason'}")
        replica = pod.leader or pod.uid
        busy[replica] = max(busy[replica], found.busy_share)
        idle.append(found.idle_seconds)
    return OwnerActivity(round(sum(busy.values()), _BUSY_DIGITS), min(idle, default=None))


def next_replica(owner: OwnerState) -> list[PodState]:
    """
    Return the pods that one more replica would have, by its template or else as those are that
    there are, whoever leads the others first; none where nobody can tell.
    """
    if owner.template is not None:
        return [owner.template]
    replicas: dict[str, list[PodState]] = defaultdict(list)
    for pod in sorted(owner.pods, key=lambda pod: bool(pod.leader)):
        if not pod.terminating and pod.gpu is not None:
            replicas[pod.leader or pod.uid].append(pod._replace(node=""))
    return max(replicas.values(), key=len, default=[])
