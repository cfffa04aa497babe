"""
PURE. Since when all pods of an owner have been idle, by their conditions and by what the agents say
just before a release; and what stands against one, or against all, for fear of mistakes of our own
and of counters.

The condition that a pod carries is what its agent said when it last changed; the agents themselves
know of this moment. Who does not answer, or answers of another time or another pod, has not said
that anybody is idle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.model import LastLook, Objection, Way
from gpufence.candidates import wanted_resources
from gpufence.dialects import declares
from gpufence.idle import RUNGS, IdleRung, WakeBy, WithoutGpu
from gpufence.names import IDLE, PODS_WITHOUT_GPU
from gpufence.pods import ContainerKind
from gpufence.text import minutes
from gpufence.times import write_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.model import (
        ClusterState,
        OwnerKey,
        OwnerState,
        PodState,
        ReleaseMemory,
        ReleaseRules,
    )
    from gpufence.pods import Pod
    from gpufence.snapshot import PodActivityRow, Snapshot


RUNNING: Final = "Running"
_STALE_SECONDS: Final = 10.0
BUSY: Final = "busy"
IDLE_STATE: Final = "idle"
UNKNOWN: Final = "unknown"
RELEASED: Final = "released"
KEPT: Final = "kept"
_IGNORED: Final = f"{PODS_WITHOUT_GPU}: ignore on the owner or its namespace has it ignored"
_WORDS: Final = f"{', '.join(RUNGS[:-1])} or {RUNGS[-1]}"


class Idleness(NamedTuple):
    """What the pods of an owner do, all together; `since` where they are idle."""

    state: str
    why: str
    since: float | None = None


class Hold(NamedTuple):
    """
    Until when an owner is not released whatever its pods do; `kept` where somebody wants it so.
    """

    until: float
    why: str
    kept: bool = False


def idleness(owner: OwnerState, rules: ReleaseRules) -> Idleness:
    """
    Return whether all pods of an owner are idle, and since when: one that works makes it busy, one
    of which nobody can tell, or that works without a GPU, makes it unknown.
    """
    stay = [pod for pod in owner.pods if not pod.terminating]
    pods = [pod for pod in stay if pod.gpu is not None]
    each = [(pod, _pod_idleness(pod, rules)) for pod in pods]
    each += [(pod, Idleness(UNKNOWN, why)) for pod in stay if (why := unmeasured(pod, owner))]
    for state in (BUSY, UNKNOWN):
        for pod, found in each:
            if found.state == state:
                return found._replace(why=f"pod {pod.name} {found.why}")
    if all(not pod.node for pod in pods):
        return Idleness(UNKNOWN, "none of its pods has a GPU yet")
    since = max(found.since or 0.0 for _, found in each)
    return Idleness(IDLE_STATE, f"all its pods have been idle since {write_moment(since)}", since)


def unmeasured(pod: PodState, owner: OwnerState) -> str:
    """Return why no agent measures what a pod does; nothing where its GPU tells it, or need not."""
    if owner.words is not None and owner.words.without_gpu is WithoutGpu.IGNORE:
        return ""
    if pod.gpu is None:
        why = "asks for no GPU"
    elif pod.initializing:
        why = "has not finished its init containers"
    elif _only_early(pod.gpu):
        why = "asks for a GPU in its init containers only"
    else:
        return ""
    return f"{why}, so what it does is not measured; {_IGNORED}"


def _only_early(pod: Pod) -> bool:
    """Return whether the containers that are left once a pod is initialized have no GPU."""
    left = [item for item in pod.containers if item.kind is not ContainerKind.INIT]
    return (
        len(left) < len(pod.containers)
        and bool(wanted_resources(pod))
        and not wanted_resources(pod._replace(containers=tuple(left)))
        and not any(item.claims for item in left)
        and not any(map(declares, pod.annotations))
    )


def _pod_idleness(pod: PodState, rules: ReleaseRules) -> Idleness:
    """Return what one pod does. A pod that no node takes does nothing."""
    if not pod.node and pod.waiting_since is not None:
        return Idleness(IDLE_STATE, "", pod.waiting_since)
    if pod.idle == "False":
        return Idleness(BUSY, "uses its GPU")
    if pod.idle == "True" and pod.idle_at is not None:
        return Idleness(IDLE_STATE, "", pod.idle_at - rules.idle_seconds)
    if pod.idle == "Unknown":
        return Idleness(UNKNOWN, "cannot be measured, as its condition says")
    return Idleness(UNKNOWN, "has not been idle for long enough to be called so")


def objection(owner: OwnerState, *, contended: bool) -> str:
    """
    Return what stands against a release for as long as nobody changes it; nothing if nothing does.
    """
    if owner.way is Way.NEVER:
        return owner.why_not or "nothing that gpufence may scale owns its pods"
    if owner.rung is None:
        return f"its namespace has no label {IDLE} of {_WORDS}: it is only measured"
    if owner.rung is IdleRung.REPORT:
        return f"{IDLE} is only report here"
    if owner.words is None or owner.replicas is None:
        return "its annotations or its replicas cannot be read"
    if owner.words.problems:
        return owner.words.problems[0].sentence
    if owner.budget is not None and owner.budget < len(owner.pods):
        return (
            f"a release takes all its {len(owner.pods)} pods at once, and their "
            f"PodDisruptionBudget lets {owner.budget} go"
        )
    if owner.words.wake is WakeBy.WHEN_FREE and not contended:
        return "it comes back when its place is free, so it is released only for a waiting pod"
    return ""


def latest_hold(owner: OwnerState, now: float, rules: ReleaseRules) -> Hold | None:
    """Return what keeps an owner longest from now on; None where nothing does."""
    started = [pod.ready_at or pod.idle_at for pod in owner.pods if pod.node]
    youngest = max((at for at in started if at is not None), default=0.0)
    until, time = youngest + rules.warm_up_seconds, minutes(rules.warm_up_seconds)
    holds = [Hold(until, f"its youngest pod was ready less than {time} ago")]
    if owner.words is not None and owner.words.keep_until is not None:
        until = owner.words.keep_until
        holds.append(Hold(until, f"it is to be kept until {write_moment(until)}", kept=True))
    note = owner.note
    if note is not None and note.woken_at is not None:
        until, time = note.woken_at + rules.peace_seconds, minutes(rules.peace_seconds)
        holds.append(Hold(until, f"it came back less than {time} ago"))
    if note is not None and note.left_alone_until is not None:
        until = note.left_alone_until
        why = f"its release was contested, so it is left alone until {write_moment(until)}"
        holds.append(Hold(until, why, kept=True))
    return max((hold for hold in holds if hold.until > now), default=None)


def running(owner: OwnerState) -> list[PodState]:
    """Return the pods of which an agent knows what they do."""
    return [
        pod
        for pod in owner.pods
        if pod.node and pod.phase == RUNNING and not pod.terminating and pod.gpu is not None
    ]


def nodes_of(owner: OwnerState) -> frozenset[str]:
    """Return the nodes whose agents know what an owner's pods do."""
    return frozenset(pod.node for pod in running(owner))


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
        return look.why_not or "unknown"
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
    if activity.state != IDLE_STATE:
        why = f" ({activity.why})" if activity.why else ""
        return LastLook(None, f"pod {pod.name} is {activity.state}{why}")
    if activity.idle_seconds is None:
        return LastLook(None, f"it is unknown since when pod {pod.name} has been idle")
    return LastLook(activity.idle_seconds)


