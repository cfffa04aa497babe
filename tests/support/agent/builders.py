"""Builders of what the agent's parts hand each other; valid by default."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent.attribute import attribute
from agent.model.pod import Controller, PodLimit, PodOnNode, pods_on_node
from agent.model.sample import CardMemory, CardSample, GpuProcess, ProcessList, Sample
from agent.model.use import Observation, Occupant, Owner, PodOnCard, ProcessUse
from gpufence.mode import Mode
from gpufence.quantity import GIB
from tests.support.builders import T4_BYTES, card

LIMIT = 3 * GIB
CARDS = tuple(card(index) for index in range(8))


def container_id(pod: str, container: str = "main") -> str:
    """Make up a container's id, the same for the same names."""
    return f"{pod}-{container}".encode().hex().ljust(64, "0")[:64]


def pod(name: str = "a", *containers: str, limit: int | None = LIMIT, **more: Any) -> PodOnNode:
    """Build a pod in evict mode with this limit on every card."""
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "namespace": "team-a",
        "name": name,
        "mode": Mode.EVICT,
        "limits": {} if limit is None else {item.uuid: PodLimit(limit) for item in CARDS},
        "containers": {container_id(name, item): item for item in containers or ("main",)},
    }
    return PodOnNode(**fields | more)


def controller(kind: str = "ReplicaSet", name: str = "web", uid: str = "uid-web") -> Controller:
    return Controller("batch/v1" if kind == "Job" else "apps/v1", kind, name, uid)


def occupant(
    pid: int, pod_uid: str | None, container: str | None, *, started: float = -500.0, **more: Any
) -> Occupant:
    """Build a process that started long ago."""
    owner = None if pod_uid is None and container is None else Owner(pod_uid, container)
    return Occupant(pid, int(started * 100), started, owner, **more)


def process_of(item: PodOnNode, pid: int = 1, container: str = "main", **more: Any) -> Occupant:
    return occupant(pid, item.static_uid or item.uid, container_id(item.name, container), **more)


def on_card(item: PodOnNode, used: int | None, *processes: ProcessUse, **more: Any) -> PodOnCard:
    """Build a pod that holds so much on the first card, all of it confirmed."""
    limit = item.limit_on(CARDS[0].uuid)
    return PodOnCard(item, CARDS[0], limit, used, used, processes, **more)


def memory(used: int = 0, *, total: int = T4_BYTES) -> CardMemory:
    return CardMemory(total, used, total - used)


def card_sample(
    index: int = 0,
    held: Mapping[int, int | None] | None = None,
    *,
    at: float = 0.0,
    free: int | None = None,
    mps: Iterable[int] = (),
) -> CardSample:
    """
    Build a card on which each PID holds so much; none at all means that the list is unknown. Those
    in `mps` are clients of an MPS server.
    """
    used = sum(item or 0 for item in (held or {}).values())
    listed = None
    if held is not None:
        listed = ProcessList(at, tuple(GpuProcess(pid, item) for pid, item in held.items()))
    account = memory(used if free is None else T4_BYTES - free)
    return CardSample(CARDS[index], account, listed, frozenset(mps))


def uses(
    samples: Iterable[CardSample],
    occupants: Iterable[Occupant],
    pods: Iterable[PodOnNode],
    before: Observation | None = None,
    *,
    at: float = 0.0,
) -> Observation:
    """Attribute one sample."""
    known = {item.pid: item for item in occupants}
    return attribute(Sample(at, tuple(samples)), known, pods_on_node(pods), before)
