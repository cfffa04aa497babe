"""PURE. The page of metrics, made from the last state when somebody asks for it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent.model.decision import Action, Answer, Brake
from service.exposition import Family, Histogram, write_page
from service.renamed import Renamed, age, with_old_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from agent.model.state import About, AgentState, Counts, TickResult
    from agent.model.use import CardUse, PodOnCard
    from service.exposition import Metric

    CardFigure = tuple[str, str, Callable[[CardUse, TickResult], float | None]]
    PodFigure = tuple[str, str, Callable[[PodOnCard], float | None]]

_TICK = "gpufence_agent_tick_duration_seconds"
_TIME = "_timestamp_seconds"
_EXPECTED: Final = (
    *((str(action), str(Answer.ACCEPTED)) for action in Action),
    *((str(Action.EVICT), str(answer)) for answer in (Answer.BLOCKED, Answer.FAILED)),
)
"""What is done, and how an eviction fails in the end; the rest is rare, and shown once it was."""

RENAMED: Final = (
    Renamed("gpufence_sample_age_seconds", "gpufence_last_sample_timestamp_seconds", age),
    Renamed("gpufence_card_list_age_seconds", "gpufence_card_last_list_timestamp_seconds", age),
    Renamed("gpufence_card_unjudged_seconds", "gpufence_card_last_judged_timestamp_seconds", age),
    Renamed(
        "gpufence_cluster_silence_seconds",
        "gpufence_cluster_last_contact_timestamp_seconds",
        age,
    ),
    Renamed("gpufence_pod_gpu_idle_seconds", "gpufence_pod_gpu_last_busy_timestamp_seconds", age),
    Renamed("gpufence_verdicts", "gpufence_fenced_pods", blanks=True),
)
"""What is shown under its old name, too, until the release after the next."""


def page(state: AgentState, about: About, now: float, more: Iterable[Metric] = ()) -> str:
    """
    Write what is known at this moment, with what there is to say of pods beside their memory;
    figures of a look that is too old are left out.
    """
    last = state.last if state.is_current(now, about.gap_seconds) else None
    found = (
        *_pod_families(last, more),
        *_card_families(last),
        *_measuring(state, about),
        *_acting(state.counts, last),
        *_cluster(about, state.counts, now),
    )
    dated = (_dated(metric, about.booted) for metric in found)
    unix = about.booted + now
    return write_page(with_old_names(dated, RENAMED, unix), {"node": about.node})


def _dated(metric: Metric, booted: float) -> Metric:
    """Make Unix time of times by the agent's clock, which began when the machine did."""
    if not isinstance(metric, Family) or not metric.name.endswith(_TIME):
        return metric
    values = (
        (labels, None if at is None else round(booted + at, 3)) for labels, at in metric.values
    )
    return metric._replace(values=tuple(values))


def _measuring(state: AgentState, about: About) -> Iterator[Metric]:
    counts = state.counts
    yield _gauge(
        "gpufence_last_sample_timestamp_seconds",
        "Unix time at which any card could last be read",
        state.measured_at,
    )
    yield _counter(
        "gpufence_nvml_restarts_total",
        "Replacements of the child process that measures",
        about.restarts,
    )
    yield Histogram(
        _TICK, "Time from the look at the cards to all that follows", (({}, counts.ticks),)
    )
    yield _counter(
        "gpufence_agent_ticks_skipped_total",
        "Ticks skipped because the one before took too long",
        counts.skipped,
    )
    yield _counter(
        "gpufence_agent_ticks_failed_total",
        "Ticks that failed by a bug of gpufence",
        counts.failed,
    )


def _acting(counts: Counts, last: TickResult | None) -> Iterator[Metric]:
    yield _evictions(counts)
    yield _by_namespace(
        "gpufence_violations_total",
        "counter",
        "Times a pod went over its limit on a card",
        counts.violations,
    )
    yield Family(
        "gpufence_brake",
        "gauge",
        "Whether a brake stops evictions on this node, all of them or those of a unit",
        () if last is None else tuple(_brakes(last.decision.brake)),
    )


def _brakes(brake: Brake | None) -> Iterator[tuple[dict[str, str], float]]:
    for each in (Brake.START, Brake.STALE_PODS, Brake.SUSPENDED):
        yield {"reason": each.name.lower()}, float(each is brake)


