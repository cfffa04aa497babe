"""
PURE. What the note on an owner and its replicas say together: acts that were cut short are finished
or undone, an owner whose place stays free comes back, and who brings one back soon after its
release contests that.

A note is written before the replicas change and again after it. So a pass that finds one of a phase
that ends in -ing sees by the replicas how far the act came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from controller.decide.owners import RELEASED
from controller.decide.room import NodeLeft
from controller.model import Act, Standing, Step, Way
from gpufence import names
from gpufence.event_text import event_text, shortened
from gpufence.idle import IdleRung, ReleaseNote, ReleasePhase, WakeBy
from gpufence.text import minutes
from gpufence.times import write_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.decide.room import Places
    from controller.model import ClusterState, OwnerKey, OwnerState, PodState, ReleaseRules

_MOST_TYPED: Final = 63
_CONTESTS: Final = 2
"""Once may be chance."""

_UNDER_WAY_SECONDS: Final = 10.0
"""For so long, what has noted that it wakes an owner may still be about to scale it."""

_GIVEN_UP_SECONDS: Final = 600.0
"""A wake that was noted so long ago and never happened is not what anybody wants now."""


def note_act(owner: OwnerState, places: Places, rules: ReleaseRules) -> Act | None:
    """Return what is to be done about an owner's note; None where it and the replicas agree."""
    note, now = owner.note, places.world.now
    if note is None or owner.replicas is None or owner.way is Way.NEVER:
        return None
    if owner.replicas > 0:
        if note.phase is ReleasePhase.RELEASING:
            return _act(owner, Step.DROP_NOTE, _before(note))
        if note.phase is not ReleasePhase.WOKEN:
            return _woken(owner, note, now, rules)
        return None
    if note.phase is ReleasePhase.RELEASING:
        return _act(owner, Step.NOTE_RELEASED, note._replace(phase=ReleasePhase.RELEASED))
    if note.phase is ReleasePhase.WAKING and note.woken_at is not None:
        return _unfinished_wake(owner, note, places, now - note.woken_at)
    return None


def wake_act(owner: OwnerState, note: ReleaseNote, now: float) -> Act:
    """Return the act that brings an owner back because its place is free."""
    waking = note._replace(phase=ReleasePhase.WAKING, woken_at=now, woken_by=str(WakeBy.WHEN_FREE))
    message = f"back with {replicas_text(note.replicas)}: no pod waits, and there is room"
    return _wake(owner, waking, message)


def release_act(owner: OwnerState, why: str, now: float, threshold: float) -> Act:
    """Return the act that takes an owner's replicas and writes down what it had."""
    replicas = owner.replicas or 0
    old = owner.note
    releasing = ReleaseNote(ReleasePhase.RELEASING, now, replicas, why)
    if old is not None:
        releasing = old._replace(phase=ReleasePhase.RELEASING, at=now, replicas=replicas, why=why)
    back = f"{command('wake', owner)} brings it back"
    message = event_text(f"released {replicas_text(replicas)}: {why};", last=back)
    return Act(
        step=Step.RELEASE,
        key=owner.key,
        reason=names.IDLE_RELEASED,
        message=message,
        note=releasing,
        done=releasing._replace(phase=ReleasePhase.RELEASED),
        replicas=0,
        threshold_seconds=threshold,
        uid=owner.uid,
        version=owner.version,
    )


def command(verb: str, owner: OwnerState) -> str:
    """Return the command of the plugin for an owner; a name too long to be typed is cut."""
    key = owner.key
    name = shortened(key.name, _MOST_TYPED)
    return f"kubectl gpufence {verb} -n {key.namespace} {key.kind.lower()}/{name}"


def _before(note: ReleaseNote) -> ReleaseNote | None:
    """
    Return what there was before a release that did not happen: what is still known of earlier ones.
    """
    if note.woken_at is None:
        return None
    return note._replace(phase=ReleasePhase.WOKEN)


def _woken(owner: OwnerState, note: ReleaseNote, now: float, rules: ReleaseRules) -> Act:
    """
    Write down that an owner is back, and that somebody contests its release if it came so soon, by
    nobody who said so: who types the command for it has seen what happened.
    """
    told = note.phase is ReleasePhase.WAKING
    at = note.woken_at if told and note.woken_at is not None else now
    by = note.woken_by if told else ""
    woken = note._replace(phase=ReleasePhase.WOKEN, woken_at=at, woken_by=by)
    if by or at - note.at > rules.contest_seconds:
        return _act(owner, Step.NOTE_WOKEN, woken)
    recent = [item for item in note.contested if at - item < rules.left_alone_seconds]
    woken = woken._replace(contested=(*recent, at))
    if len(woken.contested) < _CONTESTS:
        return _act(owner, Step.NOTE_WOKEN, woken)
    until = at + rules.left_alone_seconds
    message = (
        f"brought back {minutes(at - note.at)} after its release, {len(woken.contested)} times "
        f"already: it is left alone until {write_moment(until)}"
    )
    act = _act(owner, Step.NOTE_WOKEN, woken._replace(left_alone_until=until))
    return act._replace(reason=names.IDLE_CONTESTED, message=message)


