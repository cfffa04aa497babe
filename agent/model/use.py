"""
PURE. Who holds how much on which card, and whose each process is, as the kernel says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.pod import PodOnNode
    from agent.model.sample import CardMemory
    from gpufence.cards import Card


class Owner(NamedTuple):
    """
    What a cgroup path names.

    A static pod's UID is the hash its kubelet made up. No UID but a container: a neighbour of the
    reader, in the reader's own pod. No container: the pod's own cgroup.
    """

    pod_uid: str | None
    container_id: str | None


class Occupant(NamedTuple):
    """
    A living process: PID and start time together name it for ever.

    `started_by` is the last moment at which it can have started; the kernel counts in ticks.
    """

    pid: int
    started_ticks: int
    started_by: float
    owner: Owner | None
    command: str = ""


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


def allowance_bytes(pod: PodOnNode, use: PodUse) -> int | None:
    """
    Add up what each container that holds memory on a card was told; None where any was told
    nothing, since then nothing caps the sum.
    """
    names = {process.container for process in use.processes}
    caps = [pod.caps.get(name) for name in names]
    known = [cap.cap_bytes for cap in caps if cap is not None]
    return sum(known) if known and len(known) == len(caps) else None
