"""PURE. The pods of this node, as the API server knows them and as far as their GPU memory goes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from gpufence.fences import Fence
from gpufence.pods import out_of_memory

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from agent.model.use import Owner
    from gpufence.capped import Ending, Given
    from gpufence.mode import Mode

JOB = "Job"
_DAY = len("2026-11-19")


@dataclass(frozen=True, slots=True)
class Controller:
    """Who makes more pods like this one."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodLimit:
    """
    What a pod may hold on one card, and its containers' parts of that, as far as they have any.

    `share_bytes` is what is the pod's own of it for certain, zero means all: what others leave to
    one that may borrow. `claims` are the requests of resource claims that it is made of, and what
    each has there. Where several pods use the same they may hold that together: `group` then names
    it, and their shares are equal. `fence` is what holds the pod to it beside frameworks and
    driver, as far as its kind of sharing tells.
    """

    limit_bytes: int
    parts: Mapping[str, int] = field(default_factory=dict)
    claims: tuple[tuple[str, int], ...] = ()
    group: str = ""
    share_bytes: int = 0
    fence: Fence = Fence.AGENT


class DriverLimit(NamedTuple):
    """
    What a container's variables have the driver hold it to, None where nobody can read them. It is
    `ours` if the plan on the pod says the same; `refused` says how its start failed for it.
    """

    limit_bytes: int | None
    ours: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Cap:
    """
    What a container's framework was told, and the reserve each process holds beside it. `kept` is
    False where nothing is known there that keeps to it.
    """

    cap_bytes: int
    reserve_bytes: int
    kept: bool = True


class ContainerFailure(NamedTuple):
    """How a container failed, and what it was given; None where nothing caps it."""

    ending: Ending
    given: Given | None


class PodCondition(NamedTuple):
    """What a pod shall say of itself in one condition; `turned`: by another status than before."""

    namespace: str
    name: str
    uid: str
    kind: str
    status: str
    reason: str
    message: str
    turned: bool = True


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """
    One pod.

    `mode` is the lower of what its namespace asks for and what the kill switch allows, None where
    the namespace is not fenced. `limits` are by card UUID; without any, `undeclared` says why. A
    limit that is not `enforced` is reported only. `exempt` says why this pod is never evicted. One
    that is `unasked` asks for no GPU; its namespace says what it may hold, and nothing is promised.
    `static_uid` is the UID a static pod's cgroup carries. No decision looks at `labels`.

    `cpu_ignored` are the containers whose use of the CPU is no sign of work. `idle_said` and
    `memory_said` are the statuses of its conditions `gpufence.io/GPUIdle` and
    `gpufence.io/GPUMemory`, as the API server shows them. One that `claims`
    runs, was given something of a GPU, and its namespace wants to know what becomes of that.

    One `of_operator` mounts a path of the node in a namespace without a mode, as daemons do that
    share cards out. `created` is when it was made, RFC 3339. `shares` is how many processes share a
    container's part by its own word. `failures` are of its containers, each the last.

    `told_elsewhere` has, by card UUID, what a pod holds there that keeps to the fraction it was
    told of a smaller card, where that is above its limit; `told_larger` the memory of a larger card
    that its fractions are of, where they let it have less than its limit.

    `assigned` are the cards it was given, by UUID, as far as somebody says so; `measure` is the
    dialect and the unit its limit was read in. `driver` are the limits that its containers ask the
    driver for, by name.
    """

    uid: str
    namespace: str
    name: str
    mode: Mode | None
    limits: Mapping[str, PodLimit] = field(default_factory=dict)
    undeclared: str = ""
    enforced: bool = True
    injected: bool = True
    terminating: bool = False
    exempt: str = ""
    static_uid: str = ""
    containers: Mapping[str, str] = field(default_factory=dict)
    controller: Controller | None = None
    caps: Mapping[str, Cap] = field(default_factory=dict)
    grace_seconds: int = 30
    labels: Mapping[str, str] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()
    measure: str = ""
    ended: bool = False
    cpu_ignored: frozenset[str] = frozenset()
    idle_said: str = ""
    memory_said: str = ""
    claims: bool = False
    created: str = ""
    shares: int = 1
    of_operator: bool = False
    unasked: bool = False
    told_elsewhere: Mapping[str, int] = field(default_factory=dict)
    told_larger: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[ContainerFailure, ...] = ()
    driver: Mapping[str, DriverLimit] = field(default_factory=dict)

    def limit_on(self, uuid: str) -> int | None:
        """Return what the pod may hold on a card; None where nothing says so."""
        limit = self.limits.get(uuid)
        return None if limit is None else limit.limit_bytes

    def request_on(self, uuid: str) -> int | None:
        """Return what is its own of a limit within which it may borrow; None where it may not."""
        limit = self.limits.get(uuid)
        if limit is None or limit.group or not 0 < limit.share_bytes < limit.limit_bytes:
            return None
        return limit.share_bytes

    def promise_on(self, uuid: str) -> int | None:
        """
        Return what others must leave to the pod on a card; None where no fence is around it, and
        where it is on its way out.
        """
        if self.mode is None or not self.enforced or self.terminating or self.ended:
            return None
        limit = self.limits.get(uuid)
        if limit is None or self.unasked:
            return None if limit is None else 0
        return limit.share_bytes or limit.limit_bytes

    @property
    def out_of_memory(self) -> Mapping[str, str]:
        """Return on which day a container last ended for want of its card's memory, by name."""
        return {
            one.ending.container: one.ending.at[:_DAY]
            for one in self.failures
            if out_of_memory(one.ending.out_of_memory)
        }

    @property
    def of_job(self) -> bool:
        return self.controller is not None and self.controller.kind == JOB

    @property
    def lineage(self) -> tuple[str, str, str]:
        """Return what stays when the pod is replaced: its controller, or its own name."""
        if self.controller is None:
            return self.namespace, "Pod", self.name
        return self.namespace, self.controller.kind, self.controller.uid


