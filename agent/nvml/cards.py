"""
PURE. The cards after a sample: which there are, by what was seen of them now and earlier, and what
became of the lists of their processes, which are made less often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.model.sample import NO_TROUBLE, ProcessList, Trouble, TroubleCode
from agent.nvml.faults import Code, lasts, trouble_of
from agent.nvml.protocol import UNNAMED, Listed, Looked, NvmlFailure
from gpufence.cards import Card, Instance
from gpufence.quantity import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.sample import CardMemory, CardWork, GpuProcess
    from agent.nvml.protocol import Seen

UNCHARGED_BYTES: Final = GIB
"""More memory than a card uses when nobody holds any, beside what is reserved."""

_UNCHARGED: Final = Trouble(
    "its memory is in use and the driver attributes it to no process; set hostPID on the agent's "
    "pod, or look for processes that died without giving memory back",
    TroubleCode.UNCHARGED,
)
_EMPTY: Final = Trouble("it says that it has no memory; look at it with nvidia-smi")


@dataclass(frozen=True, slots=True)
class CardReading:
    """One card: its memory, or why that is not known. It is `there` if the driver names it."""

    card: Card
    memory: CardMemory | None
    there: bool
    trouble: Trouble = NO_TROUBLE


@dataclass(frozen=True, slots=True)
class CardReadings:
    """All cards, and what is wrong with those that do not say who they are."""

    cards: tuple[CardReading, ...]
    unidentified: tuple[Trouble, ...] = ()


def card_readings(looks: Mapping[int, Looked | Trouble], known: Mapping[str, Card]) -> CardReadings:
    """
    Put the cards together from a look at each index, or the reason why there is none.

    A card known before that nobody names now is still a card, unless it can be told to be gone: all
    indices answer, or its MIG layout is another one.
    """
    seen = [(index, look) for index, look in sorted(looks.items()) if isinstance(look, Looked)]
    troubles = {index: why for index, why in sorted(looks.items()) if isinstance(why, Trouble)}
    troubles |= {index: trouble_of(gap) for index, look in seen for gap in look.gaps}
    settled = {look.card.uuid for _, look in seen if not look.gaps}
    items = [(index, look, item) for index, look in seen for item in _items(look)]
    described = [(_card(index, look, item, known), index, item) for index, look, item in items]
    named = {
        card.uuid: CardReading(card, _memory(item), there=True, trouble=_trouble(item))
        for card, _, item in described
        if card is not None
    }
    missing = tuple(
        CardReading(card, None, there=False, trouble=_reason(card, troubles))
        for uuid, card in known.items()
        if uuid not in named and troubles and not _was_cut(card, settled)
    )
    places = {uuid: place for place, uuid in enumerate(dict.fromkeys((*known, *named)))}
    cards = sorted(
        (*named.values(), *missing),
        key=lambda reading: (reading.card.index, places[reading.card.uuid]),
    )
    accounted = {reading.card.index for reading in missing}
    sizeless = {i: _sizeless(item) for card, i, item in described if card is None}
    nameless = sizeless | {i: why for i, why in troubles.items() if i not in accounted}
    return CardReadings(tuple(cards), tuple(why.of_card(i) for i, why in sorted(nameless.items())))


def _items(look: Looked) -> tuple[Seen, ...]:
    """Return what a physical card offers: itself, or its instances."""
    return (look.card,) if look.instances is None else look.instances


def _card(index: int, look: Looked, seen: Seen, known: Mapping[str, Card]) -> Card | None:
    """
    Describe a card, with what is known from before where the driver does not tell; without the size
    of its memory it cannot be described. An instance has the index of the card it is cut from.
    """
    before = known.get(seen.uuid)
    model, capability = seen.model, seen.capability
    total = 0 if isinstance(seen.memory, NvmlFailure) else seen.memory.total_bytes
    if before is not None:
        total = total or before.memory_bytes
        model = before.model if model == UNNAMED else model
        capability = capability or before.compute_capability
    if not total:
        return None
    mig = None if look.instances is None else Instance(look.card.uuid, seen.profile)
    card = Card(seen.uuid, index, model, total, capability, mig)
    return before if card == before else card


def _memory(seen: Seen) -> CardMemory | None:
    return None if isinstance(seen.memory, NvmlFailure) else seen.memory


def _trouble(seen: Seen) -> Trouble:
    return trouble_of(seen.memory) if isinstance(seen.memory, NvmlFailure) else NO_TROUBLE


def _sizeless(seen: Seen) -> Trouble:
    """Return why a card has no size: some share the machine's memory, of which NVML knows none."""
    memory = seen.memory
    if isinstance(memory, NvmlFailure) and memory.code == Code.NOT_SUPPORTED:
        return Trouble(
            f"{seen.model} ({seen.uuid}) has no memory of its own but shares the machine's, so "
            "that no pod on it is fenced; limit the memory of its containers",
            TroubleCode.UNIFIED,
        )
    return _trouble(seen) or _EMPTY


