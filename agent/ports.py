"""What the loop needs from the world, as protocols: each has one real thing behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.events import EventCreate, EventPatch
    from agent.model.activity import CpuTime, IdleCondition
    from agent.model.decision import ActResult, Verdict
    from agent.model.need import StoredNeed
    from agent.model.pod import PodsOnNode
    from agent.model.sample import Sample
    from agent.model.use import Occupant
    from gpufence.cards import NodeCards
    from gpufence.need import NodeNeed


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
    The API server, as far as this node may ask it; `agent.cluster` is the real thing.

    All but `carry_out` return at once; what they ask for happens on threads of their own.
    """

    def pods(self) -> PodsOnNode:
        """Return the pods of this node as last known; the same object until something changes."""

    def publish(self, cards: NodeCards) -> None:
        """Have the Node say which cards it has; repeated until it does."""

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        """Have Events written; those that cannot be queued are dropped and counted."""

    def say_idle(self, conditions: Iterable[IdleCondition]) -> None:
        """Have pods say whether they are idle; of each only the last word counts."""

    def stored_need(self) -> StoredNeed | None:
        """
        Return what an agent of this node has stored, as last read; None before the first time.
        """

    def store_need(self, need: NodeNeed) -> None:
        """Have it stored; only the last word counts."""

    def carry_out(self, verdict: Verdict) -> ActResult:
        """
        Ask the API server to make a pod go, after a last look at the pod itself. Blocks; not KILL.
        """