def _unfinished_wake(
    owner: OwnerState, note: ReleaseNote, places: Places, age: float
) -> Act | None:
    """Finish what somebody has begun; a wake that never happened leaves the owner released."""
    if age < _UNDER_WAY_SECONDS:
        return None
    if age > _GIVEN_UP_SECONDS:
        return _act(owner, Step.NOTE_RELEASED, note._replace(phase=ReleasePhase.RELEASED))
    if owner.rung is not IdleRung.RELEASE or not _fits(owner, note, places):
        return None
    return _wake(owner, note, f"back with {replicas_text(note.replicas)}, as was begun before")


def _fits(owner: OwnerState, note: ReleaseNote, places: Places) -> bool:
    """
    Return whether an owner may come back as its note says, which its people can write: what counts
    replicas, with no more of them than have a place.
    """
    if owner.way is not Way.SCALE:
        return True
    return owner.template is not None and note.replicas <= places.room(owner.template)


def _wake(owner: OwnerState, note: ReleaseNote, message: str) -> Act:
    return Act(
        step=Step.WAKE,
        key=owner.key,
        reason=names.IDLE_WOKEN,
        message=message,
        note=note,
        done=note._replace(phase=ReleasePhase.WOKEN),
        replicas=note.replicas,
        uid=owner.uid,
        version=owner.version,
    )


def _act(owner: OwnerState, step: Step, note: ReleaseNote | None) -> Act:
    """Return an act on a note alone, of which nobody is told."""
    return Act(step, owner.key, "", "", note=note, uid=owner.uid, version=owner.version)


def replicas_text(number: int) -> str:
    return "1 replica" if number == 1 else f"{number} replicas"


class Waking(NamedTuple):
    """
    How a released owner stands, since when its place is free, and the act that brings it back.
    """

    standing: Standing
    free_since: float | None = None
    act: Act | None = None


def waking(
    owner: OwnerState,
    note: ReleaseNote,
    places: Places,
    waiters: Sequence[PodState],
    free: Mapping[OwnerKey, float],
    rules: ReleaseRules,
) -> Waking:
    """
    Return how a released owner stands. It comes back when for some time nobody has waited for a
    place that it might take, and all its replicas would fit.
    """
    world = places.world
    why = f"released at {write_moment(note.at)}: {note.why}; "
    standing = Standing(owner.key, Step.NOTHING, RELEASED, why)
    if owner.way is Way.NEVER:
        return Waking(standing._replace(why=why + owner.why_not))
    if not _comes_by_itself(owner):
        back = f"{command('wake', owner)} brings it back"
        return Waking(standing._replace(why=why + back))
    against = _in_the_way(owner, note.replicas, places, waiters)
    if against:
        return Waking(standing._replace(why=f"{why}not back yet: {against}"))
    since = free.get(owner.key, world.now)
    at = since + rules.free_seconds
    standing = standing._replace(why=f"{why}back at {write_moment(at)} if its place stays free")
    if world.now < at or _woken_lately(world, rules):
        return Waking(standing, since)
    act = wake_act(owner, note, world.now)
    return Waking(standing._replace(step=act.step, why=act.message), since, act)


def _in_the_way(
    owner: OwnerState, replicas: int, places: Places, waiters: Sequence[PodState]
) -> str:
    """Return what stands against bringing an owner back; nothing where it would hinder no pod."""
    template = owner.template
    if template is None:
        return "what its pods would ask for is unknown"
    nodes = [NodeLeft(node) for node in places.world.nodes.values()]
    allowed = [node for node in nodes if node.permits(template)]
    for waiter in waiters:
        if any(node.takes(waiter) for node in allowed):
            return f"{waiter.namespace}/{waiter.name} waits for a place that it might take"
    fitting = places.room(template)
    if fitting < replicas:
        return f"{fitting} of its {replicas} replicas would fit"
    return ""


def _comes_by_itself(owner: OwnerState) -> bool:
    """Return whether owner and namespace want it back without anybody's word, and let us act."""
    words = owner.words
    return (
        owner.rung is IdleRung.RELEASE
        and words is not None
        and not words.problems
        and words.wake is WakeBy.WHEN_FREE
    )


def _woken_lately(world: ClusterState, rules: ReleaseRules) -> bool:
    """
    Return whether one came back so lately that its pods do not have their places yet. Its note
    alone, which its people can write, holds nobody up.
    """
    since = world.now - rules.waiting_seconds
    return any(
        note.woken_at is not None and since < note.woken_at <= world.now and _lacks_places(owner)
        for owner in world.owners.values()
        if (note := owner.note) is not None
    )


def _lacks_places(owner: OwnerState) -> bool:
    placed = sum(bool(pod.node) and not pod.terminating for pod in owner.pods)
    return placed < (owner.replicas or 0)