def _evictions(counts: Counts) -> Family:
    """Show at zero what alerts and panels count from: a rate needs the time before, too."""
    known = {**dict.fromkeys(_EXPECTED, 0), **counts.evictions}
    return Family(
        "gpufence_evictions_total",
        "counter",
        "Evictions and other acts on pods, by action and result",
        tuple(({"action": act, "result": said}, count) for (act, said), count in known.items()),
    )


def _cluster(about: About, counts: Counts, now: float) -> Iterator[Metric]:
    status = about.cluster
    if status is None:
        return
    silence = status.silence_seconds
    yield _gauge(
        "gpufence_cluster_last_contact_timestamp_seconds",
        "Unix time at which the quietest watch of the API server last heard anything",
        None if silence is None else now - silence,
    )
    yield _gauge(
        "gpufence_cluster_fresh",
        "Whether the state of the pods is fresh enough to act on",
        float(status.fresh),
    )
    yield _gauge(
        "gpufence_cluster_published",
        "Whether the Node's cards are published on it",
        float(status.published),
    )
    yield Family(
        "gpufence_cluster_info",
        "gauge",
        "Always 1: the agent's identity, and what the kill switch allows",
        (({"identity": str(status.identity), "highest": str(status.highest)}, 1.0),),
    )
    yield _counter("gpufence_events_written_total", "Events written", status.events_written)
    yield Family(
        "gpufence_events_dropped_total",
        "counter",
        "Events not written, by reason",
        (
            ({"reason": "rate"}, counts.muted),
            ({"reason": "queue"}, status.events_dropped),
            ({"reason": "refused"}, status.events_refused),
        ),
    )


def _gauge(name: str, text: str, value: float | None) -> Family:
    return Family(name, "gauge", text, (({}, value),))


def _counter(name: str, text: str, value: float) -> Family:
    return Family(name, "counter", text, (({}, value),))


_POD_FIGURES: Final[tuple[PodFigure, ...]] = (
    (
        "memory_used_bytes",
        "Memory that the processes of a pod hold on a card",
        lambda use: use.used_bytes,
    ),
    ("memory_limit_bytes", "What a pod may hold on a card", lambda use: use.limit_bytes),
    (
        "requested_bytes",
        "What is reserved of a card for a pod that may hold more than that",
        lambda use: use.pod.request_on(use.card.uuid),
    ),
    (
        "borrowed_bytes",
        "What a pod holds above its request and within its limit",
        lambda use: None if use.pod.request_on(use.card.uuid) is None else use.borrowed_bytes,
    ),
    (
        "memory_allowance_bytes",
        "What the frameworks in a pod are configured to hold",
        lambda use: use.allowance_bytes,
    ),
    (
        "gpu_processes",
        "Processes of a pod on a card",
        lambda use: None if use.used_bytes is None else len(use.processes),
    ),
)


def _pod_families(last: TickResult | None, more: Iterable[Metric]) -> Iterator[Metric]:
    """
    Yield what is known of each pod on each card where it holds memory; pods come and go, and so do
    their lines.
    """
    rows = [] if last is None else sorted(pods_on_cards(last), key=by_labels)
    for name, text, read in _POD_FIGURES:
        values = tuple((labels, read(use)) for labels, use in rows)
        yield Family(f"gpufence_pod_{name}", "gauge", text, values)
    yield from more
    verdicts = () if last is None else last.decision.verdicts
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    yield Family(
        "gpufence_fenced_pods",
        "gauge",
        "Fenced pods on cards, by what the agent makes of them",
        tuple(
            ({"outcome": str(each).replace(" ", "_")}, count)
            for each, count in sorted(outcomes.items())
        ),
    )
    violating = Counter(
        (verdict.pod.namespace, str(verdict.pod.mode)) for verdict in verdicts if verdict.over
    )
    yield _by_namespace(
        "gpufence_violating_pods", "gauge", "Pods over their limits at the moment", violating
    )


def by_labels(row: tuple[dict[str, str], object]) -> tuple[str, ...]:
    return tuple(row[0].values())


def pods_on_cards(last: TickResult) -> Iterator[tuple[dict[str, str], PodOnCard]]:
    """Yield each use with its labels, in the order in which they sort."""
    for uuid, card in last.observation.cards.items():
        for uid, use in card.pods.items():
            if uid in last.observation.pods.by_uid:
                yield {"namespace": use.pod.namespace, "pod": use.pod.name, "card": uuid}, use


