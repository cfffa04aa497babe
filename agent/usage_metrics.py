"""PURE. What is known of each pod and of each card after a tick; a metric is a row."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent.model.activity import Activity
from agent.model.decision import Outcome
from service.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from agent.model.activity import ActivityMemory, Track
    from agent.model.state import TickResult
    from agent.model.use import CardUse, PodOnCard

    CardFigure = tuple[str, str, Callable[[CardUse, TickResult], float | None]]
    ActivityFigure = tuple[str, str, str, Callable[[Track, float], float | None]]
    Row = tuple[dict[str, str], float | None]
    PodFigure = tuple[str, str, Callable[[PodOnCard], float | None]]

_IDLE_SECONDS: Final = "gpu_idle_seconds"
_ACTIVITY_FIGURES: Final[tuple[ActivityFigure, ...]] = (
    (
        _IDLE_SECONDS,
        "gauge",
        "For how long a pod has done nothing on a card, or without one; 0 while it is busy.",
        lambda track, now: _rounded(track.idle_seconds(now)),
    ),
    (
        "gpu_busy_seconds_total",
        "counter",
        "Time in which a pod was at work on a card, as far as driver and kernel share it out.",
        lambda track, _: _rounded(track.busy_seconds),
    ),
)
_POD_FIGURES: Final[tuple[PodFigure, ...]] = (
    (
        "memory_used_bytes",
        "Memory that the processes of a pod hold on a card.",
        lambda use: use.used_bytes,
    ),
    ("memory_limit_bytes", "What a pod may hold on a card.", lambda use: use.limit_bytes),
    (
        "memory_allowance_bytes",
        "What the frameworks in a pod were told they may hold.",
        lambda use: use.allowance_bytes,
    ),
    (
        "gpu_processes",
        "Processes of a pod on a card.",
        lambda use: None if use.used_bytes is None else len(use.processes),
    ),
)


def pod_families(last: TickResult | None, memory: ActivityMemory, now: float) -> Iterator[Family]:
    """
    Yield what is known of each pod on each card where it holds memory; pods come and go, and so do
    their lines.
    """
    rows = [] if last is None else sorted(_uses(last), key=_by_labels)
    for name, text, read in _POD_FIGURES:
        values = tuple((labels, read(use)) for labels, use in rows)
        yield Family(f"gpufence_pod_{name}", "gauge", text, values)
    yield from _activity_families(last, rows, memory, now)
    verdicts = () if last is None else last.decision.verdicts
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    yield Family(
        "gpufence_verdicts",
        "gauge",
        "Fenced pods on cards by what the agent makes of them at the moment.",
        tuple(({"outcome": str(each)}, outcomes[each]) for each in Outcome if last is not None),
    )
    violating = Counter(
        (verdict.pod.namespace, str(verdict.pod.mode)) for verdict in verdicts if verdict.over
    )
    yield by_namespace(
        "gpufence_violating_pods", "gauge", "Pods over their limits at the moment.", violating
    )


def _activity_families(
    last: TickResult | None,
    rows: Iterable[tuple[dict[str, str], PodOnCard]],
    memory: ActivityMemory,
    now: float,
) -> Iterator[Family]:
    """Yield who is idle and who is busy; of whom nobody knows there is no line."""
    known = [
        (labels, track)
        for labels, use in rows
        if (track := memory.tracks.get((use.pod.uid, use.card.uuid))) is not None
        and track.activity is not Activity.UNKNOWN
    ]
    for name, kind, text, read in _ACTIVITY_FIGURES:
        values = tuple((labels, read(track, now)) for labels, track in known)
        if name == _IDLE_SECONDS:
            values += tuple(sorted(_without_memory(last, memory, now), key=_by_labels))
        yield Family(f"gpufence_pod_{name}", kind, text, values)


def _without_memory(last: TickResult | None, memory: ActivityMemory, now: float) -> Iterator[Row]:
    """
    Yield for how long those have done nothing who were given a GPU and hold no memory of any card.
    """
    pods = {} if last is None else last.observation.pods.by_uid
    for uid, track in memory.pods.items():
        if uid in pods and not track.held and track.activity is not Activity.UNKNOWN:
            labels = {"namespace": pods[uid].namespace, "pod": pods[uid].name, "card": ""}
            yield labels, _rounded(track.idle_seconds(now))


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _by_labels(row: tuple[dict[str, str], object]) -> tuple[str, ...]:
    return tuple(row[0].values())


def _uses(last: TickResult) -> Iterator[tuple[dict[str, str], PodOnCard]]:
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


def _age(use: CardUse, last: TickResult) -> float | None:
    if use.listed_at is None:
        return None
    return round(max(last.decision.at - use.listed_at, 0.0), 3)


def _unjudged(use: CardUse, last: TickResult) -> float | None:
    finding = last.decision.findings.get(use.card.uuid)
    return None if finding is None else round(finding.unjudged_seconds, 3)


_CARD_FIGURES: Final[tuple[CardFigure, ...]] = (
    (
        "readable",
        "Whether memory and processes of the card could be read.",
        lambda use, _: float(use.memory is not None and use.listed_at is not None),
    ),
    ("memory_total_bytes", "Memory of the card.", _total),
    (
        "memory_used_bytes",
        "Memory in use, by whomever.",
        lambda use, _: None if use.memory is None else use.memory.used_bytes,
    ),
    (
        "memory_free_bytes",
        "Memory that can be allocated.",
        lambda use, _: None if use.memory is None else use.memory.free_bytes,
    ),
    (
        "memory_reserved_bytes",
        "Memory that the driver keeps for itself.",
        lambda use, _: None if use.memory is None else use.memory.reserved_bytes,
    ),
    (
        "memory_committed_bytes",
        "Limits of the pods that hold memory on the card, added up.",
        _committed,
    ),
    (
        "memory_owed_bytes",
        "Promised to fenced pods of the card and not held by them yet.",
        _owed,
    ),
    (
        "memory_unattributed_bytes",
        "Memory of processes that belong to no pod of this node.",
        lambda use, _: use.unattributed_bytes,
    ),
    (
        "memory_unlisted_bytes",
        "Memory in use that no listed process holds: the driver's own, managed or hidden.",
        lambda use, _: use.unlisted_bytes,
    ),
    (
        "list_age_seconds",
        "Age of the list of processes; renewed when use moves, and in any case now and then.",
        _age,
    ),
    (
        "unjudged_seconds",
        "For how long the time of pods that may be over their limits on the card has not counted.",
        _unjudged,
    ),
)


def card_families(last: TickResult | None) -> Iterator[Family]:
    """Yield what is known of each card; without a look that is current there are no lines."""
    sample = None if last is None else last.observation.sample
    unfenced = None if sample is None else len(sample.unfenced)
    unidentified = None if sample is None else len(sample.unidentified) - len(sample.unfenced)
    yield Family(
        "gpufence_cards_unidentified",
        "gauge",
        "Cards that have never said which ones they are, and are not shown.",
        (({}, unidentified),),
    )
    yield Family(
        "gpufence_cards_unfenced",
        "gauge",
        "Cards without memory of their own, on which no pod is fenced.",
        (({}, unfenced),),
    )
    uses = [] if last is None else [use for _, use in sorted(last.observation.cards.items())]
    yield Family(
        "gpufence_card_info",
        "gauge",
        "Always 1: what the card is called.",
        tuple((_card_labels(use), 1.0) for use in uses),
    )
    for name, text, read in _CARD_FIGURES:
        values = () if last is None else tuple(({"card": u.card.uuid}, read(u, last)) for u in uses)
        yield Family(f"gpufence_card_{name}", "gauge", text, values)


def _card_labels(use: CardUse) -> dict[str, str]:
    card = use.card
    mig = {} if card.mig is None else {"parent": card.mig.parent, "profile": card.mig.profile}
    return {"card": card.uuid, "index": str(card.index), "model": card.model, **mig}


def by_namespace(name: str, kind: str, text: str, counts: Mapping[tuple[str, str], int]) -> Family:
    rows = sorted(counts.items())
    values = (({"namespace": namespace, "mode": mode}, count) for (namespace, mode), count in rows)
    return Family(name, kind, text, tuple(values))
