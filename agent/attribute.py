"""
PURE. What the cards say, what the kernel says and what the API server says, put together.

A process is a pod's only if all three agree; otherwise it is nobody's, shown and never evicted.

One list proves who is on it. It is read after somebody noted the time: a process that started
before that, and has the PID afterwards, had it all the while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.model.use import MPS_SERVER, CardUse, Observation, PodOnCard, ProcessUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.model.pod import PodsOnNode
    from agent.model.sample import CardSample, ProcessList, Sample
    from agent.model.use import Occupant
    from gpufence.cards import Card

_NOBODY: Final = ("", "")


def attribute(
    sample: Sample,
    occupants: Mapping[int, Occupant],
    pods: PodsOnNode,
    before: Observation | None = None,
) -> Observation:
    """
    Return what each pod holds on each card.

    `occupants` need to cover the lists that are new since `before`; a list that was not renewed
    keeps the processes it had, and their owners, but meets the pods of today.
    """
    past = {} if before is None else before.cards
    same_pods = before is not None and before.pods is pods
    cards = {
        item.card.uuid: _card(item, occupants, pods, past.get(item.card.uuid), same_pods=same_pods)
        for item in sample.cards
    }
    return Observation(sample, pods, cards)


def _card(
    sample: CardSample,
    occupants: Mapping[int, Occupant],
    pods: PodsOnNode,
    before: CardUse | None,
    *,
    same_pods: bool,
) -> CardUse:
    listed = sample.processes
    if listed is None:
        return _unknown(sample, pods, before)
    if before is not None and before.listed_at is None:
        before = None  # an unknown list is no ground for anything
    settled = same_pods and before is not None
    if before is not None and before.listed_at == listed.listed_at:
        processes = before.processes
        if not settled:
            processes = tuple(_owned(item, pods) for item in processes)
    else:
        processes = tuple(_seen(listed, occupants, pods, before, settled=settled))
    if sample.mps_clients or (before is not None and before.mps):
        processes = _with_mps(processes, sample.mps_clients, pods)
    if settled and before is not None and processes == before.processes:
        uses, nobodys = before.pods, before.unattributed_bytes
    else:
        uses = _by_pod(sample.card, processes, pods)
        nobodys = _total(item for item in processes if not item.pod_uid)
    return CardUse(
        sample.card,
        sample.memory,
        listed.listed_at,
        bool(sample.mps_clients),
        uses,
        processes,
        nobodys,
    )


def _unknown(sample: CardSample, pods: PodsOnNode, before: CardUse | None) -> CardUse:
    """Keep the names of those who held memory: what they hold now is unknown, not nothing."""
    known = pods.by_uid
    uids = () if before is None else [uid for uid in before.pods if uid in known]
    uuid = sample.card.uuid
    unknown = {
        uid: PodOnCard(known[uid], sample.card, known[uid].limit_on(uuid), None, None)
        for uid in uids
    }
    return CardUse(sample.card, sample.memory, None, sample.mps, unknown, (), None)


def _seen(
    listed: ProcessList,
    occupants: Mapping[int, Occupant],
    pods: PodsOnNode,
    before: CardUse | None,
    *,
    settled: bool,
) -> Iterator[ProcessUse]:
    """
    Meet a new list: who started after it is not the one it names.

    Where it shows what the one before showed, and the pods are `settled`, nothing is worked out
    again.
    """
    earlier = {} if before is None else {item.pid: item for item in before.processes}
    for process in listed.processes:
        pid, used = process
        occupant = occupants.get(pid)
        if occupant is not None and occupant.started_by > listed.listed_at:
            occupant = None
        past = earlier.get(pid)
        if past is not None and settled and past.confirmed and past.occupant is occupant:
            yield past if past.used_bytes == used else past._replace(used_bytes=used)
            continue
        was = None if past is None else past.occupant
        # A process may change its name as it likes, but not when it started. What held the PID in
        # the list before may have left its entry to a driver that is slow to forget.
        confirmed = occupant is not None and (
            past is None
            or (
                was is not None
                and (occupant.started_ticks, occupant.owner) == (was.started_ticks, was.owner)
            )
        )
        uid, container = _whose(occupant, pods)
        yield ProcessUse(pid, used, occupant, uid, container, confirmed)


def _owned(item: ProcessUse, pods: PodsOnNode) -> ProcessUse:
    uid, container = _whose(item.occupant, pods)
    if uid == item.pod_uid and container == item.container:
        return item
    return item._replace(pod_uid=uid, container=container)


def _whose(occupant: Occupant | None, pods: PodsOnNode) -> tuple[str, str]:
    """
    Return the UID and the container.
    """
    owner = None if occupant is None else pods.find(occupant.owner)
    return _NOBODY if owner is None else (owner[0].uid, owner[1])


def _with_mps(
    processes: tuple[ProcessUse, ...], clients: frozenset[int], pods: PodsOnNode
) -> tuple[ProcessUse, ...]:
    """
    Mark those whose memory cannot be charged for certain: clients of the node's own MPS server.

    Where a pod runs a server itself, server and clients are that pod's alone. A name is anybody's
    to take, so it makes a process the node's server only where the kernel knows of no pod, or the
    operator has exempted that pod; and a pod's own server takes nothing away from its limit.
    """
    by_node = any(
        (item.pid in clients or _is_server(item)) and _is_nodes(item, pods) for item in processes
    )
    self_served = {item.pod_uid for item in processes if _is_server(item)}
    marks = (
        by_node and bool(item.pod_uid) and item.pid in clients and item.pod_uid not in self_served
        for item in processes
    )
    return tuple(
        item if item.mps is mark else item._replace(mps=mark)
        for item, mark in zip(processes, marks, strict=True)
    )


def _is_server(item: ProcessUse) -> bool:
    return item.occupant is not None and item.occupant.command == MPS_SERVER


def _is_nodes(item: ProcessUse, pods: PodsOnNode) -> bool:
    """
    Return whether a process is the operator's; of one that could not be looked up nobody knows.
    """
    if item.pod_uid:
        return bool(pods.by_uid[item.pod_uid].exempt)
    return item.occupant is not None and item.occupant.owner is None


def _by_pod(card: Card, processes: Iterable[ProcessUse], pods: PodsOnNode) -> dict[str, PodOnCard]:
    """
    Add up each pod's processes; one that is unknown makes its pod's use unknown.
    """
    by_uid: dict[str, list[ProcessUse]] = {}
    for item in processes:
        if item.pod_uid:
            by_uid.setdefault(item.pod_uid, []).append(item)
    uses: dict[str, PodOnCard] = {}
    for uid, items in by_uid.items():
        used, counted = _total(items), 0
        containers: dict[str, int] = {}
        for item in items:
            if item.confirmed and item.used_bytes is not None:
                counted += item.used_bytes
                containers[item.container] = containers.get(item.container, 0) + item.used_bytes
        pod = pods.by_uid[uid]
        limit = pod.limit_on(card.uuid)
        others = counted - sum(i.used_bytes or 0 for i in items if i.mps and i.confirmed)
        mps = any(item.mps for item in items) and (limit is None or others <= limit)
        if used is None:
            uses[uid] = PodOnCard(pod, card, limit, None, None, tuple(items), mps=mps)
        else:
            uses[uid] = PodOnCard(pod, card, limit, used, counted, tuple(items), containers, mps)
    return _with_sharers(uses, card.uuid) if pods.sharing else uses


def _with_sharers(uses: dict[str, PodOnCard], uuid: str) -> dict[str, PodOnCard]:
    """
    Leave each pod of those that use one claim what the others do not hold of it, and its equal part
    at least: whoever holds more is over once all of them together are.
    """
    limits = {uid: use.pod.limits.get(uuid) for uid, use in uses.items()}
    shared = {
        uid: limit for uid, limit in limits.items() if limit is not None and limit.share_bytes
    }
    held: dict[str, int] = {}
    for uid, limit in shared.items():
        held[limit.group] = held.get(limit.group, 0) + (uses[uid].counted_bytes or 0)
    left = {
        uid: limit.limit_bytes - held[limit.group] + (uses[uid].counted_bytes or 0)
        for uid, limit in shared.items()
    }
    return {
        **uses,
        **{
            uid: uses[uid]._replace(limit_bytes=max(limit.share_bytes, left[uid]))
            for uid, limit in shared.items()
        },
    }


def _total(items: Iterable[ProcessUse]) -> int | None:
    total = 0
    for item in items:
        if item.used_bytes is None:
            return None
        total += item.used_bytes
    return total