def _total(use: CardUse, _: TickResult) -> float:
    return use.card.memory_bytes if use.memory is None else use.memory.total_bytes


def _committed(use: CardUse, last: TickResult) -> float | None:
    finding = last.decision.findings.get(use.card.uuid)
    return None if finding is None or use.listed_at is None else finding.committed_bytes


def _owed(use: CardUse, last: TickResult) -> float | None:
    finding = last.decision.findings.get(use.card.uuid)
    return None if finding is None or use.listed_at is None else finding.owed_bytes


def _judged(use: CardUse, last: TickResult) -> float | None:
    finding = last.decision.findings.get(use.card.uuid)
    return None if finding is None else last.decision.at - finding.unjudged_seconds


_CARD_FIGURES: Final[tuple[CardFigure, ...]] = (
    (
        "readable",
        "Whether memory and processes of the card could be read",
        lambda use, _: float(use.memory is not None and use.listed_at is not None),
    ),
    ("memory_total_bytes", "Memory of the card", _total),
    (
        "memory_used_bytes",
        "Memory in use on the card by all processes",
        lambda use, _: None if use.memory is None else use.memory.used_bytes,
    ),
    (
        "memory_free_bytes",
        "Memory that can be allocated",
        lambda use, _: None if use.memory is None else use.memory.free_bytes,
    ),
    (
        "memory_reserved_bytes",
        "Memory that the driver keeps for itself",
        lambda use, _: None if use.memory is None else use.memory.reserved_bytes,
    ),
    (
        "memory_committed_bytes",
        "Limits of the pods that hold memory on the card, added up",
        _committed,
    ),
    (
        "memory_owed_bytes",
        "Reserved for fenced pods of the card and not yet used",
        _owed,
    ),
    (
        "memory_unattributed_bytes",
        "Memory of processes that belong to no pod of this node",
        lambda use, _: use.unattributed_bytes,
    ),
    (
        "memory_left_bytes",
        "Memory of processes that the card lists for pods that have ended",
        lambda use, _: use.left_bytes,
    ),
    (
        "memory_unlisted_bytes",
        "Memory in use that no listed process holds: the driver's own, managed or hidden",
        lambda use, _: use.unlisted_bytes,
    ),
    (
        "last_list_timestamp_seconds",
        "Unix time of the list of processes, renewed when use moves and every few seconds",
        lambda use, _: use.listed_at,
    ),
    (
        "last_judged_timestamp_seconds",
        "Unix time until which time over a limit has counted on the card",
        _judged,
    ),
)


def _card_families(last: TickResult | None) -> Iterator[Family]:
    """Yield what is known of each card; without a look that is current there are no lines."""
    sample = None if last is None else last.observation.sample
    unfenced = None if sample is None else len(sample.unfenced)
    unidentified = None if sample is None else len(sample.unidentified) - len(sample.unfenced)
    yield Family(
        "gpufence_cards_unidentified",
        "gauge",
        "Cards that have never been identified, and are not shown",
        (({}, unidentified),),
    )
    yield Family(
        "gpufence_cards_unfenced",
        "gauge",
        "Cards without memory of their own, on which no pod is fenced",
        (({}, unfenced),),
    )
    uses = [] if last is None else [use for _, use in sorted(last.observation.cards.items())]
    yield Family(
        "gpufence_card_info",
        "gauge",
        "Always 1: what the card is called",
        tuple((_card_labels(use), 1.0) for use in uses),
    )
    for name, text, read in _CARD_FIGURES:
        values = () if last is None else tuple(({"card": u.card.uuid}, read(u, last)) for u in uses)
        yield Family(f"gpufence_card_{name}", "gauge", text, values)


def _card_labels(use: CardUse) -> dict[str, str]:
    card = use.card
    mig = {} if card.mig is None else {"parent": card.mig.parent, "profile": card.mig.profile}
    return {"card": card.uuid, "index": str(card.index), "model": card.model, **mig}


def _by_namespace(name: str, kind: str, text: str, counts: Mapping[tuple[str, str], int]) -> Family:
    rows = sorted(counts.items())
    values = (({"namespace": namespace, "mode": mode}, count) for (namespace, mode), count in rows)
    return Family(name, kind, text, tuple(values))
