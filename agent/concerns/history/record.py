"""
PURE. How a pod ended, made of its last minutes, the verdict on it, and how its card stood then.

Last comes the ConfigMap in which records outlive an agent, and what is taken back from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent.concerns.history.ring import course_of, passed_seconds, peak_of
from gpufence import names
from gpufence.capped import Why, capped
from gpufence.errors import InvalidError, Problem
from gpufence.nodes import configmap_name, kept_configmap
from gpufence.owners import top_owner
from gpufence.records import (
    CAPPED,
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
from gpufence.target import enough_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent.concerns.history.ring import RingMoment
    from agent.model.decision import Verdict
    from agent.model.pod import ContainerFailure, PodOnNode
    from agent.model.state import TickResult
    from agent.model.use import PodOnCard
    from gpufence.cards import Card

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


def capped_record(
    pod: PodOnNode, failure: ContainerFailure, card: Card | None, past: PastUse
) -> Record | None:
    """
    Return how a container ended at its cap, on the card where its pod held the most; None where GPU
    memory is not why, or another's use of it was.
    """
    ending, given = failure.ending, failure.given
    peak = peak_of(past.moments) or 0
    # What one process held is known only where no other container shares the pod's figure.
    of_process = peak // max(given.processes, 1) if given is not None and _is_alone(pod) else 0
    found = capped(ending, given, of_process)
    if found is None or given is None or found.why not in (Why.CAPPED, Why.TOO_SMALL):
        return None
    if not (found.certain or (ending.silent and not pod.terminating)):
        return None
    return _of_pod(CAPPED, pod, card, past)._replace(
        container=ending.container,
        asked_bytes=given.asked_bytes,
        given_bytes=given.given_bytes,
        certain=found.certain,
        enough_bytes=found.enough_bytes or None,
    )


def _is_alone(pod: PodOnNode) -> bool:
    return len(pod.containers) == 1


def _known(kind: str, use: PodOnCard, past: PastUse) -> Record:
    return _of_pod(kind, use.pod, use.card, past)


def _of_pod(kind: str, pod: PodOnNode, card: Card | None, past: PastUse) -> Record:
    """Return what is known of any end: whose it was, on which card, and how its use went."""
    limit = None if card is None else pod.limit_on(card.uuid)
    made_by = _NO_KIND if pod.controller is None else (pod.controller.kind, pod.controller.name)
    top = _NO_KIND if pod.controller is None else top_owner(*made_by, pod.labels)
    known = Record(
        kind=kind,
        at=past.at,
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        owner="/".join(filter(None, top)),
        controller="/".join(filter(None, made_by)),
        peak_bytes=peak_of(past.moments),
        limit_bytes=limit,
        thresholds=() if limit is None else _thresholds(limit, past),
        course=course_of(past.moments, past.now),
    )
    if card is None:
        return known
    return known._replace(
        card=card.uuid,
        index=card.index,
        model=card.full_model,
        total_bytes=card.memory_bytes,
        request_bytes=pod.request_on(card.uuid),
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
    """
    Return the limit that would do for a pod that was over its own, the same as its Event has; None
    for any other, and for one that asks for nothing.
    """
    peak, limit = max(peak_bytes, use.certain_bytes), use.limit_bytes
    if limit is None or peak <= limit or use.pod.unasked:
        return None
    reserves = [cap.reserve_bytes for cap in use.pod.caps.values() if cap.reserve_bytes]
    return enough_for(peak, len(use.processes), reserves)


def _promise(pod: PodOnNode, uuid: str) -> int | None:
    promised = pod.promise_on(uuid)
    return pod.limit_on(uuid) if promised is None else promised


def _lacking(other: Neighbour) -> tuple[int, int]:
    """Return what a neighbour has not got of what it was promised, then what it holds."""
    used, promised = other.used_bytes or 0, other.promised_bytes or 0
    return max(promised - used, 0), used


def configmap(known: NodeRecords, version: str, node_uid: str = "") -> dict[str, object]:
    """
    Make the object whole; `version` is the one it replaces, empty for a new one. It goes with the
    Node of this UID.
    """
    data = {names.WHY_KEY: write_records(bounded(known))}
    name = configmap_name(names.WHY_PREFIX, known.node)
    return kept_configmap(name, names.WHY_LABEL, data, version, (known.node, node_uid))


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
