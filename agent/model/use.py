"""
PURE. Who holds how much on which card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.owner import Occupant
    from agent.model.sample import CardMemory
    from gpufence.cards import Card


class ProcessUse(NamedTuple):
    """
    One process on one card; `pod_uid` is empty where it belongs to no pod we know.

    It is `confirmed` once two consecutive lists show the same process with the same owner.
    """

    pid: int
    used_bytes: int | None
    occupant: Occupant | None
    pod_uid: str = ""
    container: str = ""
    confirmed: bool = False


class PodUse(NamedTuple):
    """
    What a pod holds on one card: `used_bytes` by every process, `counted_bytes` by confirmed ones.

    The truth lies between the two. Both are None where any part is unknown.
    """

    pod_uid: str
    used_bytes: int | None
    counted_bytes: int | None
    processes: tuple[ProcessUse, ...] = ()
    containers: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class CardUse:
    """
    One card. `listed_at` is None where the list of processes is unknown, and then so is the use of
    every pod that held memory there before.
    """

    card: Card
    memory: CardMemory | None
    listed_at: float | None
    mps: bool
    pods: Mapping[str, PodUse]
    processes: tuple[ProcessUse, ...]
    unattributed_bytes: int | None

    @property
    def unlisted_bytes(self) -> int | None:
        """
        Return what the card counts and no process shows: reserved, managed or hidden memory.
        """
        if self.memory is None or self.listed_at is None:
            return None
        listed = [item.used_bytes for item in self.processes]
        known = [used for used in listed if used is not None]
        if len(known) < len(listed):
            return None
        return max(self.memory.used_bytes - sum(known), 0)


@dataclass(frozen=True, slots=True)
class NodeUse:
    """
    All cards by UUID.
    """

    taken_at: float
    cards: Mapping[str, CardUse]
