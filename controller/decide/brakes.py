"""PURE. What stops releases that are due, against mistakes of our own and of counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from controller.model import Objection
from gpufence.times import write_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.model import ClusterState, OwnerKey, PodState, ReleaseMemory
    from controller.rules import ReleaseRules

_MINUTE: Final = 60.0
_RETRY_SECONDS: Final = 10.0
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
    what owners have noted, so that he does not begin to count anew. Later those, which anybody may
    write on his own owners, hold nobody up.
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


def refusal(memory: ReleaseMemory, key: OwnerKey, now: float) -> str:
    """Return why the last look spoke against an owner's release a moment ago."""
    found = memory.refused.get(key)
    return found.why if found is not None and now - found.at < _RETRY_SECONDS else ""


def released(memory: ReleaseMemory, key: OwnerKey, now: float) -> ReleaseMemory:
    """Remember that an owner was released."""
    recent = {other: at for other, at in memory.released.items() if at > now - _MINUTE}
    return replace(memory, released={**recent, key: now})


def refused(memory: ReleaseMemory, key: OwnerKey, why: str, now: float) -> ReleaseMemory:
    """Remember that the last look, or the API server, spoke against an owner's release."""
    recent = {
        other: found for other, found in memory.refused.items() if now - found.at < _RETRY_SECONDS
    }
    return replace(memory, refused={**recent, key: Objection(now, why)})
