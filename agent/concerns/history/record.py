"""
PURE. How a pod ended, made of its last minutes, the verdict on it, and how its card stood then.

Last comes the ConfigMap in which records outlive an agent, and what is taken back from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent.concerns.history.ring import course_of, passed_seconds, peak_of
from gpufence import names
from gpufence.errors import InvalidError, Problem
from gpufence.need import top_owner
from gpufence.nodes import configmap_name, kept_configmap
from gpufence.records import (
    EVICTED,
    MOST_NEIGHBOURS,
    RUNNING,
    Neighbour,
    NodeRecords,
    Record,
    Threshold,
    bounded,
    read_records,
    together,
    write_records,
)
from gpufence.shape import Object, as_object, as_text, as_texts
from gpufence.share import reserve_bytes
from gpufence.target import MostHeld, TargetTerms, target_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent.concerns.history.ring import RingMoment
    from agent.model.decision import Verdict
    from agent.model.pod import PodOnNode
    from agent.model.state import TickResult
    from agent.model.use import PodOnCard

_NO_KIND: Final = ("", "")


class CardMoment(NamedTuple):
    """How a card stood for a pod when its eviction was decided."""

    free_bytes: int | None = None
    owed_bytes: int = 0
    neighbours: tuple[Neighbour, ...] = ()


class PastUse(NamedTuple):
    """
    The last minutes of a pod on a card, seen `now` by the agent's clock, which is the time of day
    `at`, RFC 3339.
    """

    moments: Sequence[RingMoment]
    now: float
    at: str


def card_moment(verdict: Verdict, tick: TickResult) -> CardMoment:
    """Return how its card stands for a pod: what the others hold there and are promised."""
    uuid, uid = verdict.uuid, verdict.pod.uid
    card, finding = tick.observation.cards[uuid], tick.decision.findings[uuid]
    holding = [use for use in card.pods.values() if use.pod.uid != uid]
    waiting = [
        pod
        for pod in tick.observation.pods.by_card.get(uuid, ())
        if pod.uid not in card.pods and pod.uid != uid
    ]
    others = [Neighbour(use.used_bytes, _promise(use.pod, uuid)) for use in holding]
    others += [Neighbour(0, _promise(pod, uuid)) for pod in waiting]
    return CardMoment(
        None if card.memory is None else card.memory.free_bytes,
        finding.owed_bytes,
        tuple(sorted(others, key=_lacking, reverse=True)[:MOST_NEIGHBOURS]),
    )


def evicted_record(verdict: Verdict, past: PastUse, card: CardMoment) -> Record | None:
    """Return how a pod was evicted; None for a verdict on no card."""
    use = verdict.use
    if use is None:
        return None
    known = _known(EVICTED, use, past)
    return known._replace(
        used_bytes=use.certain_bytes,
        peak_bytes=max(known.peak_bytes or 0, use.certain_bytes),
        enough_bytes=_enough(use, known.peak_bytes or 0),
        shortage=verdict.by_shortage,
        over_seconds=verdict.over_seconds,
        hold_seconds=use.hold_seconds,
        free_bytes=card.free_bytes,
        owed_bytes=card.owed_bytes,
        neighbours=card.neighbours,
    )


def running_record(verdict: Verdict, past: PastUse, card: CardMoment) -> Record | None:
    """Return what has happened so far to a pod that is there."""
    record = evicted_record(verdict, past, card)
    return None if record is None else record._replace(kind=RUNNING, shortage=False)


def _known(kind: str, use: PodOnCard, past: PastUse) -> Record:
    """Return what is known of any end: whose it was, on which card, and how its use went."""
    pod, card, limit = use.pod, use.card, use.limit_bytes
    made_by = _NO_KIND if pod.controller is None else (pod.controller.kind, pod.controller.name)
    top = _NO_KIND if pod.controller is None else top_owner(*made_by, pod.labels)
    return Record(
        kind=kind,
        at=past.at,
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        owner="/".join(filter(None, top)),
        controller="/".join(filter(None, made_by)),
        card=card.uuid,
        index=card.index,
        model=card.full_model,
        total_bytes=card.memory_bytes,
        peak_bytes=peak_of(past.moments),
        limit_bytes=limit,
        thresholds=() if limit is None else _thresholds(limit, past),
        course=course_of(past.moments, past.now),
    )


def _thresholds(limit: int, past: PastUse) -> tuple[Threshold, ...]:
    bounds = [each.threshold for each in past.moments if each.threshold is not None]
    of_limit = passed_seconds(past.moments, past.now, evict=False)
    found = [Threshold("limit", limit, of_limit)]
    if bounds:
        of_evict = passed_seconds(past.moments, past.now, evict=True)
        found.append(Threshold("evict", bounds[-1] << 10, of_evict))
    return tuple(found)


def _enough(use: PodOnCard, peak_bytes: int) -> int | None:
    """Return the limit that would do for a pod that was over its own; None for any other."""
    held = [process.certain_bytes or 0 for process in use.processes]
    peak, limit = max(peak_bytes, use.certain_bytes), use.limit_bytes
    if limit is None or peak <= limit:
        return None
    most = MostHeld(peak, max(len(held), 1), max(held, default=0), use.pod.shares)
    terms = TargetTerms(reserve_bytes(use.card.compute_capability))
    return target_for([most], limit, terms).limit_bytes


def _promise(pod: PodOnNode, uuid: str) -> int | None:
    promised = pod.promise_on(uuid)
    return pod.limit_on(uuid) if promised is None else promised


def _lacking(other: Neighbour) -> tuple[int, int]:
    """Return what a neighbour has not got of what it was promised, then what it holds."""
    used, promised = other.used_bytes or 0, other.promised_bytes or 0
    return max(promised - used, 0), used


def configmap(known: NodeRecords, version: str) -> dict[str, object]:
    """Make the object whole; `version` is the one it replaces, empty for a new one."""
    data = {names.WHY_KEY: write_records(bounded(known))}
    name = configmap_name(names.WHY_PREFIX, known.node)
    return kept_configmap(name, names.WHY_LABEL, data, version)


def stored_records(written: Object, node: str) -> NodeRecords:
    """
    Read back as much as an agent would have stored, whatever wrote it.

    Raises:
        UnknownVersionError: a newer agent wrote it.
        InvalidError: no agent of this node wrote it.
    """
    data = as_texts(as_object(written, "configmap").get("data"), "data")
    known = read_records(as_text(data.get(names.WHY_KEY), names.WHY_KEY))
    if known.node != node:
        remedy = "delete the ConfigMap; it is written anew"
        raise InvalidError(Problem("records.node", known.node, f"is not {node}", remedy))
    return bounded(known)


def added(known: NodeRecords, more: Iterable[Record]) -> NodeRecords:
    """Return what is remembered with more of it, as much as is kept."""
    return bounded(known._replace(records=together(known.records, more)))
