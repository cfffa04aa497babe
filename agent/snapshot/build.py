"""
PURE. One moment in rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.snapshot.pods import pod_rows, process_row
from gpufence.snapshot import CardRow, NobodyRow, OwnerRow, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.model.sample import CardSample
    from agent.model.state import About, AgentState, OwnerTally, TickResult
    from agent.model.use import CardUse


def snapshot_of(state: AgentState, about: About, now: float, at: str) -> Snapshot:
    """
    Say all that is known; `at` is the time of day of `now`.

    A look that is too old keeps its cards and pods, but every figure of theirs is unknown.
    """
    look = state.last
    status = about.cluster
    current = state.is_current(now, about.gap_seconds)
    return Snapshot(
        node=about.node,
        version=about.version,
        at=at,
        started=about.started,
        driver="" if look is None else look.sample.driver,
        highest="" if status is None or not status.synced else str(status.highest),
        fresh=status is not None and status.fresh,
        stale_seconds=None if state.measured_at is None else max(now - state.measured_at, 0.0),
        brake="" if look is None or look.decision.brake is None else str(look.decision.brake),
        trouble=_trouble(look, current=current),
        cards=() if look is None else tuple(_cards(look, now, current=current)),
        pods=() if look is None else pod_rows(look, current=current),
        nobody=() if look is None or not current else tuple(_nobody(look)),
        owners=tuple(_owner(item) for _, item in sorted(state.ledger.owners.items())),
    )


def _trouble(look: TickResult | None, *, current: bool) -> str:
    if look is None:
        return "the cards have not been looked at yet"
    if not current:
        return "the cards have not been looked at for too long"
    return look.sample.trouble.text or "; ".join(map(str, look.sample.unidentified))


def _cards(look: TickResult, now: float, *, current: bool) -> Iterator[CardRow]:
    samples = {item.card.uuid: item for item in look.sample.cards}
    for use in sorted(look.use.cards.values(), key=lambda item: (item.card.index, item.card.uuid)):
        yield _card(look, use, samples[use.card.uuid], now, current=current)


def _card(
    look: TickResult, use: CardUse, sample: CardSample, now: float, *, current: bool
) -> CardRow:
    card = use.card
    memory = use.memory if current else None
    listed = use.listed_at if current else None
    found = look.decision.findings.get(card.uuid)
    return CardRow(
        uuid=card.uuid,
        index=card.index,
        model=card.model,
        total_bytes=card.memory_bytes if memory is None else memory.total_bytes,
        used_bytes=None if memory is None else memory.used_bytes,
        free_bytes=None if memory is None else memory.free_bytes,
        reserved_bytes=None if memory is None else memory.reserved_bytes,
        committed_bytes=0 if found is None else found.committed_bytes,
        unattributed_bytes=use.unattributed_bytes if current else None,
        listed_seconds_ago=None if listed is None else max(now - listed, 0.0),
        mps=use.mps,
        trouble=sample.trouble.text,
    )


def _nobody(look: TickResult) -> Iterator[NobodyRow]:
    for uuid, use in look.use.cards.items():
        for process in use.processes:
            if not process.pod_uid:
                command = "" if process.occupant is None else process.occupant.command
                yield NobodyRow(uuid, process_row(process, command))


def _owner(tally: OwnerTally) -> OwnerRow:
    return OwnerRow(
        namespace=tally.namespace,
        kind=tally.kind,
        name=tally.name,
        limit_bytes=tally.limit_bytes,
        peak_bytes=tally.peak_bytes,
        over_seconds=tally.over_seconds,
        processes=tally.processes,
        injected=tally.injected,
        pods=tally.pods,
        evictions=tally.evictions,
    )
