"""What the loop needs from the world, as protocols: each has one real thing behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from agent.events.episodes import EventCreate, EventPatch
    from agent.model.pod import PodCondition, PodsOnNode
    from agent.model.sample import Sample, Trouble
    from agent.model.use import CpuTime, Occupant
    from agent.nvml.protocol import Answer, Question
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


class NvmlAside(Protocol):
    """
    What a concern asks NVML by itself; `agent.nvml.session.Aside` is the real thing. One thread
    uses it, never the one that ticks: an answer may take seconds.
    """

    def ask(self, questions: Collection[Question]) -> Mapping[Question, Answer | Trouble]:
        """Return an answer to each, or why there is none; never raises."""

    def rest(self) -> None:
        """Let go of what answering takes; the next question has it back."""


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

    def say(self, conditions: Iterable[PodCondition]) -> None:
        """Have pods say this of themselves; of each only the last word counts."""
