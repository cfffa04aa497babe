"""
PURE. What is known of each pod on each card where it holds memory.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agent.model.decision import Outcome
from gpufence.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent.model.pod import PodOnNode
    from agent.model.state import TickResult
    from agent.model.use import PodOnCard


def pod_families(look: TickResult | None) -> Iterator[Family]:
    """
    Yield a family for each figure; pods come and go, and so do their lines.
    """

    def family(name: str, text: str, read: Callable[[_Place], float | None]) -> Family:
        values = tuple((place.labels, read(place)) for place in places)
        return Family(f"gpufence_pod_{name}", "gauge", text, values)

    places = [] if look is None else sorted(_places(look), key=lambda place: place.key)
    yield family(
        "memory_used_bytes",
        "Memory that the processes of a pod hold on a card.",
        lambda place: place.use.used_bytes,
    )
    yield family(
        "memory_limit_bytes",
        "What a pod may hold on a card.",
        lambda place: place.limit_bytes,
    )
    yield family(
        "memory_allowance_bytes",
        "What the frameworks in a pod were told they may hold.",
        lambda place: place.use.allowance_bytes,
    )
    yield family(
        "gpu_processes",
        "Processes of a pod on a card.",
        lambda place: None if place.use.used_bytes is None else len(place.use.processes),
    )
    yield _outcomes(look)
    yield _violators(look)


class _Place:
    """
    A pod on a card.
    """

    __slots__ = ("card", "pod", "use")

    def __init__(self, pod: PodOnNode, card: str, use: PodOnCard) -> None:
        self.pod = pod
        self.card = card
        self.use = use

    @property
    def key(self) -> tuple[str, str, str]:
        return self.pod.namespace, self.pod.name, self.card

    @property
    def labels(self) -> dict[str, str]:
        return {"namespace": self.pod.namespace, "pod": self.pod.name, "card": self.card}

    @property
    def limit_bytes(self) -> int | None:
        limit = self.pod.limits.get(self.card)
        return None if limit is None else limit.limit_bytes


def _places(look: TickResult) -> Iterator[_Place]:
    for uuid, card in look.observation.cards.items():
        for uid, use in card.pods.items():
            pod = look.observation.pods.by_uid.get(uid)
            if pod is not None:
                yield _Place(pod, uuid, use)


def _outcomes(look: TickResult | None) -> Family:
    """
    Count the verdicts of each kind, those that nobody got included.
    """
    verdicts = () if look is None else look.decision.verdicts
    found = Counter(verdict.outcome for verdict in verdicts)
    kinds = () if look is None else tuple(Outcome)
    return Family(
        "gpufence_verdicts",
        "gauge",
        "Fenced pods on cards by what the agent makes of them at the moment.",
        tuple(({"outcome": str(outcome)}, found[outcome]) for outcome in kinds),
    )


def _violators(look: TickResult | None) -> Family:
    verdicts = () if look is None else look.decision.verdicts
    found = Counter(
        (verdict.pod.namespace, str(verdict.pod.mode)) for verdict in verdicts if verdict.over
    )
    return Family(
        "gpufence_violating_pods",
        "gauge",
        "Pods over their limits at the moment.",
        tuple(
            ({"namespace": namespace, "mode": mode}, count)
            for (namespace, mode), count in sorted(found.items())
        ),
    )
