"""
PURE. How each owner stands, and what is done about it now: announced, released after a last look,
brought back. An idle owner goes after its time, or sooner where a pod waits for its GPUs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.decide.notes import command, note_act, release_act, replicas_text, waking
from controller.decide.owners import (
    IDLE_STATE,
    KEPT,
    RETRY_SECONDS,
    UNKNOWN,
    brake,
    idleness,
    latest_hold,
    objection,
    releases_left,
    watched_turns,
)
from controller.decide.room import Places, waited_for
from controller.model import Act, Announcement, NoticeGiven, ReleaseDecision, Standing, Step, Way
from gpufence import names
from gpufence.event_text import event_text, shortened
from gpufence.idle import IdleRung, ReleasePhase
from gpufence.times import write_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.decide.owners import Hold, Idleness
    from controller.model import (
        ClusterState,
        OwnerKey,
        OwnerState,
        PodState,
        ReleaseMemory,
        ReleaseRules,
    )

_MOST_NAMED: Final = 63
_SLACK_SECONDS: Final = 1.0
_IDLE_WARN: Final = f"nothing is done at it, since {names.IDLE} is warn"


def decide(world: ClusterState, memory: ReleaseMemory, rules: ReleaseRules) -> ReleaseDecision:
    """
    Return how each owner stands, and what is done about it now.

    While what is known is not fresh nothing is done and nothing is forgotten. What becomes of a
    release is told to the memory afterwards, by `released` or `refused`.
    """
    if not world.fresh:
        why = brake(world, memory)
        unsure = {key: Standing(key, Step.NOTHING, UNKNOWN, why) for key in world.owners}
        return ReleaseDecision(unsure, (), memory, why)
    one = _Pass(world, watched_turns(world, memory, rules), rules)
    one.finish_acts()
    one.bring_back()
    one.go(one.find_due())
    after = replace(one.memory, announced=one.announced, free_since=one.free_since)
    return ReleaseDecision(one.standings, tuple(one.acts), after, one.brake)


class _Pass:
    """
    One pass over all owners; each step leaves those to the next ones that it has not decided on.
    """

    def __init__(self, world: ClusterState, memory: ReleaseMemory, rules: ReleaseRules) -> None:
        self._world = world
        self._places = Places(world)
        self.memory = memory
        self._rules = rules
        self.brake = brake(world, memory)
        self._waiters: Sequence[PodState] = _waiting(world, rules)
        self._left = dict(world.owners)
        self.standings: dict[OwnerKey, Standing] = {}
        self.acts: list[Act] = []
        self.announced: dict[str, NoticeGiven] = {}
        self.free_since: dict[OwnerKey, float] = {}

    def finish_acts(self) -> None:
        """Write down what owners' notes do not say yet, and finish what was cut short."""
        for owner in list(self._left.values()):
            act = note_act(owner, self._places, self._rules)
            if act is not None:
                del self._left[owner.key]
                found = idleness(owner, self._rules)
                why = act.message or "what is noted of its release is brought up to date"
                self.standings[owner.key] = Standing(owner.key, act.step, found.state, why)
                self._do(act)

    def bring_back(self) -> None:
        """
        See to those that have no replicas: to the released, while the others are nobody's business.
        """
        for owner in list(self._left.values()):
            if owner.replicas != 0:
                continue
            del self._left[owner.key]
            note = owner.note
            if note is None or note.phase is ReleasePhase.WOKEN:
                continue
            found = waking(
                owner, note, self._places, self._waiters, self.memory.free_since, self._rules
            )
            if found.free_since is not None:
                self.free_since[owner.key] = found.free_since
            self.standings[owner.key] = found.standing
            if found.act is not None and not any(act.step is Step.WAKE for act in self.acts):
                self._do(found.act)

    def find_due(self) -> list[Dues]:
        """
        Return the idle owners that go, those for which a pod waits first, then the longest idle.
        """
        found = {key: idleness(owner, self._rules) for key, owner in self._left.items()}
        demanded = self._demands(found) if self._waiters else {}
        items = []
        for key, each in found.items():
            owner, waiter = self._left[key], demanded.get(key, "")
            hold = latest_hold(owner, self._world.now, self._rules)
            times = None
            if each.since is not None:
                times = dues(owner, each.since, waiter, hold, self._rules)
            item = None if times is None else times.first
            self.standings[key] = _standing(owner, each, waiter, item, hold)
            items += [] if times is None else [times]
        return sorted(
            items,
            key=lambda each: (each.contended is None, each.first.since, each.first.owner.key),
        )

    def _demands(self, found: Mapping[OwnerKey, Idleness]) -> dict[OwnerKey, str]:
        """Return for each idle owner which pod waits for its GPUs."""
        world, rules = self._world, self._rules
        idle = [world.owners[key] for key, each in found.items() if each.state == IDLE_STATE]
        idle.sort(key=lambda owner: (found[owner.key].since or 0.0, owner.key))
        able = {owner.key for owner in idle if _can_go(owner, world.now, rules)}
        named = waited_for(world, self._waiters, idle, able)
        return {key: f"{pod.namespace}/{pod.name}" for key, pod in named.items()}

    def go(self, items: Sequence[Dues]) -> None:
        """Announce who goes soon, and release who is ripe, as many as may go in a minute."""
        if self.brake:
            return
        now = self._world.now
        left = releases_left(self._world, self.memory, self._rules)
        for times in items:
            key, uid = times.first.owner.key, times.first.owner.uid
            before = self.memory.announced.get(uid, NoticeGiven())
            said, next_one = announced(times, before, now)
            if next_one is None:
                continue
            item, first = next_one
            self.announced[uid] = said
            self.standings[key] = self.standings[key]._replace(deadline=first.deadline)
            if first.at == now and first not in before:
                self.acts.append(_announce(item, first))
                self.standings[key] = self.standings[key]._replace(step=Step.ANNOUNCE)
            elif now >= first.deadline and item.owner.rung is IdleRung.RELEASE:
                left -= self._release(item, left)

    def _release(self, item: Due, left: int) -> int:
        """Release an owner unless something speaks against it just now; return how many went."""
        key, now = item.owner.key, self._world.now
        if left < 1:
            most = self._rules.per_minute
            self.standings[key] = self.standings[key]._replace(
                why=f"its time is up, but only {most} owners go in a minute"
            )
            return 0
        self.standings[key] = self.standings[key]._replace(step=Step.RELEASE, why=item.why)
        return self._do(release_act(item.owner, item.why, now, item.threshold_seconds))

    def _do(self, act: Act) -> int:
        """
        Do it, unless just that was refused a moment ago: others go first. Return how many are done.
        """
        against = None if act.replicas is None else self.memory.refused.get(act.key)
        if against is not None and self._world.now - against.at < RETRY_SECONDS:
            standing = self.standings[act.key]
            why = f"{act.step} was called off a moment ago: {against.why}"
            self.standings[act.key] = standing._replace(step=Step.NOTHING, why=why)
            return 0
        self.acts.append(act)
        return 1