@dataclass(frozen=True, slots=True)
class PodsOnNode:
    """
    All pods of this node; `fresh` is False while the API server is out of reach or the kill switch
    cannot be read. `by_card` are those that were given a card and are promised memory there.
    `sharing`: some of them use one claim together; `bursting`: some may borrow.
    """

    by_uid: Mapping[str, PodOnNode]
    by_cgroup: Mapping[str, PodOnNode]
    by_container: Mapping[str, PodOnNode]
    fresh: bool = True
    by_card: Mapping[str, tuple[PodOnNode, ...]] = field(default_factory=dict)
    sharing: bool = False
    bursting: bool = False

    def find(self, owner: Owner | None) -> tuple[PodOnNode, str] | None:
        """Return the pod and the container's name, if the API server confirms both."""
        if owner is None or owner.container_id is None:
            return None
        if owner.pod_uid is None:
            pod = self.by_container.get(owner.container_id)
        else:
            pod = self.by_cgroup.get(owner.pod_uid)
        name = None if pod is None else pod.containers.get(owner.container_id)
        return None if pod is None or name is None else (pod, name)


def pods_on_node(pods: Iterable[PodOnNode], *, fresh: bool = True) -> PodsOnNode:
    """
    Index the pods in the order of their names; once per change, not per tick.

    A true UID counts more than one that an annotation claims.
    """
    ordered = sorted(_sharing(list(pods)), key=lambda pod: (pod.namespace, pod.name, pod.uid))
    by_uid = {pod.uid: pod for pod in ordered}
    by_card: dict[str, tuple[PodOnNode, ...]] = {}
    for pod in by_uid.values():
        for uuid in pod.assigned:
            if pod.promise_on(uuid):
                by_card[uuid] = (*by_card.get(uuid, ()), pod)
    return PodsOnNode(
        by_uid=by_uid,
        by_cgroup={**{pod.static_uid: pod for pod in ordered if pod.static_uid}, **by_uid},
        by_container={item: pod for pod in ordered for item in pod.containers},
        fresh=fresh,
        by_card=by_card,
        sharing=any(limit.group for pod in ordered for limit in pod.limits.values()),
        bursting=any(
            limit.share_bytes and not limit.group
            for pod in ordered
            for limit in pod.limits.values()
        ),
    )


def _sharing(pods: list[PodOnNode]) -> list[PodOnNode]:
    """
    Give each pod of those that use one claim its part of it; one that has ended holds nothing.

    Where one of them has something else beside it on that card, nobody can tell of which of both it
    holds what: then each has an equal part and no more.
    """
    users: dict[str, set[str]] = {}
    together: dict[str, set[str]] = {}
    for pod in pods:
        for limit in pod.limits.values():
            for claim, _ in () if pod.ended else limit.claims:
                users.setdefault(claim, set()).add(pod.uid)
                together.setdefault(claim, set()).add(_group(limit))
    several = {claim: len(each) for claim, each in users.items() if len(each) > 1}
    mixed = {claim for claim in several if len(together[claim]) > 1}
    return [_with_parts(pod, several, mixed) for pod in pods] if several else pods


def _group(limit: PodLimit) -> str:
    return " ".join(sorted([claim for claim, _ in limit.claims]))


def _with_parts(pod: PodOnNode, several: Mapping[str, int], mixed: Container[str]) -> PodOnNode:
    limits = {uuid: _part(limit, several, mixed) for uuid, limit in pod.limits.items()}
    return replace(pod, limits=limits)


def _part(limit: PodLimit, several: Mapping[str, int], mixed: Container[str]) -> PodLimit:
    shared = [claim for claim, _ in limit.claims if claim in several]
    if not shared:
        return limit
    if any(claim in mixed for claim in shared):
        parts = [amount // several.get(claim, 1) for claim, amount in limit.claims]
        return replace(limit, limit_bytes=max(min(limit.limit_bytes, sum(parts)), 1))
    share = max(limit.limit_bytes // several[shared[0]], 1)
    return replace(limit, group=_group(limit), share_bytes=share)
