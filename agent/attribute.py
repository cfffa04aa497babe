"""
PURE. What the cards say, what the kernel says and what the API server says, put together.

A process is a pod's only if all three agree; otherwise it is nobody's, shown and never evicted.
Where a pod's status does not name the container for long, the kernel's word for the pod is enough:
into a pod as large as etcd takes them nobody can write a status.

One list proves who is on it. It is read after somebody noted the time: a process that started
before that, and has the PID afterwards, had it all the while. What a list still names and nothing
runs for is remembered as its pod's, which is shown and charged to no pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent.model.use import MPS_SERVER, CardUse, Observation, PidOwner, PodOnCard, ProcessUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.model.pod import PodsOnNode
    from agent.model.sample import CardSample, ProcessList, Sample
    from agent.model.use import Occupant, Owner
    from gpufence.cards import Card

NAMED_SECONDS: Final = 30.0
"""How long a kubelet may take to say which containers it has started."""
MOST_UNNAMED: Final = 1024
_NOBODY: Final = ("", "")
_NONE: Final[Mapping[Owner, float]] = {}
_NOT_OVERDUE: Final[frozenset[Owner]] = frozenset()
_NO_OWNERS: Final[Mapping[int, PidOwner]] = {}


def attribute(
    sample: Sample,
    occupants: Mapping[int, Occupant],
    pods: PodsOnNode,
    before: Observation | None = None,
    *,
    charge_mps: bool = False,
) -> Observation:
    """
    Return what each pod holds on each card; `charge_mps`: clients of the node's MPS server too are
    charged what the driver says that they hold.

    `occupants` need to cover the lists that are new since `before`; a list that was not renewed
    keeps the processes it had, and their owners, but meets the pods of today.
    """
    past = {} if before is None else before.cards
    known = _NONE if before is None else before.unnamed
    strangers = {item.owner for item in occupants.values() if pods.find(item.owner) is None}
    unnamed = _unnamed(known, strangers, pods, sample.taken_at) if known or strangers else _NONE
    overdue = _overdue(unnamed, sample.taken_at) if unnamed else _NOT_OVERDUE
    whose = _Whose(pods, overdue, charge_mps)
    same_pods = before is not None and before.pods is pods
    if before is not None and known:
        same_pods = same_pods and whose.overdue == _overdue(known, before.sample.taken_at)
    cards = {
        item.card.uuid: _card(item, occupants, whose, past.get(item.card.uuid), same_pods=same_pods)
        for item in sample.cards
    }
    return Observation(sample, pods, cards, unnamed)


class _Whose(NamedTuple):
    """The pods, and what `overdue` cgroups of theirs no status has named in time."""

    pods: PodsOnNode
    overdue: frozenset[Owner]
    charge_mps: bool

    def find(self, occupant: Occupant | None) -> tuple[str, str]:
        """Return the UID and the container, which may be unknown."""
        owner = None if occupant is None else occupant.owner
        confirmed = self.pods.find(owner)
        if confirmed is not None:
            return confirmed[0].uid, confirmed[1]
        if owner is None or owner.pod_uid is None or owner not in self.overdue:
            return _NOBODY
        return self.pods.by_cgroup[owner.pod_uid].uid, ""


def _unnamed(
    before: Mapping[Owner, float],
    strangers: Iterable[Owner | None],
    pods: PodsOnNode,
    now: float,
) -> Mapping[Owner, float]:
    """
    Return since when processes are known in cgroups of this node's pods that no status names.

    It is kept for as long as the pod is there: letting go for a moment begins nothing anew.
    """
    owners = {**dict.fromkeys((item for item in strangers if item is not None), now), **before}
    kept = [
        (owner, since)
        for owner, since in owners.items()
        if owner.pod_uid in pods.by_cgroup and pods.find(owner) is None
    ]
    return dict(sorted(kept, key=lambda pair: pair[1])[-MOST_UNNAMED:])


def _overdue(unnamed: Mapping[Owner, float], now: float) -> frozenset[Owner]:
    return frozenset(owner for owner, since in unnamed.items() if now - since >= NAMED_SECONDS)


def _card(
    sample: CardSample,
    occupants: Mapping[int, Occupant],
    whose: _Whose,
    before: CardUse | None,
    *,
    same_pods: bool,
) -> CardUse:
    pods = whose.pods
    listed = sample.processes
    if listed is None:
        return _unknown(sample, pods, before)
    owners = _NO_OWNERS if before is None else before.owners
    if before is not None and before.listed_at is None:
        before = None  # an unknown list is no ground for anything
    settled = same_pods and before is not None
    if before is not None and before.listed_at == listed.listed_at:
        processes = before.processes
        if not settled:
            processes = tuple(_owned(item, whose, before) for item in processes)
    else:
        processes = tuple(_seen(listed, occupants, whose, before, owners, settled=settled))
    if (sample.mps_clients or (before is not None and before.mps)) and not whose.charge_mps:
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
    owners = {} if before is None else _owners(before)
    return CardUse(sample.card, sample.memory, None, sample.mps, unknown, (), None, owners)


def _seen(
    listed: ProcessList,
    occupants: Mapping[int, Occupant],
    whose: _Whose,
    before: CardUse | None,
    owners: Mapping[int, PidOwner],
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
        pid, used, least = process
        occupant = occupants.get(pid)
        if occupant is not None and occupant.started_by > listed.listed_at:
            occupant = None
        past = earlier.get(pid)
        if past is not None and settled and past.confirmed and past.occupant is occupant:
            if (past.used_bytes, past.least_bytes) != (used, least):
                past = past._replace(used_bytes=used, least_bytes=least)
            yield past
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
        uid, container = whose.find(occupant)
        left_by = None
        if not uid:
            known = _owner(past, before) if past and before else owners.get(pid)
            left_by = _still(known, occupant)
        yield ProcessUse(
            *(pid, used, occupant, uid, container, confirmed), least_bytes=least, was=left_by
        )


def _owned(item: ProcessUse, whose: _Whose, before: CardUse) -> ProcessUse:
    uid, container = whose.find(item.occupant)
    if uid == item.pod_uid and container == item.container:
        return item
    was = None if uid else _owner(item, before)
    return item._replace(pod_uid=uid, container=container, was=was)


def _owners(card: CardUse) -> Mapping[int, PidOwner]:
    """Return whose the processes of the last known list are or were."""
    if card.listed_at is None:
        return card.owners
    known = {item.pid: _owner(item, card) for item in card.processes}
    return {pid: owner for pid, owner in known.items() if owner is not None}


def _owner(item: ProcessUse, card: CardUse) -> PidOwner | None:
    """Return the pod that a process is or was of, if its start is known, by which it is known."""
    if not item.pod_uid or item.occupant is None:
        return item.was
    pod = card.pods[item.pod_uid].pod
    return PidOwner(pod.uid, pod.namespace, pod.name, item.occupant.started_ticks)


def _still(owner: PidOwner | None, occupant: Occupant | None) -> PidOwner | None:
    """Return the owner of an entry, unless the PID belongs to another process by now."""
    if owner is None or occupant is None or occupant.started_ticks == owner.started_ticks:
        return owner
    return None


def _with_mps(
    processes: tuple[ProcessUse, ...], clients: frozenset[int], pods: PodsOnNode
) -> tuple[ProcessUse, ...]:
    """
    Mark those whose memory cannot be charged for certain: clients of the node's own MPS server.

    Where a pod runs a server itself, server and clients are that pod's alone. A name is anybody's
    to take, so it makes a process the node's server only where the kernel knows of no pod, or the
    pod is the operator's; and a pod's own server takes nothing away from its limit.
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
        pod = pods.by_uid[item.pod_uid]
        return bool(pod.exempt) or pod.of_operator
    return item.occupant is not None and item.occupant.owner is None


