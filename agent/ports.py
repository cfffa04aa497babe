"""What the loop needs from the world, as protocols: each has one real thing behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.events.episodes import EventCreate, EventPatch
    from agent.model.pod import PodsOnNode
    from agent.model.sample import Sample
    from agent.model.use import CpuTime, Occupant
    from gpufence.cards import NodeCards


class Cards(Protocol):
    """The GPUs of this node; `agent.nvml` is the real thing."""

    def sample(self, suspects: frozenset[str]) -> Sample:
        """
        Look at every card, and list the processes of the suspects' UUIDs in any case.

        Never raises and answers within a bounded time: what could not be read is in the sample, as
        None with its reason.
        """

    def close(self) -> None:
        """Stop measuring."""


class Processes(Protocol):
    """Whose a PID is; `agent.procfs.lookup.Lookup` is the real thing."""

    def occupants(self, pids: Iterable[int]) -> dict[int, Occupant]: ...

    def look(self, pid: int) -> Occupant | None: ...

    def cpu_times(self, pids: Iterable[int]) -> dict[int, CpuTime]: ...


class ClusterPort(Protocol):
    """
    What the API server tells this node's agent, and what it is told; all of it returns at once.

    `agent.cluster` is the real thing.
    """

    def pods(self) -> PodsOnNode:
        """Return the pods of this node as last known; the same object until something changes."""

    def publish(self, cards: NodeCards) -> None:
        """Have the Node say which cards it has; repeated until it does."""

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        """Have Events written; those that cannot be queued are dropped and counted."""
