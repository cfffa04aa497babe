"""
PURE. How a pod stands on one card in one sample, before any time is counted, and what is worth
saying about a card, a container or a process, whoever is to blame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent.judge.loans import recalled_of
from agent.judge.time import BucketRules, is_due, pause, pour
from agent.model.decision import Blame, CardFinding, ContainerExcess, Ineffective, Shortage
from gpufence.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from agent.judge.brakes import Tick
    from agent.model.memory import Bucket
    from agent.model.pod import PodsOnNode
    from agent.model.policy import EvictionPolicy
    from agent.model.use import CardUse, PodOnCard


class CardAccount(NamedTuple):
    """
    One card's ledger in one tick: the limits of the pods on it, and what of them the pods that are
    fenced do not hold yet.

    `missing_bytes` is None where the card does not say how much is free, and more than zero where
    the card is short: it is `owing` where less is free than is owed, and `hardly_any` is free below
    the floor, where the next context of another pod would not fit. `missed_bytes` is the same
    without what idle pods lend, `lent_bytes` what is borrowed by pods that stay.
    """

    committed_bytes: int
    owed_bytes: int
    missing_bytes: int | None
    owing: bool | None
    hardly_any: bool | None
    missed_bytes: int = 0
    lent_bytes: int = 0


def account_of(
    card: CardUse, pods: PodsOnNode, policy: EvictionPolicy, lending: Container[str] = ()
) -> CardAccount:
    """
    Add up a card. Promises beyond its memory are cut to what is left of it beside what is held
    within them; a pod whose use is unknown may hold all of its own. `lending` are idle pods.

    Processes of no pod do not count as neighbours: they may be a pod's own, unrecognised.
    """
    uuid, memory = card.card.uuid, card.memory
    total = card.card.memory_bytes if memory is None else memory.total_bytes
    committed = held = owed = idle = loans = holding = 0
    for use in card.pods.values():
        used, limit, promise = use.used_bytes, use.limit_bytes, use.pod.promise_on(uuid)
        if limit is not None:
            own = use.pod.limits.get(uuid)
            committed += min((own and own.share_bytes) or limit, total)
        if used or use.counted_bytes:
            holding += 1
        if promise is None:
            continue
        held += promise if used is None else min(used, promise)
        left = 0 if used is None else max(promise - used, 0)
        owed += left
        idle += left if use.pod.uid in lending else 0
        loans += use.borrowed_bytes
    for pod in pods.by_card.get(uuid, ()):
        if pod.uid not in card.pods:
            left = pod.promise_on(uuid) or 0
            owed += left
            idle += left if pod.uid in lending else 0
    if memory is None:
        return CardAccount(committed, owed, None, None, None)
    free = memory.free_bytes
    room = max(total - (memory.reserved_bytes or 0) - held, 0)
    missed, owed = min(owed - idle, room), min(owed, room)
    hardly_any = free < policy.short_floor_bytes and (holding > 1 or owed > 0)
    floor = policy.short_floor_bytes - free if hardly_any else 0
    missing, missed = max(owed - free, floor, 0), max(missed - free, floor, 0)
    return CardAccount(committed, owed, missing, owed > free, hardly_any, missed, loans)


def standing(use: PodOnCard, account: CardAccount, policy: EvictionPolicy) -> PodOnCard:
    """
    Fill in which thresholds a pod is over. A shortage matters only above the limit; without a limit
    nobody knows.

    A client of the node's MPS server has its pod reported, and is left out of the account of one
    that is over without it.
    """
    limit, used = use.limit_bytes, use.used_bytes
    if use.borrowed_bytes and account.missed_bytes:
        request = use.pod.request_on(use.card.uuid) or 0
        use = use._replace(recalled=_is_over(use, policy.evict_threshold(request)))
    if used == 0 or (used is not None and limit is not None and used <= limit):
        return use
    if limit is None:
        return use._replace(report_over=None, evict_over=None, short_over=None, taking=None)
    threshold = policy.evict_threshold(limit)
    short = account.hardly_any
    least = min(threshold, limit + policy.short_margin_bytes) if short else threshold
    if use.mps and use.own_bytes > least:
        use = use._replace(mps=False, counted_bytes=use.own_bytes, mps_bytes=0)
    evict_over = _is_over(use, threshold)
    return use._replace(
        report_over=_is_over(use, limit + policy.report_margin_bytes),
        evict_over=evict_over,
        short_over=_is_over(use, limit + policy.short_margin_bytes) if short else short,
        taking=evict_over if account.owing else account.owing,
        short=bool(account.missing_bytes),
        speed=policy.speed((use.counted_bytes or 0) - limit),
    )


def shortage_of(
    card: CardUse,
    account: CardAccount,
    uses: Sequence[PodOnCard],
    leaving: Container[str] = (),
    coming: tuple[tuple[str, int], ...] = (),
) -> Shortage:
    """
    Find out whose eviction ends a card's shortage: the largest excess first, no more than needed.

    Where all of them together do not, those who can be blamed for at least half of what stays
    missing after all that is `coming` go all the same, so that nobody shields them by holding a
    little that no fence counts. A pod within the margin stays whenever more than its excess is held
    by those whom no eviction reaches.

    What is lent is no pod's excess. Where it is missed, pods over their limits go first for that.
    """
    lent = account.lent_bytes
    missing = (account.missing_bytes or 0) - lent
    able = [use for use in uses if can_go(use) and use.pod.uid not in leaving]
    beyond = _beyond(card, uses, {use.pod.uid for use in able})
    others = sum(item.held_bytes for item in beyond) + lent
    borrowers = [use for use in able if use.recalled]
    able = [
        use for use in able if use.evict_over or (use.short_over and others <= use.excess_bytes)
    ]
    able.sort(key=lambda use: (-use.excess_bytes, use.pod.uid))
    if sum(use.excess_bytes for use in able) < missing:
        able = [use for use in able if use.evict_over and (use.pod.injected or use.pod.unasked)]
        if 2 * sum(use.excess_bytes for use in able) < missing - sum(freed for _, freed in coming):
            able = []
    curing: list[str] = []
    left, missed = max(missing, account.missed_bytes), account.missed_bytes
    short = Shortage(max(left, 0), frozenset(), None, coming, missed)
    for use in able:
        if left > 0:
            curing.append(use.pod.uid)
            left -= use.excess_bytes + use.borrowed_bytes
            missed -= use.excess_bytes + use.borrowed_bytes
    recalled: list[str] = []
    if missed > 0 and lent:
        recalled = recalled_of(borrowers, curing, missed, sum(freed for _, freed in coming))
        beyond += [
            Blame(use.borrowed_bytes, use.pod, above="request") for use in uses if use.recalled
        ]
    cause = None
    if beyond and not curing and not recalled:
        cause = max(beyond, key=lambda item: item.held_bytes)
    return short._replace(curing=frozenset(curing), recalled=frozenset(recalled), cause=cause)


def cures(use: PodOnCard, shortage: Shortage) -> bool:
    """
    Return whether a pod goes to end a shortage, or would in a higher mode, or if it did not end.
    """
    if use.pod.mode is Mode.EVICT and not use.pod.terminating:
        return use.pod.uid in shortage.curing
    return use.evict_over is True and 2 * use.excess_bytes >= shortage.missing_bytes


def recalls(use: PodOnCard, shortage: Shortage) -> bool:
    """Return the same of a pod that borrows what others miss."""
    if use.pod.mode is Mode.EVICT and not use.pod.terminating:
        return use.pod.uid in shortage.recalled or use.pod.uid in shortage.curing
    return use.recalled is True and 2 * use.borrowed_bytes >= shortage.recalled_bytes


def can_go(use: PodOnCard) -> bool:
    """Return whether a pod would be evicted if it were over its limit for long enough."""
    pod = use.pod
    if use.limit_bytes is None or pod.mode is not Mode.EVICT:
        return False
    return pod.enforced and not pod.exempt and not pod.terminating and not use.mps


def _beyond(card: CardUse, uses: Sequence[PodOnCard], able: Container[str]) -> list[Blame]:
    """
    Name what no eviction gives back: pods without a fence, the excess of pods that are not to go,
    processes of no pod, and memory that no process shows.
    """
    uuid = card.card.uuid
    unfenced = [
        Blame(use.certain_bytes, use.pod)
        for use in card.pods.values()
        if use.certain_bytes and use.pod.promise_on(uuid) is None
    ]
    staying = [
        Blame(use.excess_bytes, use.pod)
        for use in uses
        if use.excess_bytes and use.pod.promise_on(uuid) is not None and use.pod.uid not in able
    ]
    reserved = 0 if card.memory is None else card.memory.reserved_bytes or 0
    hidden = max((card.unlisted_bytes or 0) - reserved, 0)
    nobodys = [Blame(card.unattributed_bytes or 0), Blame(hidden, hidden=True)]
    return [item for item in (*unfenced, *staying, *nobodys) if item.held_bytes]


def containers_over(use: PodOnCard, policy: EvictionPolicy) -> tuple[ContainerExcess, ...]:
    """Name the containers over their part of the pod's limit: an event, never an eviction."""
    limit = use.pod.limits.get(use.card.uuid)
    parts = None if limit is None else limit.parts
    if not parts:
        return ()
    return tuple(
        ContainerExcess(name, used, parts[name])
        for name, used in sorted((use.containers or {}).items())
        if name in parts and used > parts[name] + policy.report_margin_bytes
    )


