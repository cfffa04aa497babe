"""
PURE. What the pods of each owner did on this node since the agent started: the ground for a report.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent.model.state import Ledger, OwnerTally

if TYPE_CHECKING:
    from agent.model.decision import Decision, Verdict
    from agent.model.memory import Lineage
    from agent.model.pod import PodOnNode
    from agent.model.use import Observation, PodOnCard

MOST_OWNERS: Final = 512
"""More than have GPU pods on a node in weeks; who has been away for longest is forgotten first."""
_SEEN_SECONDS: Final = 60.0  # how exactly it is known when an owner was seen last
_PASS_SECONDS: Final = 15.0  # from one look at all pods to the next, while nothing changes


def entered(
    ledger: Ledger,
    observation: Observation,
    before: Observation | None,
    decision: Decision,
    most_seconds: float,
) -> Ledger:
    """
    Enter one tick. Time over since the last one counts up to `most_seconds`: nobody looked longer.

    While nobody holds anything else than `before`, only that time is entered.
    """
    now = decision.at
    seconds = 0.0 if ledger.at is None else min(max(now - ledger.at, 0.0), most_seconds)
    owners, counted, entered_at = dict(ledger.owners), ledger.counted, ledger.entered_at
    if now - entered_at >= _PASS_SECONDS or not observation.shows_what(before):
        counted, entered_at = _pods(owners, counted, observation, decision), now
        owners = _bounded(owners)
    for lineage in {item.pod.lineage for item in decision.verdicts if item.over} & owners.keys():
        past = owners[lineage]
        owners[lineage] = past._replace(over_seconds=past.over_seconds + seconds)
    return Ledger(owners, counted, now, entered_at)


def evicted(ledger: Ledger, pod: PodOnNode) -> Ledger:
    """Enter an eviction that was accepted."""
    past = ledger.owners.get(pod.lineage)
    if past is None:
        return ledger
    more = {pod.lineage: past._replace(evictions=past.evictions + 1)}
    return replace(ledger, owners={**ledger.owners, **more})


def _pods(
    owners: dict[Lineage, OwnerTally],
    counted: frozenset[str],
    observation: Observation,
    decision: Decision,
) -> frozenset[str]:
    """Enter what every pod holds, and return the pods that are there and counted."""
    known = observation.pods.by_uid
    present = {uid for uid in counted if uid in known}
    for card in observation.cards.values():
        for uid, use in card.pods.items():
            if uid in known:
                _seen(owners, use.pod, decision.at, new=uid not in present)
                _peak(owners, use)
                present.add(uid)
    for verdict in decision.verdicts:
        if verdict.limit_bytes is not None:
            _limit(owners, verdict)
    return frozenset(present)


def _seen(owners: dict[Lineage, OwnerTally], pod: PodOnNode, now: float, *, new: bool) -> None:
    lineage = pod.lineage
    past = owners.get(lineage)
    if past is None:
        made_by = pod.controller
        kind, name = ("Pod", pod.name) if made_by is None else (made_by.kind, made_by.name)
        past = OwnerTally(pod.namespace, kind, name)
    elif not new and now - past.seen_at < _SEEN_SECONDS:
        return
    pods = past.pods + (1 if new else 0)
    owners[lineage] = past._replace(pods=pods, injected=pod.injected, seen_at=now)


def _limit(owners: dict[Lineage, OwnerTally], verdict: Verdict) -> None:
    past = owners.get(verdict.pod.lineage)
    if past is not None and past.limit_bytes != verdict.limit_bytes:
        owners[verdict.pod.lineage] = past._replace(limit_bytes=verdict.limit_bytes)


def _peak(owners: dict[Lineage, OwnerTally], use: PodOnCard) -> None:
    past = owners[use.pod.lineage]
    peak = max(past.peak_bytes, use.used_bytes or 0)
    processes = max(past.processes, len(use.processes))
    if (peak, processes) != (past.peak_bytes, past.processes):
        owners[use.pod.lineage] = past._replace(peak_bytes=peak, processes=processes)


def _bounded(owners: dict[Lineage, OwnerTally]) -> dict[Lineage, OwnerTally]:
    if len(owners) <= MOST_OWNERS:
        return owners
    latest = sorted(owners.items(), key=lambda pair: (pair[1].seen_at, pair[0]))
    return dict(latest[-MOST_OWNERS:])
