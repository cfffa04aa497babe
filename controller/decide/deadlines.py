"""PURE. When idle owners go: after their time, or sooner where a pod waits for their GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from controller.decide.demand import waited_for
from controller.decide.owners import IDLE_STATE, latest_hold, objection
from controller.model import Announcement, NoticeGiven
from gpufence.idle import IdleRung

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.decide.owners import Hold, Idleness
    from controller.model import ClusterState, OwnerKey, OwnerState, PodState
    from controller.rules import ReleaseRules

_SLACK_SECONDS: Final = 1.0


class Due(NamedTuple):
    """
    When an idle owner goes if nothing changes, and how long before that it is announced; `waiter`
    is the pod, as `namespace/name`, that makes it go sooner.
    """

    owner: OwnerState
    since: float
    deadline: float
    threshold_seconds: float
    lead_seconds: float
    hold: Hold | None = None
    waiter: str = ""


class Dues(NamedTuple):
    """When an idle owner goes by itself, and when while somebody waits for its GPUs."""

    usual: Due | None
    contended: Due | None

    @property
    def first(self) -> Due:
        return min((each for each in self if each is not None), key=lambda each: each.deadline)


_NEVER: Final = Dues(None, None)


def demands(
    world: ClusterState,
    waiters: Sequence[PodState],
    found: Mapping[OwnerKey, Idleness],
    rules: ReleaseRules,
) -> dict[OwnerKey, str]:
    """Return for each idle owner which pod waits for its GPUs."""
    idle = [world.owners[key] for key, each in found.items() if each.state == IDLE_STATE]
    if not idle or not waiters:
        return {}
    idle.sort(key=lambda owner: (found[owner.key].since or 0.0, owner.key))
    able = {owner.key for owner in idle if _can_go(owner, world.now, rules)}
    named = waited_for(world, waiters, idle, able)
    return {key: f"{pod.namespace}/{pod.name}" for key, pod in named.items()}


def dues(
    owner: OwnerState, since: float, waiter: str, now: float, rules: ReleaseRules
) -> Dues | None:
    """Return when an idle owner goes; None where it does not."""
    contended = _due(owner, since, waiter, now, rules) if waiter else None
    found = Dues(_due(owner, since, "", now, rules), contended)
    return None if found == _NEVER else found


def told(times: Dues, before: NoticeGiven, now: float) -> NoticeGiven:
    """
    Return what holds of an owner's announcements with what is said now.

    Those of the two times are apart: whoever waits, and goes again, leaves an owner the time that
    it was to go at anyway, and the notice it had.
    """
    said = [
        None if item is None else announcement(item, old, now)
        for item, old in zip(times, before, strict=True)
    ]
    return NoticeGiven(*said)


def soonest(times: Dues, said: NoticeGiven) -> tuple[Due, Announcement] | None:
    """Return the time at which an owner goes, and what was said of it."""
    pairs = zip(times, said, strict=True)
    known = [(item, each) for item, each in pairs if item is not None and each is not None]
    return min(known, key=lambda pair: pair[1].deadline, default=None)


def announcement(item: Due, said: Announcement | None, now: float) -> Announcement | None:
    """
    Return what holds of an owner's announcement: the one that was made, unless a new one lets it go
    sooner; None where it is not time for that yet.

    Nobody goes sooner than was said, or before it was said for the whole time of notice.
    """
    holding = []
    if said is not None and _holds(item, said):
        holding.append(said._replace(deadline=_goes_at(item, said)))
    if now >= item.deadline - item.lead_seconds:
        holding.append(Announcement(now, max(item.deadline, now + item.lead_seconds)))
    return min(holding, key=lambda each: each.deadline, default=None)


def _due(
    owner: OwnerState, since: float, waiter: str, now: float, rules: ReleaseRules
) -> Due | None:
    if owner.words is None or objection(owner, contended=bool(waiter)):
        return None
    threshold = owner.words.contended_seconds if waiter else owner.words.after_seconds
    deadline = since + threshold
    hold = latest_hold(owner, now, rules)
    if hold is not None:
        deadline = max(deadline, hold.until)
    lead = min(rules.notice_seconds, threshold / 2)
    return Due(owner, since, deadline, threshold, lead, hold, waiter)


def _goes_at(item: Due, said: Announcement) -> float:
    return max(item.deadline, said.deadline, said.at + item.lead_seconds)


def _holds(item: Due, said: Announcement) -> bool:
    """
    Return whether an announcement told this deadline or a later one, or was made in time for it:
    what was said before a day of keeping does not.
    """
    in_time = item.deadline - item.lead_seconds - _SLACK_SECONDS
    return said.at >= in_time or said.deadline >= item.deadline - _SLACK_SECONDS


def _can_go(owner: OwnerState, now: float, rules: ReleaseRules) -> bool:
    return (
        owner.rung is IdleRung.RELEASE
        and not objection(owner, contended=True)
        and latest_hold(owner, now, rules) is None
    )