def ineffective_caps(use: PodOnCard, policy: EvictionPolicy) -> tuple[Ineffective, ...]:
    """
    Name the processes above what their framework was told, its context and some slack; where none
    is known that keeps to it, those above the limit alone.
    """
    caps = use.pod.caps
    if not caps:
        return ()
    above = []
    for process in use.processes:
        cap, used = caps.get(process.container), process.certain_bytes
        if cap is None or used is None or not process.confirmed:
            continue
        allowed = cap.cap_bytes + cap.reserve_bytes
        least = allowed if cap.kept else max(allowed, use.limit_bytes or allowed)
        if used > least + policy.cap_slack_bytes:
            above.append(Ineffective(process.container, process.pid, used, allowed))
    return tuple(above)


def lasting(past: Bucket, card: CardUse, tick: Tick, *, over: bool | None) -> Bucket:
    """
    Count for how long something holds of a card that is worth an Event.

    Nobody is evicted for it, so lists as far apart as they come are close enough.
    """
    if card.listed_at is None:
        return pause(past)
    if card.card.uuid not in tick.renewed:
        return past
    hold = tick.policy.unattributed_hold_seconds
    return pour(past, BucketRules(card.listed_at, hold, gap_seconds=hold), over=over)


def finding(
    card: CardUse,
    account: CardAccount,
    nobodys: Bucket,
    short: Bucket,
    tick: Tick,
    suspect: bool,  # noqa: FBT001 - one caller, one table
) -> CardFinding:
    """
    Sum up a card: the limits of the pods on it, none counted as more than the card, and when the
    time of its pods could last be counted, of which there is none where no pod is `suspect`.
    """
    uuid, listed = card.card.uuid, card.listed_at
    gap = tick.list_gaps.get(uuid)
    counts = gap is None or (listed is not None and listed - tick.memory.listed[uuid] <= gap)
    judged = not suspect or (uuid in tick.renewed and counts)
    total = card.card.memory_bytes if card.memory is None else card.memory.total_bytes
    hold = tick.policy.unattributed_hold_seconds
    return CardFinding(
        card=card,
        committed_bytes=account.committed_bytes,
        overcommitted=account.committed_bytes > total,
        unattributed_bytes=card.unattributed_bytes if is_due(nobodys, hold) else None,
        owed_bytes=account.owed_bytes,
        shortage=tick.shortages.get(card.card.uuid) if is_due(short, hold) else None,
        unjudged_seconds=0.0 if judged else tick.now - tick.memory.judged.get(uuid, tick.now),
    )


def _is_over(use: PodOnCard, threshold: int) -> bool | None:
    """
    Return whether a pod is over a threshold; None where the truth may lie on either side.

    What confirmed processes hold makes it over, what all processes hold together makes it under:
    one of which the driver does not say how much it holds keeps its pod from being under.
    """
    if use.counted_bytes is not None and use.counted_bytes > threshold:
        return True
    return None if use.used_bytes is None or use.used_bytes > threshold else False
