"""
Writing a snapshot as JSON: amounts as quantities, times as seconds, null for what nobody can tell.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpufence.quantity import write_bytes

if TYPE_CHECKING:
    from gpufence.snapshot.model import (
        CardRow,
        NobodyRow,
        OwnerRow,
        PodRow,
        ProcessRow,
        Snapshot,
        UseRow,
    )

VERSION: Final = 1

_MILLISECONDS = 3


def write_snapshot(said: Snapshot) -> str:
    """
    Write one line of JSON, keys in a fixed order; times are kept to the millisecond.
    """
    whole = {
        "v": VERSION,
        "node": said.node,
        "version": said.version,
        "at": said.at,
        "started": said.started,
        "driver": said.driver,
        "highest": said.highest,
        "fresh": said.fresh,
        "stale": _seconds(said.stale_seconds),
        "brake": said.brake,
        "trouble": said.trouble,
        "cards": [_card(row) for row in said.cards],
        "pods": [_pod(row) for row in said.pods],
        "nobody": [_nobody(row) for row in said.nobody],
        "owners": [_owner(row) for row in said.owners],
    }
    return json.dumps(whole, separators=(",", ":"), allow_nan=False)


def _card(row: CardRow) -> dict[str, object]:
    return {
        "uuid": row.uuid,
        "index": row.index,
        "model": row.model,
        "total": _amount(row.total_bytes),
        "used": _amount(row.used_bytes),
        "free": _amount(row.free_bytes),
        "reserved": _amount(row.reserved_bytes),
        "committed": _amount(row.committed_bytes),
        "unattributed": _amount(row.unattributed_bytes),
        "listed": _seconds(row.listed_seconds_ago),
        "mps": row.mps,
        "trouble": row.trouble,
    }


def _pod(row: PodRow) -> dict[str, object]:
    return {
        "uid": row.uid,
        "namespace": row.namespace,
        "name": row.name,
        "mode": row.mode,
        "owner": row.owner,
        "injected": row.injected,
        "undeclared": row.undeclared,
        "terminating": row.terminating,
        "uses": [_use(use) for use in row.uses],
    }


def _use(row: UseRow) -> dict[str, object]:
    return {
        "card": row.card,
        "used": _amount(row.used_bytes),
        "limit": _amount(row.limit_bytes),
        "allowance": _amount(row.allowance_bytes),
        "outcome": row.outcome,
        "over": _seconds(row.over_seconds),
        "due": _seconds(row.due_seconds),
        "processes": [_process(process) for process in row.processes],
    }


def _process(row: ProcessRow) -> dict[str, object]:
    said: dict[str, object] = {"pid": row.pid, "used": _amount(row.used_bytes)}
    if row.container:
        said["container"] = row.container
    if row.command:
        said["command"] = row.command
    return said


def _nobody(row: NobodyRow) -> dict[str, object]:
    return {"card": row.card, **_process(row.process)}


def _owner(row: OwnerRow) -> dict[str, object]:
    return {
        "namespace": row.namespace,
        "kind": row.kind,
        "name": row.name,
        "limit": _amount(row.limit_bytes),
        "peak": _amount(row.peak_bytes),
        "over": _seconds(row.over_seconds),
        "processes": row.processes,
        "injected": row.injected,
        "pods": row.pods,
        "evictions": row.evictions,
    }


def _amount(amount: int | None) -> str | None:
    return None if amount is None else write_bytes(amount, largest="Mi")


def _seconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, _MILLISECONDS)
