"""
PURE. What each pod shall say of itself: its condition, changed when what is known of it changes.

True needs a minute, Unknown comes at once where it takes a True away. What the API server shows
counts, so that a new agent takes back what the one before it said and it cannot know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent.concerns.activity.model import Activity, Evidence, IdleStatus
from agent.model.pod import PodCondition
from gpufence import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.concerns.activity.model import ActivityMemory, ActivityPolicy, PodTrack
    from agent.model.pod import PodOnNode, PodsOnNode

_REPEAT_SECONDS: Final = 30.0
"""How long it takes at most until the API server shows what was written, or it is written again."""
_PAUSE_SECONDS: Final = 60.0
"""
Between two changes that take no True away: one who is seen today and not tomorrow costs little.
"""
_MOST_CHARACTERS: Final = 256
_MESSAGES: Final = {
    Evidence.KERNELS: "its processes use the card",
    Evidence.LOADING: "its memory on the card moves, or processes come and go",
    Evidence.CPU: "its processes on the card use the CPU",
}


class LastCondition(NamedTuple):
    """What was last asked to be written of a pod, and when."""

    status: IdleStatus
    at: float


NOTHING_SAID: Final[Mapping[str, LastCondition]] = {}


class _Wish(NamedTuple):
    status: IdleStatus
    evidence: Evidence
    message: str


def conditions(
    pods: PodsOnNode,
    memory: ActivityMemory,
    said: Mapping[str, LastCondition],
    policy: ActivityPolicy,
    now: float,
) -> tuple[list[PodCondition], Mapping[str, LastCondition]]:
    """Return the conditions to be written, and what has been said with them."""
    changes: list[PodCondition] = []
    kept = {uid: item for uid, item in said.items() if uid in pods.by_uid}
    for pod in pods.by_uid.values():
        track = memory.pods.get(pod.uid)
        if pod.ended or not (track or pod.idle_said):
            continue
        last = kept.get(pod.uid)
        shown = _shown(pod, last, now)
        wish = _wish(track, policy, now, shown)
        if wish is not None and _is_news(wish.status, shown, last, now):
            words = (str(wish.status), str(wish.evidence), wish.message[:_MOST_CHARACTERS])
            changes.append(PodCondition(pod.namespace, pod.name, pod.uid, names.GPU_IDLE, *words))
            kept[pod.uid] = LastCondition(wish.status, now)
    return changes, kept


def _wish(track: PodTrack | None, policy: ActivityPolicy, now: float, shown: str) -> _Wish | None:
    """Return what a pod shall say; None where it shall go on saying what it says."""
    if track is None:
        why = "it holds no memory of a card, and is not known to have been given one"
        return _Wish(IdleStatus.UNKNOWN, Evidence.NOT_MEASURABLE, why)
    if track.activity is Activity.BUSY:
        return _Wish(IdleStatus.FALSE, track.evidence, _MESSAGES[track.evidence])
    if track.activity is Activity.UNKNOWN:
        if not shown and track.idle_since is not None:
            return None  # it has only just been seen
        return _Wish(IdleStatus.UNKNOWN, Evidence.NOT_MEASURABLE, track.why)
    if (track.idle_seconds(now) or 0.0) < policy.idle_seconds:
        if shown != IdleStatus.TRUE:
            return None
        why = f"it was watched for less than {policy.idle_seconds:g} s"
        return _Wish(IdleStatus.UNKNOWN, Evidence.NOT_MEASURABLE, why)
    text = f"no kernels, no memory moved and nothing computed for {policy.idle_seconds:g} s"
    if not track.held:
        text = f"it was given a GPU, and has held no memory of a card for {policy.idle_seconds:g} s"
    return _Wish(IdleStatus.TRUE, Evidence.NOTHING, text)


def _shown(pod: PodOnNode, last: LastCondition | None, now: float) -> str:
    """Return what a pod says, or will as soon as the API server has taken it in."""
    if last is not None and now - last.at < _REPEAT_SECONDS:
        return str(last.status)
    return pod.idle_said


def _is_news(status: IdleStatus, shown: str, last: LastCondition | None, now: float) -> bool:
    if status == shown:
        return False
    takes_back = shown == IdleStatus.TRUE
    paused = last is not None and now - last.at < _PAUSE_SECONDS
    return takes_back or status is IdleStatus.TRUE or not paused
