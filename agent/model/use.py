"""PURE. Who holds how much on which card, and whose each process is, as the kernel says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from agent.model.memory import NO_REFUSALS, NO_WATCH, Refusals, Watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.decision import Brake
    from agent.model.pod import PodOnNode, PodsOnNode
    from agent.model.sample import CardMemory, Sample
    from gpufence.cards import Card


UseKey: TypeAlias = tuple[str, str]
"""A pod by its UID, on a card by its UUID."""
MPS_SERVER: Final = "nvidia-cuda-mps"  # what the kernel keeps of nvidia-cuda-mps-server


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


class CpuTime(NamedTuple):
    """What a process has used of the CPU since it started, which tells whether it is the same."""

    started_ticks: int
    seconds: float


class PidOwner(NamedTuple):
    """The pod that a process was of which started then."""

    pod_uid: str
    namespace: str
    name: str
    started_ticks: int


class ProcessUse(NamedTuple):
    """
    One process on one card; `pod_uid` is empty where it belongs to no pod we know, `container` also
    where its pod's status has not named it for long.

    It is `confirmed` if the list proves who it is: the process started before the list was made and
    lived after it, and the list before named no other by this PID. An `mps` process is a client of
    the node's MPS server, so that nobody knows for certain whose memory either of them holds.
    `least_bytes` is what it holds for certain where the driver does not say how much it holds. One
    that belongs to no pod any more `was` of that one, as long as the card goes on to list it.
    """

    pid: int
    used_bytes: int | None
    occupant: Occupant | None
    pod_uid: str = ""
    container: str = ""
    confirmed: bool = False
    mps: bool = False
    least_bytes: int = 0
    was: PidOwner | None = None

    @property
    def certain_bytes(self) -> int | None:
        """Return what it holds, at least; None where nothing of it is known."""
        return (self.least_bytes or None) if self.used_bytes is None else self.used_bytes


class PodOnCard(NamedTuple):
    """
    One pod on one card in one tick: a value that is filled in on its way.

    Attribution fills in its limit, if there is one, and what it holds: `used_bytes` by every
    process, None where the driver does not say it of any, and `counted_bytes` by the confirmed ones
    of which it does. The truth lies between the two; both are None where the list is unknown.
    `mps`: it has clients of the node's MPS server, which hold `mps_bytes` of what is counted. What
    is counted above its request and within its limit is `borrowed_bytes`.

    `judge.standing` takes them away where the pod's other processes are over a threshold without
    them, and fills in whether it is over each threshold of its limit, None where that is not
    certain. On a card that is `short`, `taking` is over the threshold for evictions while others
    are owed more than is free, and `short_over` over the lower one while hardly anything is free.
    `speed` is how fast its time over counts. It is `recalled` where it is above its request by more
    than a margin, and others miss what it borrows.

    `judge.time` fills in the rest for a pod that is over a threshold, may be, or was a moment ago.
    """

    pod: PodOnNode
    card: Card
    limit_bytes: int | None
    used_bytes: int | None
    counted_bytes: int | None
    processes: tuple[ProcessUse, ...] = ()
    containers: Mapping[str, int] | None = None
    mps: bool = False
    mps_bytes: int = 0
    borrowed_bytes: int = 0
    report_over: bool | None = False
    evict_over: bool | None = False
    short_over: bool | None = False
    taking: bool | None = False
    short: bool = False
    recalled: bool | None = False
    speed: float = 1.0
    grace_ends_at: float = 0.0
    hold_seconds: float = 0.0
    watch: Watch = NO_WATCH
    refusals: Refusals = NO_REFUSALS
    brake: Brake | None = None

    @property
    def allowance_bytes(self) -> int | None:
        """
        Add up what each container that holds memory on the card was told; None where any was told
        nothing, since then nothing caps the sum.
        """
        names = {process.container for process in self.processes}
        caps = [self.pod.caps.get(name) for name in names]
        known = [cap.cap_bytes for cap in caps if cap is not None]
        return sum(known) if known and len(known) == len(caps) else None

    @property
    def keeps_elsewhere(self) -> bool:
        """
        Return whether a pod keeps to what it was told of another card, which is too much of this.
        """
        told = self.pod.told_elsewhere.get(self.card.uuid)
        return told is not None and self.used_bytes is not None and self.used_bytes <= told

    @property
    def own_bytes(self) -> int:
        """Return what is counted without the clients of the node's MPS server."""
        return (self.counted_bytes or 0) - self.mps_bytes

    @property
    def certain_bytes(self) -> int:
        """Return what the pod holds, at least."""
        return (self.counted_bytes if self.used_bytes is None else self.used_bytes) or 0

    @property
    def excess_bytes(self) -> int:
        """Return what the pod holds above its limit for certain."""
        if self.counted_bytes is None or self.limit_bytes is None:
            return 0
        return max(self.counted_bytes - self.limit_bytes, 0)

    @property
    def owed_bytes(self) -> int:
        """Return what is reserved for the pod and not held; nothing where its use is unknown."""
        promise = self.pod.promise_on(self.card.uuid)
        return 0 if self.used_bytes is None else max((promise or 0) - self.used_bytes, 0)


@dataclass(frozen=True, slots=True)
class CardUse:
    """
    One card. `listed_at` is None where the list of processes is unknown, and then so is the use of
    every pod that held memory there before: `owners` then says by PID whose the last list was.
    `mps`: it has clients of some MPS server.
    """

    card: Card
    memory: CardMemory | None
    listed_at: float | None
    mps: bool
    pods: Mapping[str, PodOnCard]
    processes: tuple[ProcessUse, ...]
    unattributed_bytes: int | None
    owners: Mapping[int, PidOwner] = field(default_factory=dict)

    @property
    def left(self) -> tuple[tuple[ProcessUse, PidOwner], ...]:
        """Return what the card lists for pods that have ended, and for which; the largest first."""
        found = [(item, item.was) for item in self.processes if item.was is not None]
        return tuple(sorted(found, key=lambda pair: (-(pair[0].used_bytes or 0), pair[0].pid)))

    @property
    def left_bytes(self) -> int | None:
        """Return how much that is, as far as it is known."""
        known = sum(item.used_bytes or 0 for item, _ in self.left)
        return None if self.listed_at is None else known

    @property
    def unlisted_bytes(self) -> int | None:
        """Return what the card counts and no process shows: reserved, managed or hidden memory."""
        if self.memory is None or self.listed_at is None:
            return None
        listed = [item.used_bytes for item in self.processes]
        known = [used for used in listed if used is not None]
        if len(known) < len(listed):
            return None
        return max(self.memory.used_bytes - sum(known), 0)


@dataclass(frozen=True, slots=True)
class Observation:
    """
    One look at the node: the cards by UUID, who holds what on them, and the pods it was told by.

    `unnamed` says since when processes are known in cgroups of pods that no status names. `idle` is
    for how long pods have done nothing, by UID; the others are unknown.
    """

    sample: Sample
    pods: PodsOnNode
    cards: Mapping[str, CardUse]
    unnamed: Mapping[Owner, float] = field(default_factory=dict)
    idle: Mapping[str, float] = field(default_factory=dict)

    def shows_what(self, before: Observation | None) -> bool:
        """Return whether attribution has found no change; then it hands on what it found before."""
        return (
            before is not None
            and self.pods is before.pods
            and self.cards.keys() == before.cards.keys()
            and all(card.pods is before.cards[uuid].pods for uuid, card in self.cards.items())
        )
