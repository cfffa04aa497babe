"""
PURE. How each owner stands, and what is done about it now: announced, released after a last look,
brought back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from controller.decide.brakes import brake, refusal, releases_left, watched_turns
from controller.decide.deadlines import demands, dues, soonest, told
from controller.decide.demand import waiting_pods
from controller.decide.notes import command, note_act, release_act, replicas_text
from controller.decide.owners import IDLE_STATE, KEPT, UNKNOWN, idleness, objection
from controller.decide.room import Places
from controller.decide.waking import waking
from controller.model import Act, NoticeGiven, ReleaseDecision, Standing, Step, Way
from gpufence import names
from gpufence.idle import IdleRung, ReleasePhase
from gpufence.times import write_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.decide.deadlines import Due, Dues
    from controller.decide.owners import Idleness
    from controller.model import (
        Announcement,
        ClusterState,
        OwnerKey,
        OwnerState,
        PodState,
        ReleaseMemory,
    )
    from controller.rules import ReleaseRules

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
    return one.decision()


class _Pass:
    """
    One pass over all owners; each step leaves those to the next ones that it has not decided on.
    """

    def __init__(self, world: ClusterState, memory: ReleaseMemory, rules: ReleaseRules) -> None:
        self._world = world
        self._places = Places(world)
        self._memory = memory
        self._rules = rules
        self._brake = brake(world, memory)
        self._waiters: Sequence[PodState] = waiting_pods(world, rules)
        self._left = dict(world.owners)
        self._standings: dict[OwnerKey, Standing] = {}
        self._acts: list[Act] = []
        self._announced: dict[str, NoticeGiven] = {}
        self._free_since: dict[OwnerKey, float] = {}

    def finish_acts(self) -> None:
        """Write down what owners' notes do not say yet, and finish what was cut short."""
        for owner in list(self._left.values()):
            act = note_act(owner, self._places, self._rules)
            if act is not None:
                del self._left[owner.key]
                found = idleness(owner, self._rules)
                why = act.message or "what is noted of its release is brought up to date"
                self._standings[owner.key] = Standing(owner.key, act.step, found.state, why)
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
                owner, note, self._places, self._waiters, self._memory.free_since, self._rules
            )
            if found.free_since is not None:
                self._free_since[owner.key] = found.free_since
            self._standings[owner.key] = found.standing
            if found.act is not None and not any(act.step is Step.WAKE for act in self._acts):
                self._do(found.act)

    def find_due(self) -> list[Dues]:
        """
        Return the idle owners that go, those for whom somebody waits first, then the longest idle.
        """
        found = {key: idleness(owner, self._rules) for key, owner in self._left.items()}
        demanded = demands(self._world, self._waiters, found, self._rules)
        items = []
        for key, each in found.items():
            owner, waiter = self._left[key], demanded.get(key, "")
            times = None
            if each.since is not None:
                times = dues(owner, each.since, waiter, self._world.now, self._rules)
            item = None if times is None else times.first
            self._standings[key] = _standing(owner, each, waiter, item)
            items += [] if times is None else [times]
        return sorted(items, key=_turn)

    def go(self, items: Sequence[Dues]) -> None:
        """Announce who goes soon, and release who is ripe, as many as may go in a minute."""
        if self._brake:
            return
        now = self._world.now
        left = releases_left(self._world, self._memory, self._rules)
        for times in items:
            key, uid = times.first.owner.key, times.first.owner.uid
            before = self._memory.announced.get(uid, NoticeGiven())
            said = told(times, before, now)
            next_one = soonest(times, said)
            if next_one is None:
                continue
            item, first = next_one
            self._announced[uid] = said
            self._standings[key] = self._standings[key]._replace(deadline=first.deadline)
            if first.at == now and first not in before:
                self._acts.append(_announce(item, first))
                self._standings[key] = self._standings[key]._replace(step=Step.ANNOUNCE)
            elif now >= first.deadline and item.owner.rung is IdleRung.RELEASE:
                left -= self._release(item, left)

    def _release(self, item: Due, left: int) -> int:
        """Release an owner unless something speaks against it just now; return how many went."""
        key, now = item.owner.key, self._world.now
        if left < 1:
            most = self._rules.per_minute
            self._standings[key] = self._standings[key]._replace(
                why=f"its time is up, but only {most} owners go in a minute"
            )
            return 0
        why = f"all its pods have been idle since {write_moment(item.since)}{_for_whom(item)}"
        self._standings[key] = self._standings[key]._replace(step=Step.RELEASE, why=why)
        return self._do(release_act(item.owner, why, now, item.threshold_seconds))

    def _do(self, act: Act) -> int:
        """
        Do it, unless just that was refused a moment ago: others go first. Return how many are done.
        """
        against = refusal(self._memory, act.key, self._world.now)
        if against and act.replicas is not None:
            standing = self._standings[act.key]
            why = f"{act.step} was called off a moment ago: {against}"
            self._standings[act.key] = standing._replace(step=Step.NOTHING, why=why)
            return 0
        self._acts.append(act)
        return 1

    def decision(self) -> ReleaseDecision:
        memory = replace(self._memory, announced=self._announced, free_since=self._free_since)
        return ReleaseDecision(self._standings, tuple(self._acts), memory, self._brake)


def _turn(times: Dues) -> tuple[bool, float, OwnerKey]:
    return times.contended is None, times.first.since, times.first.owner.key


def _standing(owner: OwnerState, found: Idleness, waiter: str, item: Due | None) -> Standing:
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
    if item is None:
        return standing._replace(why=objection(owner, contended=bool(waiter)))
    standing = standing._replace(deadline=item.deadline)
    if item.hold is not None:
        state = KEPT if item.hold.kept else found.state
        return standing._replace(state=state, why=item.hold.why)
    if owner.rung is IdleRung.WARN:
        return standing._replace(why=f"{found.why}; {_IDLE_WARN}")
    return standing


def _announce(item: Due, said: Announcement) -> Act:
    owner = item.owner
    what = replicas_text(owner.replicas or 0)
    idle = f"all its pods have been idle since {write_moment(item.since)}{_for_whom(item)}"
    at = write_moment(said.deadline)
    if owner.rung is IdleRung.WARN:
        message = f"{idle}: {what} would be released at {at}; {_IDLE_WARN}"
    else:
        message = f"{idle}: {what} will be released at {at}; {command('keep', owner)} keeps it"
    return Act(
        Step.ANNOUNCE,
        owner.key,
        names.IDLE_WARNING,
        message,
        threshold_seconds=item.threshold_seconds,
        uid=owner.uid,
        version=owner.version,
    )


def _for_whom(item: Due) -> str:
    return f", and {item.waiter} waits for their GPUs" if item.waiter else ""
