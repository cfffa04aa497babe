"""
PURE. The whole story of one pod for programs: what the chapters say, with exact amounts, and null
for what nobody can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.plan import Done
from kubectl_gpufence.cluster_view import card_of, is_stale
from kubectl_gpufence.said import said_document
from kubectl_gpufence.verbs.explain.chapters import why_unmeasured
from kubectl_gpufence.verbs.explain.loans import loan_document
from kubectl_gpufence.verbs.explain.record import to_do, what_will_be
from kubectl_gpufence.view import exact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.plan import ContainerPlan, Setting
    from gpufence.snapshot import PodActivityRow, Snapshot, UseRow
    from kubectl_gpufence.verbs.explain.record import PodRecord


def document(record: PodRecord) -> dict[str, object]:
    """Write the record; `mode` is that of the namespace, null where it cannot be read."""
    pod = record.pod
    return {
        "v": 1,
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "phase": pod.phase,
        "terminating": pod.terminating,
        "node": pod.node,
        "owner": pod.owner,
        "mode": record.mode,
        "declared": _declared(record),
        "injected": _injected(record),
        "warnings": list(record.warnings),
        "measured": _measured(record),
        "ended": [ending._asdict() for ending in record.pod.endings],
        "events": [
            {"at": item.at, "reason": item.reason, "times": item.times, "message": item.message}
            for item in record.events
        ],
        "follows": list(what_will_be(record)),
        "to_do": list(to_do(record)),
    }


def _declared(record: PodRecord) -> dict[str, object]:
    declaration = record.pod.declaration
    return {
        "limit": exact(declaration.limit_bytes),
        "dialect": declaration.dialect,
        "basis": declaration.basis,
        "enforced": declaration.enforced,
        "why_not": declaration.why_not,
        "containers": {item.name: dict(item.gpu) for item in record.pod.pod.containers if item.gpu},
    }


def _injected(record: PodRecord) -> dict[str, object]:
    """
    Write what the plan says; without one there is only what the webhook did, and why that is all.
    """
    pod, plan = record.pod, record.pod.recorded.plan
    return {
        "outcome": pod.injected,
        "trouble": pod.recorded.trouble,
        "mode": None if plan is None else str(plan.mode),
        "limit": None if plan is None else exact(plan.limit_bytes),
        "told": exact(pod.told_bytes),
        "exact": names.NODE in pod.annotations,
        "card": pod.annotations.get(names.CARD, ""),
        "containers": {
            name: _container(item, pod.annotations)
            for name, item in ({} if plan is None else plan.containers).items()
        },
    }


def _container(item: ContainerPlan, annotations: Mapping[str, str]) -> dict[str, object]:
    return {
        "limit": exact(item.limit_bytes),
        "told": exact(item.cap_bytes),
        "processes": item.processes,
        "headroom": str(item.headroom),
        "runs": item.runs,
        "settings": [_setting(setting, annotations) for setting in item.settings],
    }


def _setting(item: Setting, annotations: Mapping[str, str]) -> dict[str, object]:
    """Write a variable or flag; `value` is null where it is the user's own and cannot be read."""
    left = item.done is Done.LEFT
    slot = annotations.get(f"{names.ENV_PREFIX}{item.slot}") if item.slot else item.user
    return {
        "name": item.env,
        "value": None if left else slot,
        "done": str(item.done),
        "yours": item.user,
        "limit": exact(item.limit_bytes),
        "reserve": exact(item.reserve_bytes),
        "card": exact(item.card_bytes),
        "allowance": exact(item.allowance_bytes),
    }


def _measured(record: PodRecord) -> dict[str, object]:
    """
    Write what the agent says; `unknown` tells why it says nothing, `stale` how old its sample is.
    """
    snapshot, row = record.snapshot, record.row
    if snapshot is None or row is None:
        said = None if record.said is None else said_document(record.said)
        why = why_unmeasured(record)
        return {"unknown": why, "stale": None, "activity": None, "cards": [], "said": said}
    fresh = not is_stale(snapshot)
    return {
        "unknown": "",
        "stale": 0.0 if fresh else snapshot.stale_seconds,
        "activity": _activity(row.activity) if fresh and row.activity else None,
        "cards": [_use(use, snapshot) for use in row.uses],
        "said": None,
    }


def _use(use: UseRow, snapshot: Snapshot) -> dict[str, object]:
    card = card_of(snapshot, use.card)
    return {
        "card": use.card,
        "index": card.index if card else None,
        "model": card.model if card else None,
        "total": exact(card.total_bytes) if card else None,
        "limit": exact(use.limit_bytes),
        "used": exact(use.used_bytes),
        "outcome": use.outcome,
        "fence": use.fence,
        "over": use.over_seconds,
        "due": use.due_seconds,
        **loan_document(use),
        "processes": [
            {"pid": item.pid, "container": item.container, "used": exact(item.used_bytes)}
            for item in use.processes
        ],
    }


def _activity(row: PodActivityRow) -> dict[str, object]:
    return {
        "state": row.state,
        "idle": row.idle_seconds,
        "evidence": row.evidence,
        "why": row.why,
        "busy_share": row.busy_share,
    }