def _waiting(world: ClusterState, rules: ReleaseRules) -> list[PodState]:
    """Return the pods that ask for GPUs and have been unschedulable for long, the longest first."""
    found = [
        (pod.waiting_since, pod.namespace, pod.name, pod)
        for pod in world.pods
        if pod.gpu is not None
        and not pod.terminating
        and not pod.node
        and pod.waiting_since is not None
        and world.now - pod.waiting_since >= rules.waiting_seconds
    ]
    return [pod for *_, pod in sorted(found, key=lambda item: item[:3])]


def _standing(
    owner: OwnerState, found: Idleness, waiter: str, item: Due | None, hold: Hold | None
) -> Standing:
    """Return how an owner stands that has replicas, before anything is done about it."""
    standing = Standing(
        owner.key,
        Step.NOTHING,
        found.state,
        found.why,
        idle_since=found.since,
        contended=bool(waiter),
        waiters=(waiter,) if waiter else (),
    )
    if found.state != IDLE_STATE:
        against = owner.why_not if owner.way is Way.NEVER else ""
        return standing._replace(why=f"{found.why}; {against}") if against else standing
    kept = hold is not None and hold.kept
    if item is None:
        why = objection(owner, contended=bool(waiter))
        why = f"{hold.why}; {why}" if hold is not None and kept else why
        return standing._replace(state=KEPT if kept else found.state, why=why)
    standing = standing._replace(deadline=item.deadline)
    if hold is not None:
        return standing._replace(state=KEPT if kept else found.state, why=hold.why)
    if owner.rung is IdleRung.WARN:
        return standing._replace(why=f"{found.why}; {_IDLE_WARN}")
    return standing


