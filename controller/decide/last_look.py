"""
PURE. What the agents say of all pods of an owner just before its release.

The condition that a pod carries is what its agent said when it last changed; the agents themselves
know of this moment. Who does not answer, or answers of another time or another pod, has not said
that anybody is idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controller.model import LastLook
from gpufence.text import minutes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.model import OwnerState, PodState
    from gpufence.snapshot import PodActivityRow, Snapshot

_STALE_SECONDS: Final = 10.0
_IDLE: Final = "idle"


def last_look(owner: OwnerState, snapshots: Mapping[str, Snapshot | None]) -> LastLook:
    """
    Return for how long all pods of an owner have been idle at least, by the snapshots of their
    nodes, or why nobody can say so. None in place of a snapshot: the agent did not answer.
    """
    pods = [pod for pod in owner.pods if pod.gpu is not None and pod.node and not pod.terminating]
    found = [_look(pod, snapshots.get(pod.node)) for pod in pods]
    for look in found:
        if look.why_not:
            return look
    idle = [look.idle_seconds for look in found if look.idle_seconds is not None]
    if not idle:
        return LastLook(None, "it has no pod on any node")
    return LastLook(min(idle))


def why_not(look: LastLook, threshold_seconds: float) -> str:
    """
    Return what a last look has against a release of those who must have been idle for so long.
    """
    if look.idle_seconds is None or look.why_not:
        return look.why_not or "nobody can tell"
    if look.idle_seconds < threshold_seconds:
        return f"one of its pods has been idle for {minutes(look.idle_seconds)} only"
    return ""


def agents_word(pod: PodState, snapshot: Snapshot | None) -> PodActivityRow | str:
    """Return what a pod does by the snapshot of its node, or why nobody can say so."""
    where = f"the agent of node {pod.node}"
    if snapshot is None:
        return f"{where} does not answer"
    if snapshot.node != pod.node:
        return f"who answers for node {pod.node} is the agent of {snapshot.node}"
    if snapshot.trouble or not snapshot.fresh:
        trouble = snapshot.trouble or "it does not hear from the API server"
        return f"{where} cannot tell: {trouble}"
    if snapshot.stale_seconds is None or snapshot.stale_seconds > _STALE_SECONDS:
        return f"what {where} knows is too old"
    said = next((row.activity for row in snapshot.pods if row.uid == pod.uid), None)
    return said or f"{where} does not tell what pod {pod.name} does"


def _look(pod: PodState, snapshot: Snapshot | None) -> LastLook:
    activity = agents_word(pod, snapshot)
    if isinstance(activity, str):
        return LastLook(None, activity)
    if activity.state != _IDLE:
        why = f" ({activity.why})" if activity.why else ""
        return LastLook(None, f"pod {pod.name} is {activity.state}{why}")
    if activity.idle_seconds is None:
        return LastLook(None, f"nobody can tell since when pod {pod.name} has been idle")
    return LastLook(activity.idle_seconds)
