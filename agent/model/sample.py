"""PURE. What one look at the cards showed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpufence.cards import Card


class TroubleCode(StrEnum):
    """The reasons on which something is decided; every other one is for people alone."""

    CONTAINER = "container"  # a new container may have what this one has lost
    UNCHARGED = "uncharged"  # the driver charges memory in use to nobody
    UNIFIED = "unified"  # the card has no memory of its own, so there is nothing to fence
    OTHER = "other"


class Trouble(NamedTuple):
    """
    Why something cannot be read, with what helps: the code decides, the text is shown.

    Without a text there is none, and it is false.
    """

    text: str
    code: TroubleCode = TroubleCode.OTHER

    def __bool__(self) -> bool:
        return bool(self.text)

    def __str__(self) -> str:
        return self.text

    def of_card(self, index: int) -> Trouble:
        """Return the same, said of one of several cards."""
        return self._replace(text=f"card {index}: {self.text}")


NO_TROUBLE: Final = Trouble("")


class CardMemory(NamedTuple):
    """A card's own account; `used_bytes` may or may not hold what the driver reserves."""

    total_bytes: int
    used_bytes: int
    free_bytes: int
    reserved_bytes: int | None = None


class CardWork(NamedTuple):
    """
    What was done on a card from `since` to `until`, by the agent's clock; where both are the same
    nothing is known of the time before.

    `workers` are the processes that had some use of it, and the share of that time they had, as far
    as the driver averages it; None where nobody tells processes apart: `percent` is then how much
    of the time there was work, else what the card itself says of the last moment. `garbled`: there
    were figures that cannot be, so that none of them counts.
    """

    since: float
    until: float
    percent: float
    workers: Mapping[int, float] | None
    garbled: bool = False


class CardSensors(NamedTuple):
    """How warm a card is and what it draws, in whole watts; None is what it does not say."""

    celsius: int | None = None
    watts: int | None = None
    most_watts: int | None = None


UNSENSED: Final = CardSensors()


class GpuProcess(NamedTuple):
    """
    One process on one card; None where the driver does not say how much it holds. It is then
    `least_bytes` for certain: what one of its lists says while another says nothing.
    """

    pid: int
    used_bytes: int | None
    least_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ProcessList:
    """
    A card's processes, by PID.

    `listed_at` is read before the driver is asked: what started later cannot be in the list. A
    card whose list was not renewed keeps the old one with the old time.
    """

    listed_at: float
    processes: tuple[GpuProcess, ...]


@dataclass(frozen=True, slots=True)
class CardSample:
    """
    One card at one moment: None where it could not be read, with the reason in `trouble`.

    `mps_clients` are the processes that the driver lists as clients of an MPS server, whichever.
    `work` is the latest answer, or None for the reason in `work_trouble`. `peaks` is the most that
    processes have ever held, by PID, as the driver has just said where it accounts.
    """

    card: Card
    memory: CardMemory | None
    processes: ProcessList | None
    mps_clients: frozenset[int] = frozenset()
    trouble: Trouble = NO_TROUBLE
    work: CardWork | None = None
    work_trouble: Trouble = NO_TROUBLE
    peaks: Mapping[int, int] = field(default_factory=dict)
    sensors: CardSensors = UNSENSED

    @property
    def mps(self) -> bool:
        return bool(self.mps_clients)


@dataclass(frozen=True, slots=True)
class Sample:
    """
    All cards of the node, those that cannot be read included.

    `trouble` says why no card at all can be read; the cards are then those that were there before.
    `unidentified` has one for each card that has never said which one it is, or how much memory it
    has.
    """

    taken_at: float
    cards: tuple[CardSample, ...]
    driver: str = ""
    trouble: Trouble = NO_TROUBLE
    unidentified: tuple[Trouble, ...] = ()

    @property
    def unfenced(self) -> tuple[Trouble, ...]:
        """Return those of cards that have no memory of their own."""
        return tuple(item for item in self.unidentified if item.code is TroubleCode.UNIFIED)


def merged(*lists: Iterable[GpuProcess]) -> tuple[GpuProcess, ...]:
    """
    Merge the compute, graphics and MPS lists of a card: the largest figure of each PID.

    The lists show the same memory again, and so does a list that names a PID twice: adding would
    count it double. A figure missing in any of them makes that process unknown, and the largest
    that is there is the least that it holds.
    """
    entries = list(chain.from_iterable(lists))
    if len({item.pid for item in entries}) == len(entries):
        return tuple(sorted(entries))
    largest: dict[int, int] = {}
    for pid, used, least in entries:
        largest[pid] = max(largest.get(pid, 0), least if used is None else used)
    unknown = {item.pid for item in entries if item.used_bytes is None}
    return tuple(
        GpuProcess(pid, None, used) if pid in unknown else GpuProcess(pid, used)
        for pid, used in sorted(largest.items())
    )
