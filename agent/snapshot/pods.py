"""
PURE. The pods of a snapshot: those that hold memory, and those that are fenced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.model.use import allowance_bytes
from gpufence.snapshot import PodRow, ProcessRow, UseRow

if TYPE_CHECKING:
    from agent.model.decision import Verdict
    from agent.model.pod import PodOnNode
    from agent.model.state import TickResult
    from agent.model.use import PodUse, ProcessUse


def pod_rows(look: TickResult, *, current: bool) -> tuple[PodRow, ...]:
    """
    Return a row for each, by namespace and name.
    """
    held: dict[str, dict[str, PodUse]] = {}
    for uuid, card in look.use.cards.items():
        for uid, use in card.pods.items():
            held.setdefault(uid, {})[uuid] = use
    verdicts: dict[str, dict[str, Verdict]] = {}
    for verdict in look.decision.verdicts:
        of_pod = verdicts.setdefault(verdict.pod.uid, {})
        if verdict.card is not None:
            of_pod[verdict.card.card.uuid] = verdict
    known = look.pods.by_uid
    rows = [
        _pod(known[uid], held.get(uid, {}), verdicts.get(uid, {}), current=current)
        for uid in held.keys() | verdicts.keys()
        if uid in known
    ]
    return tuple(sorted(rows, key=lambda row: (row.namespace, row.name, row.uid)))


def process_row(process: ProcessUse, command: str = "") -> ProcessRow:
    return ProcessRow(process.pid, process.used_bytes, process.container, command)


def _pod(
    pod: PodOnNode, held: dict[str, PodUse], verdicts: dict[str, Verdict], *, current: bool
) -> PodRow:
    owner = "" if pod.controller is None else f"{pod.controller.kind}/{pod.controller.name}"
    return PodRow(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        mode="" if pod.mode is None else str(pod.mode),
        owner=owner,
        injected=pod.injected,
        undeclared=pod.undeclared,
        terminating=pod.terminating,
        uses=tuple(
            _use(pod, uuid, held[uuid], verdicts.get(uuid), current=current)
            for uuid in sorted(held)
        ),
    )


def _use(
    pod: PodOnNode, uuid: str, use: PodUse, verdict: Verdict | None, *, current: bool
) -> UseRow:
    limit = pod.limits.get(uuid)
    return UseRow(
        card=uuid,
        used_bytes=use.used_bytes if current else None,
        limit_bytes=None if limit is None else limit.limit_bytes,
        allowance_bytes=allowance_bytes(pod, use),
        outcome="" if verdict is None else str(verdict.outcome),
        over_seconds=0.0 if verdict is None else verdict.over_seconds,
        due_seconds=None if verdict is None else verdict.due_seconds,
        processes=tuple(process_row(item) for item in use.processes) if current else (),
    )