_MINUTE: Final = 60.0
RETRY_SECONDS: Final = 10.0
"""After the last look has spoken against a release, others go first for so long."""

_FEWEST_OWNERS: Final = 2
"""Pods of one owner turn idle together whenever its queue is empty: that is no sign of a fault."""


def watched_turns(world: ClusterState, memory: ReleaseMemory, rules: ReleaseRules) -> ReleaseMemory:
    """
    Follow which pods have turned from busy to idle, and suspend releases when most do so at once:
    a driver that has begun to report nothing looks just like that.

    A pod that was idle before its agent was restarted has not turned. Of one that nobody has seen
    before, nobody knows: it has.
    """
    measured = [pod for pod in world.pods if pod.gpu is not None and pod.idle in ("True", "False")]
    idle, turned = set(memory.idle), dict(memory.turned_idle)
    for pod in measured:
        if pod.idle == "False":
            idle.discard(pod.uid)
            turned.pop(pod.uid, None)
            continue
        if pod.uid not in idle and pod.idle_at is not None:
            turned[pod.uid] = pod.idle_at
        idle.add(pod.uid)
    living = {pod.uid for pod in world.pods if pod.uid in idle}
    until = max(_suspended_until(measured, turned, world.now, rules), memory.suspended_until)
    return replace(
        memory,
        began=world.now if memory.began is None else memory.began,
        idle=frozenset(living),
        turned_idle={uid: at for uid, at in turned.items() if uid in living},
        suspended_until=until,
    )