def _announce(item: Due, said: Announcement) -> Act:
    owner = item.owner
    what = replicas_text(owner.replicas or 0)
    at = write_moment(said.deadline)
    if owner.rung is IdleRung.WARN:
        message = f"{what} would be released at {at}: {item.why}; {_IDLE_WARN}"
    else:
        keep = f"{command('keep', owner)} keeps it"
        message = event_text(f"{what} will be released at {at}: {item.why};", last=keep)
    return Act(
        Step.ANNOUNCE,
        owner.key,
        names.IDLE_WARNING,
        message,
        threshold_seconds=item.threshold_seconds,
        uid=owner.uid,
        version=owner.version,
    )


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
    waiter: str = ""

    @property
    def why(self) -> str:
        waiter = shortened(self.waiter, _MOST_NAMED)
        waits = f", and {waiter} waits for their GPUs" if waiter else ""
        return f"all its pods have been idle since {write_moment(self.since)}{waits}"


class Dues(NamedTuple):
    """
    When an idle owner goes by itself, when while somebody waits for its GPUs, and first of both.
    """

    first: Due
    usual: Due | None
    contended: Due | None


def dues(
    owner: OwnerState, since: float, waiter: str, hold: Hold | None, rules: ReleaseRules
) -> Dues | None:
    """Return when an idle owner goes; None where it does not."""
    usual = _due(owner, since, "", hold, rules)
    contended = _due(owner, since, waiter, hold, rules) if waiter else None
    known = (each for each in (usual, contended) if each is not None)
    first = min(known, key=lambda each: each.deadline, default=None)
    return None if first is None else Dues(first, usual, contended)


def announced(
    times: Dues, before: NoticeGiven, now: float
) -> tuple[NoticeGiven, tuple[Due, Announcement] | None]:
    """
    Return what holds of an owner's announcements with what is said now, and by which of its times
    it goes.

    Those of the two times are apart: whoever waits, and goes again, leaves an owner the time that
    it was to go at anyway, and the notice it had.
    """
    each_time = (times.usual, times.contended)
    given = [
        None if item is None else _announcement(item, old, now)
        for item, old in zip(each_time, before, strict=True)
    ]
    pairs = zip(each_time, given, strict=True)
    known = [(item, each) for item, each in pairs if item is not None and each is not None]
    return NoticeGiven(*given), min(known, key=lambda pair: pair[1].deadline, default=None)


def _announcement(item: Due, said: Announcement | None, now: float) -> Announcement | None:
    """
    Return what holds of an owner's announcement: the one that was made, unless a new one lets it go
    sooner; None where it is not time for that yet.

    Nobody goes sooner than was said, or before it was said for the whole time of notice. One that
    told neither this deadline nor a later one holds if it was made in time: what was said before a
    day of keeping does not.
    """
    holding = []
    least, in_time = item.deadline - _SLACK_SECONDS, item.deadline - item.lead_seconds
    if said is not None and (said.deadline >= least or said.at >= in_time - _SLACK_SECONDS):
        deadline = max(item.deadline, said.deadline, said.at + item.lead_seconds)
        holding.append(said._replace(deadline=deadline))
    if now >= in_time:
        holding.append(Announcement(now, max(item.deadline, now + item.lead_seconds)))
    return min(holding, key=lambda each: each.deadline, default=None)


def _due(
    owner: OwnerState, since: float, waiter: str, hold: Hold | None, rules: ReleaseRules
) -> Due | None:
    if owner.words is None or objection(owner, contended=bool(waiter)):
        return None
    threshold = owner.words.contended_seconds if waiter else owner.words.after_seconds
    deadline = since + threshold
    if hold is not None:
        deadline = max(deadline, hold.until)
    lead = min(rules.notice_seconds, threshold / 2)
    return Due(owner, since, deadline, threshold, lead, waiter)


def _can_go(owner: OwnerState, now: float, rules: ReleaseRules) -> bool:
    return (
        owner.rung is IdleRung.RELEASE
        and not objection(owner, contended=True)
        and latest_hold(owner, now, rules) is None
    )