def _was_cut(card: Card, settled: set[str]) -> bool:
    """Return whether a card that is not named any more became instances, or was one."""
    return card.uuid in settled or (card.mig is not None and card.mig.parent in settled)


def _reason(card: Card, troubles: Mapping[int, Trouble]) -> Trouble:
    """Return why a card is not named: its own index tells, unless the indices have changed."""
    return troubles.get(card.index) or next(iter(troubles.values()))


@dataclass(frozen=True, slots=True)
class ListPace:
    """How often lists are renewed; the settings say why."""

    interval_seconds: float
    list_seconds: float
    moved_bytes: int


@dataclass(frozen=True, slots=True)
class ListAttempt:
    """
    The last attempt to list a card's processes, and the card's use then.

    Without processes it failed, as `trouble` says; `again` if the next sample shall try again.
    """

    asked_at: float
    used_bytes: int | None
    processes: ProcessList | None = None
    mps: frozenset[int] = frozenset()
    trouble: Trouble = NO_TROUBLE
    again: bool = False


@dataclass(frozen=True, slots=True)
class WorkAttempt:
    """The last answer to what is done on a card, or why there is none."""

    asked_at: float
    work: CardWork | None = None
    trouble: Trouble = NO_TROUBLE


def list_is_due(
    last: ListAttempt | None, used_bytes: int | None, now: float, pace: ListPace
) -> bool:
    """
    Return whether a card that is no suspect needs a new list in this sample.

    Half an interval is allowed for, so that a sample that comes a little early does not put the
    list off to the next one.
    """
    if last is None or last.again:
        return True
    if now - last.asked_at + pace.interval_seconds / 2 >= pace.list_seconds:
        return True
    if used_bytes is None or last.used_bytes is None:
        return (used_bytes is None) != (last.used_bytes is None)
    return abs(used_bytes - last.used_bytes) > pace.moved_bytes


def list_attempt(
    answer: Listed | NvmlFailure | Trouble,
    memory: CardMemory | None,
    now: float,
    last: ListAttempt | None,
) -> ListAttempt:
    """Record an attempt by its answer, or by the reason why there is none."""
    used = None if memory is None else memory.used_bytes
    if isinstance(answer, Trouble):
        return ListAttempt(now, used, trouble=answer, again=True)
    if isinstance(answer, NvmlFailure):
        return ListAttempt(now, used, trouble=trouble_of(answer), again=not lasts(answer))
    if _charges_nobody(answer.processes, memory):
        first = last is None or last.trouble.code is not TroubleCode.UNCHARGED
        return ListAttempt(now, used, mps=answer.mps, trouble=_UNCHARGED, again=first)
    return ListAttempt(now, used, ProcessList(answer.at, answer.processes), mps=answer.mps)


def _charges_nobody(processes: tuple[GpuProcess, ...], memory: CardMemory | None) -> bool:
    """
    Return whether a card in use is charged to nobody: that is no idle card.

    Drivers leave out processes that the caller's PID namespace does not show, or show them with 0
    bytes, and call that a success.
    """
    if memory is None or any(item.used_bytes != 0 for item in processes):
        return False
    return memory.used_bytes - (memory.reserved_bytes or 0) > UNCHARGED_BYTES
