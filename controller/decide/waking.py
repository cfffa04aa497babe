"""PURE. Who comes back because nobody needs its place any longer: `gpufence.io/wake: when-free`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from controller.decide.demand import may_come_back
from controller.decide.notes import command, wake_act
from controller.decide.owners import RELEASED
from controller.model import Standing, Step, Way
from gpufence.idle import IdleRung, WakeBy
from gpufence.times import write_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.decide.room import Places
    from controller.model import Act, ClusterState, OwnerKey, OwnerState, PodState
    from controller.rules import ReleaseRules
    from gpufence.idle import ReleaseNote


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
    against = may_come_back(owner, places, waiters)
    if against:
        return Waking(standing._replace(why=f"{why}not back yet: {against}"))
    since = free.get(owner.key, world.now)
    at = since + rules.free_seconds
    standing = standing._replace(why=f"{why}back at {write_moment(at)} if its place stays free")
    if world.now < at or _woken_lately(world, rules):
        return Waking(standing, since)
    act = wake_act(owner, note, world.now)
    return Waking(standing._replace(step=act.step, why=act.message), since, act)


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
