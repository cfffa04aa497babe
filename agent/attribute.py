"""
PURE. What the cards say, what the kernel says and what the API server says, put together.

A process is a pod's only if all three agree; otherwise it is nobody's, shown and never evicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.model.use import CardUse, NodeUse, PodUse, ProcessUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.model.pod import PodsOnNode
    from agent.model.sample import CardSample, ProcessList, Sample
    from agent.model.use import Occupant

MPS_SERVER: Final = "nvidia-cuda-mps"  # what the kernel keeps of nvidia-cuda-mps-server
_NOBODY: Final = ("", "")


def attribute(
    sample: Sample,
    occupants: Mapping[int, Occupant],
    pods: PodsOnNode,
    before: NodeUse | None = None,
) -> NodeUse:
    """
    Tell what each pod holds on each card.

    `occupants` need to cover the lists that are new since `before`; a list that was not renewed
    keeps the processes it had, and their owners, but meets the pods of today.
    """
    past = {} if before is None else before.cards
    cards = (_card(card, occupants, pods, past.get(card.card.uuid)) for card in sample.cards)
    return NodeUse(sample.taken_at, {use.card.uuid: use for use in cards})


def _card(
    sample: CardSample,
    occupants: Mapping[int, Occupant],
    pods: PodsOnNode,
    before: CardUse | None,
) -> CardUse:
    listed = sample.processes
    if listed is None:
        return _unknown(sample, pods, before)
    found: Iterable[ProcessUse]
    if before is not None and before.listed_at == listed.listed_at:
        found = (_owned(item, pods, mps=sample.mps) for item in before.processes)
    else:
        found = _seen(listed, occupants, before, pods, mps=sample.mps)
    processes = tuple(found)
    return CardUse(
        card=sample.card,
        memory=sample.memory,
        listed_at=listed.listed_at,
        mps=sample.mps,
        pods=_by_pod(processes),
        processes=processes,
        unattributed_bytes=_total(item for item in processes if not item.pod_uid),
    )


def _unknown(sample: CardSample, pods: PodsOnNode, before: CardUse | None) -> CardUse:
    """
    Keep the names of those who held memory: what they hold now is unknown, not nothing.
    """
    held = () if before is None else before.pods
    return CardUse(
        card=sample.card,
        memory=sample.memory,
        listed_at=None,
        mps=sample.mps,
        pods={uid: PodUse(uid, None, None) for uid in held if uid in pods.by_uid},
        processes=(),
        unattributed_bytes=None,
    )


def _seen(
    listed: ProcessList,
    occupants: Mapping[int, Occupant],
    before: CardUse | None,
    pods: PodsOnNode,
    *,
    mps: bool,
) -> Iterator[ProcessUse]:
    """
    Meet a new list: who started after it is not the one it names.
    """
    earlier = {} if before is None else {item.pid: item.occupant for item in before.processes}
    for process in listed.processes:
        occupant = occupants.get(process.pid)
        if occupant is not None and occupant.started_by > listed.listed_at:
            occupant = None
        confirmed = occupant is not None and _same(occupant, earlier.get(process.pid))
        uid, container = _whose(occupant, pods, mps=mps)
        yield ProcessUse(process.pid, process.used_bytes, occupant, uid, container, confirmed)


def _same(occupant: Occupant, earlier: Occupant | None) -> bool:
    """
    Compare all but the name, which a process may change as it likes.
    """
    return occupant is earlier or (
        earlier is not None
        and occupant.started_ticks == earlier.started_ticks
        and occupant.owner == earlier.owner
    )


def _owned(item: ProcessUse, pods: PodsOnNode, *, mps: bool) -> ProcessUse:
    uid, container = _whose(item.occupant, pods, mps=mps)
    if uid == item.pod_uid and container == item.container:
        return item
    return item._replace(pod_uid=uid, container=container)


def _whose(occupant: Occupant | None, pods: PodsOnNode, *, mps: bool) -> tuple[str, str]:
    """
    Return the UID and the container; the server of MPS works for whoever is its client.
    """
    if occupant is None or (mps and occupant.command == MPS_SERVER):
        return _NOBODY
    found = pods.find(occupant.owner)
    return _NOBODY if found is None else (found[0].uid, found[1])


def _by_pod(processes: tuple[ProcessUse, ...]) -> dict[str, PodUse]:
    held: dict[str, list[ProcessUse]] = {}
    for item in processes:
        if item.pod_uid:
            held.setdefault(item.pod_uid, []).append(item)
    return {uid: _pod(uid, items) for uid, items in held.items()}


def _pod(uid: str, items: list[ProcessUse]) -> PodUse:
    used = _total(items)
    if used is None:
        return PodUse(uid, None, None, tuple(items))
    counted = 0
    containers: dict[str, int] = {}
    for item in items:
        if item.confirmed and item.used_bytes is not None:
            counted += item.used_bytes
            containers[item.container] = containers.get(item.container, 0) + item.used_bytes
    return PodUse(uid, used, counted, tuple(items), containers)


def _total(items: Iterable[ProcessUse]) -> int | None:
    total = 0
    for item in items:
        if item.used_bytes is None:
            return None
        total += item.used_bytes
    return total