def _by_pod(card: Card, processes: Iterable[ProcessUse], pods: PodsOnNode) -> dict[str, PodOnCard]:
    """
    Add up each pod's processes. With one of which nobody knows how much it holds nobody knows what
    its pod holds in all, but what the others hold for certain stays certain.
    """
    by_uid: dict[str, list[ProcessUse]] = {}
    for item in processes:
        if item.pod_uid:
            by_uid.setdefault(item.pod_uid, []).append(item)
    uses: dict[str, PodOnCard] = {}
    for uid, items in by_uid.items():
        used, counted, of_clients = _total(items), 0, 0
        containers: dict[str, int] = {}
        for item in items:
            certain = item.certain_bytes
            if item.confirmed and certain is not None:
                counted += certain
                of_clients += certain if item.mps else 0
                containers[item.container] = containers.get(item.container, 0) + certain
        pod, mps = pods.by_uid[uid], any(item.mps for item in items)
        limit, listed = pod.limit_on(card.uuid), tuple(items)
        uses[uid] = PodOnCard(
            pod, card, limit, used, counted, listed, containers, mps, mps_bytes=of_clients
        )
    if pods.bursting:
        uses = {uid: _with_loan(use) for uid, use in uses.items()}
    return _with_sharers(uses, card.uuid) if pods.sharing else uses


def _with_loan(use: PodOnCard) -> PodOnCard:
    request = use.pod.request_on(use.card.uuid)
    if request is None:
        return use
    loan = max((use.counted_bytes or 0) - request, 0) - use.excess_bytes
    return use._replace(borrowed_bytes=loan)


def _with_sharers(uses: dict[str, PodOnCard], uuid: str) -> dict[str, PodOnCard]:
    """
    Leave each pod of those that use one claim what the others do not hold of it, and its equal part
    at least: one that holds more is over once all of them together are.
    """
    limits = {uid: use.pod.limits.get(uuid) for uid, use in uses.items()}
    shared = {uid: limit for uid, limit in limits.items() if limit is not None and limit.group}
    held: dict[str, int] = {}
    for uid, limit in shared.items():
        held[limit.group] = held.get(limit.group, 0) + uses[uid].own_bytes
    left = {
        uid: limit.limit_bytes - held[limit.group] + uses[uid].own_bytes
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
