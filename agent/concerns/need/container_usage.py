"""
PURE. What each container of each fenced pod holds on each card at a look, by the need it counts
for.

Certain processes count alone: what the list before names another by may be somebody else's memory.
Where the driver accounts, the most that each process ever held counts as well, also of those that
have ended since the look before: what they took last is often why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.need import CardNeed, NeedDay, NeedKey
from gpufence.owners import top_owner
from gpufence.share import reserve_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.model.pod import PodOnNode
    from agent.model.use import CardUse, Observation, ProcessUse
    from gpufence.cards import Card

FULL_PERCENT: Final = 97
"""Of what a process was told, its context added: who holds as much has taken all of it."""

_NO_PEAKS: Final[Mapping[int, int]] = {}


class ContainerUsage(NamedTuple):
    """
    A container on a card: what it holds, by how many processes, and what the driver says that it
    held at most. `there` is False where only ended processes tell.
    """

    pod: PodOnNode
    container: str
    card: Card
    used_bytes: int
    driver_bytes: int
    processes: int
    largest_bytes: int
    there: bool = True

    @property
    def most_bytes(self) -> int:
        return max(self.used_bytes, self.driver_bytes)

    def as_day(self, day: str) -> NeedDay:
        """Return the day that this look alone would make, with nobody counted yet."""
        cap = self.pod.caps.get(self.container)
        full = None if cap is None else cap.cap_bytes + cap.reserve_bytes
        return NeedDay(
            day=day,
            peak_bytes=self.most_bytes,
            pods=0,
            processes=self.processes,
            capped=full is not None and self.largest_bytes * 100 >= full * FULL_PERCENT,
            told_bytes=None if cap is None else cap.cap_bytes,
            limit_bytes=part_of(self.pod, self.container, self.card.uuid),
            driver_peak=self.driver_bytes > self.used_bytes,
            process_bytes=self.largest_bytes,
            shares=self.pod.shares,
        )


class _Sum(NamedTuple):
    used_bytes: int = 0
    driver_bytes: int = 0
    processes: int = 0
    largest_bytes: int = 0

    def plus(self, used_bytes: int, most_bytes: int) -> _Sum:
        return _Sum(
            self.used_bytes + used_bytes,
            self.driver_bytes + most_bytes,
            self.processes + 1,
            max(self.largest_bytes, most_bytes),
        )


def key_of(pod: PodOnNode, container: str, card: Card) -> NeedKey:
    """Return whose need a container's memory is."""
    made_by = pod.controller
    kind, name = ("Pod", pod.name)
    if made_by is not None:
        kind, name = top_owner(made_by.kind, made_by.name, pod.labels)
    return NeedKey(pod.namespace, kind, name, container, card.full_model)


def part_of(pod: PodOnNode, container: str, uuid: str) -> int | None:
    """Return what a container may hold on a card; None where nothing says so."""
    limit = pod.limits.get(uuid)
    return None if limit is None else limit.parts.get(container, limit.limit_bytes)


def models_of(cards: Iterable[Card]) -> dict[str, CardNeed]:
    """Return what is to be known of each model of card."""
    models: dict[str, CardNeed] = {}
    for card in cards:
        model = card.full_model
        models[model] = CardNeed(model, card.memory_bytes, reserve_bytes(card.compute_capability))
    return models


def container_usages(
    observation: Observation, before: Observation | None
) -> Iterator[ContainerUsage]:
    """Yield who holds something, and who did a moment ago by the driver's own account."""
    peaks = {item.card.uuid: item.peaks for item in observation.sample.cards if item.peaks}
    for uuid, card in observation.cards.items():
        yield from _on_card(card, peaks.get(uuid, _NO_PEAKS), observation.pods.by_uid)
    if before is None:
        return
    for uuid, of_card in peaks.items():
        if uuid in before.cards:
            yield from _gone(before.cards[uuid], of_card, before.pods.by_uid)


def _on_card(
    card: CardUse, peaks: Mapping[int, int], pods: Mapping[str, PodOnNode]
) -> Iterator[ContainerUsage]:
    uncertain = {uid for uid, use in card.pods.items() if use.mps or use.used_bytes is None}
    for (uid, container), added in _sums(card.processes, peaks).items():
        pod = pods.get(uid)
        if pod is not None and pod.mode is not None and uid not in uncertain and added.used_bytes:
            yield ContainerUsage(pod, container, card.card, *added)


def _gone(
    card: CardUse, peaks: Mapping[int, int], pods: Mapping[str, PodOnNode]
) -> Iterator[ContainerUsage]:
    """Yield what those held at most who were there at the look before, together."""
    uncertain = {uid for uid, use in card.pods.items() if use.mps}
    for (uid, container), added in _sums(card.processes, peaks).items():
        pod = pods.get(uid)
        if pod is not None and pod.mode is not None and uid not in uncertain:
            yield ContainerUsage(pod, container, card.card, *added, there=False)


def _sums(processes: Iterable[ProcessUse], peaks: Mapping[int, int]) -> dict[tuple[str, str], _Sum]:
    """Add up the certain processes of each container."""
    sums: dict[tuple[str, str], _Sum] = {}
    for item in processes:
        if item.container and item.confirmed and item.used_bytes is not None:
            place = item.pod_uid, item.container
            most = max(item.used_bytes, peaks.get(item.pid, 0))
            sums[place] = sums.get(place, _NOTHING).plus(item.used_bytes, most)
    return sums


_NOTHING: Final = _Sum()