def _suspended_until(
    measured: Sequence[PodState], turned: Mapping[str, float], now: float, rules: ReleaseRules
) -> float:
    if len(measured) < rules.suspend_pods:
        return 0.0
    recent = now - rules.suspend_seconds
    times = sorted(
        ((turned[pod.uid], pod) for pod in measured if turned.get(pod.uid, recent) > recent),
        key=itemgetter(0),
    )
    first, until = 0, 0.0
    owners: Counter[OwnerKey | str] = Counter()
    for last, (at, pod) in enumerate(times):
        owners[pod.owner or pod.uid] += 1
        while at - times[first][0] > rules.suspend_within_seconds:
            gone = times[first][1].owner or times[first][1].uid
            owners[gone] -= 1
            if not owners[gone]:
                del owners[gone]
            first += 1
        many = 100 * (last + 1 - first) >= rules.suspend_percent * len(measured)
        if many and len(owners) >= _FEWEST_OWNERS:
            until = at + rules.suspend_seconds
    return until


def brake(world: ClusterState, memory: ReleaseMemory) -> str:
    """Return why nobody is announced or released at the moment; nothing where they may be."""
    if not world.fresh:
        return "what is known of the cluster is too old"
    if memory.suspended_until > world.now:
        until = write_moment(memory.suspended_until)
        return f"most pods that are measured turned idle at once, which is doubtful: until {until}"
    return ""


def releases_left(world: ClusterState, memory: ReleaseMemory, rules: ReleaseRules) -> int:
    """
    Return how many owners may still go in this minute, by memory, and in a leader's first minute by
    what owners have noted, so that it does not begin to count anew. Later notes, which tenants may
    write on their own owners, hold no release up.
    """
    since = world.now - _MINUTE
    gone = {key for key, at in memory.released.items() if at > since}
    if memory.began is None or memory.began > since:
        gone |= {
            owner.key
            for owner in world.owners.values()
            if owner.note is not None and since < owner.note.at <= world.now
        }
    return max(rules.per_minute - len(gone), 0)


def released(memory: ReleaseMemory, key: OwnerKey, now: float) -> ReleaseMemory:
    """Remember that an owner was released."""
    recent = {other: at for other, at in memory.released.items() if at > now - _MINUTE}
    return replace(memory, released={**recent, key: now})


def refused(memory: ReleaseMemory, key: OwnerKey, why: str, now: float) -> ReleaseMemory:
    """Remember that the last look, or the API server, spoke against an owner's release."""
    recent = {
        other: found for other, found in memory.refused.items() if now - found.at < RETRY_SECONDS
    }
    return replace(memory, refused={**recent, key: Objection(now, why)})
