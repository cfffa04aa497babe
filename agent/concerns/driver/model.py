"""
PURE. What was read back of a container's limit on a card, and what that says.

A limit counts as held if it is the one that the container's variables ask for, is its cgroup's own,
and the driver counts what the container holds against it. Some drivers answer with the nearest
ancestor's limit where a cgroup has none, so the parent is asked as well, once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from agent.model.sample import Trouble
from agent.nvml.faults import Code
from agent.nvml.protocol import Limited, NvmlFailure
from gpufence.fences import FIRST_DRIVER, Fence, is_too_old
from gpufence.setting_kinds import choice
from gpufence.settings import setting
from gpufence.share import CAP_SLACK
from gpufence.text import limit_mebibytes, mebibytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent.model.pod import PodLimit, PodOnNode
    from agent.model.use import CardUse, Observation, PodOnCard
    from agent.nvml.protocol import Answer
    from gpufence.cards import Card

    Said: TypeAlias = Answer | Trouble | None

ReadKey: TypeAlias = tuple[str, str]
"""A container by its id, on a card by its UUID."""
NO_HARD_LIMIT: Final = 2**64 - 1
UNCOUNTED_READS: Final = 3
"""Lists and limits are read at different moments: only what lasts says that use is not counted."""
KEPT_READS: Final = 6
"""How many times the interval of reads an answer holds while the driver gives no newer one."""

_NOT_SET: Final = (
    "no limit is set on its cgroup, so NVIDIA's hook did not run or had nothing to set: that takes "
    "container toolkit 1.20.1, not in legacy mode, with the hook apply-cuda-memory-limits enabled"
)
_GONE: Final = frozenset({Code.NOT_FOUND, Code.NOT_SUPPORTED})
_OF_PARENT: Final = "what is found is the limit of a cgroup above its own, which has none"
_NO_CGROUP: Final = (
    "its cgroup was not found below GPUFENCE_CGROUP_ROOT; mount the node's /sys/fs/cgroup there, "
    "which is to be of version 2"
)
_FAILURES: Final = {
    Code.FUNCTION_NOT_FOUND: f"the driver has no such limits; they begin with r{FIRST_DRIVER}",
    Code.NOT_SUPPORTED: f"{_NOT_SET}; or the driver's accounting is off (RmMemacctMode=0)",
    Code.NOT_FOUND: _NOT_SET,
    Code.INVALID_ARGUMENT: "the driver does not know its cgroup; the agent needs the node's own",
    Code.NO_PERMISSION: "the driver refuses to tell; run the agent with all devices",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPolicy:
    """How limits of the driver are read back."""

    cgroup_root: str = field(
        default="/sys/fs/cgroup",
        metadata=setting(
            "GPUFENCE_CGROUP_ROOT",
            "where the node's own cgroups (version 2) are mounted, read-only; the driver is asked "
            "for folders below it",
        ),
    )
    read_seconds: float = field(
        default=10.0,
        metadata=setting(
            "GPUFENCE_DRIVER_SECONDS",
            "interval at which the limit that the driver holds a container to is read back",
            least=0.1,
            most=600,
        ),
    )
    label: str = field(
        default="keep",
        metadata=setting(
            "GPUFENCE_DRIVER_LABEL",
            "`remove`: the label `gpufence.io/driver-limits` is taken off this Node where "
            "containers with such limits cannot start; `canary`: it is also set, once the node's "
            "canary is held to its limit; `keep`: that is only reported",
            kind=choice(("keep", "remove", "canary")),
        ),
    )


class State(StrEnum):
    HELD = "held"  # to what its variables ask for
    ABSENT = "absent"  # to something else, or to nothing
    UNKNOWN = "unknown"  # the driver did not answer


class AskedLimit(NamedTuple):
    """
    A container that holds memory on a card and is to be held to a limit there. `asked_bytes` is
    what its variables say; where they are set for it by others, any limit within its part will do.
    """

    pod: PodOnNode
    container: str
    identity: str
    card: Card
    asked_bytes: int | None
    part_bytes: int
    used_bytes: int
    listed_at: float | None
    ours: bool

    @property
    def key(self) -> ReadKey:
        return self.identity, self.card.uuid


class LimitFound(NamedTuple):
    """`why` says in words what stands against its being held; `code` is NVML's, if it was that."""

    state: State
    why: str = ""
    hard_bytes: int = 0
    code: int | None = None


class LimitRecord(NamedTuple):
    """
    The last word about one container on one card, asked for at `at`, answered at `answered`, in the
    same state `since`. `uncounted`: so many times in a row the driver counted less than the
    container held by the list of that time.
    """

    at: float
    answered: float
    found: LimitFound
    since: float
    uncounted: int
    listed_at: float | None


Records: TypeAlias = "Mapping[ReadKey, LimitRecord]"


def wanted_in(observation: Observation) -> dict[ReadKey, AskedLimit]:
    """Return all that are to be read back; MIG instances have no such limits."""
    return {
        item.key: item
        for use in observation.cards.values()
        if use.card.mig is None
        for pod in use.pods.values()
        if pod.pod.mode is not None and not pod.pod.ended
        for item in _of_pod(use, pod)
    }


def _of_pod(card: CardUse, use: PodOnCard) -> Iterator[AskedLimit]:
    pod, limit = use.pod, use.pod.limits.get(card.card.uuid)
    if limit is None:
        return
    identities = {name: identity for identity, name in pod.containers.items()}
    for name, used in (use.containers or {}).items():
        variables = pod.driver.get(name)
        asked, ours = (None, False) if variables is None else variables[:2]
        others = variables is None and limit.fence is Fence.LIBRARY and name in limit.parts
        if name in identities and (asked is not None or others):
            part = limit.parts.get(name, limit.limit_bytes)
            place = pod, name, identities[name], card.card
            yield AskedLimit(*place, asked, part, used or 0, card.listed_at, ours)


def found_of(wanted: AskedLimit, leaf: Said, parent: Said = None) -> LimitFound:
    """
    Say what an answer means, None being that the container's cgroup was not found; `parent` is that
    of the cgroup above, None where it was not asked.
    """
    if leaf is None:
        return LimitFound(State.ABSENT, _NO_CGROUP)
    if isinstance(leaf, NvmlFailure) and leaf.code in _FAILURES:
        return LimitFound(State.ABSENT, _FAILURES[Code(leaf.code)], code=leaf.code)
    if not isinstance(leaf, Limited) or isinstance(parent, Trouble):
        return LimitFound(State.UNKNOWN)
    hard, asked = leaf.hard_bytes, wanted.asked_bytes
    if hard >= NO_HARD_LIMIT:
        return LimitFound(State.ABSENT, _NOT_SET, code=Code.NOT_FOUND)
    if asked is not None and hard != asked:
        which = "larger" if hard > asked else "smaller"
        why = f"its cgroup has a {which} one, {limit_mebibytes(hard)}; look for what else sets it"
        return LimitFound(State.ABSENT, why, hard)
    if parent == leaf:
        return LimitFound(State.ABSENT, _OF_PARENT, hard, Code.NOT_FOUND)
    return LimitFound(State.HELD, hard_bytes=hard)


def needs_parent(wanted: AskedLimit, leaf: Said, before: LimitRecord | None) -> bool:
    """Return whether a limit that looks right may be the parent's."""
    known = before is not None and before.found.state is State.HELD
    return not known and found_of(wanted, leaf).state is State.HELD


def recorded(
    before: LimitRecord | None, wanted: AskedLimit, said: tuple[Said, Said], now: float, keep: float
) -> LimitRecord:
    """
    Return what is known after the answers about a cgroup and its parent. Without one, what was held
    counts as held for as long as `keep`; what the driver counts too little of is not held.
    """
    leaf, parent = said
    found = found_of(wanted, leaf, parent)
    held = before is not None and before.found.state is State.HELD
    if before and held and found.state is State.UNKNOWN and now - before.answered <= keep:
        return before._replace(at=now)
    uncounted = 0
    if isinstance(leaf, Limited) and wanted.used_bytes > leaf.used_bytes + CAP_SLACK:
        new_list = before is None or before.listed_at != wanted.listed_at
        uncounted = (before.uncounted if before else 0) + new_list
        if found.state is State.HELD and uncounted >= UNCOUNTED_READS:
            counted, holds = mebibytes(leaf.used_bytes), mebibytes(wanted.used_bytes)
            why = f"the driver counts {counted} of the {holds} that it holds; restart the pod"
            found = LimitFound(State.ABSENT, why, found.hard_bytes)
    since = before.since if before and before.found.state is found.state else now
    return LimitRecord(now, now, found, since, uncounted, wanted.listed_at)


def fence_on(card: Card, use: PodOnCard, records: Records) -> str:
    """Return the strongest that holds a pod to its limit on a card; nothing where none does."""
    pod, limit = use.pod, use.pod.limits.get(card.uuid)
    if card.mig is not None:
        return Fence.MIG
    if limit is None or pod.mode is None:
        return ""
    holders = {process.container for process in use.processes}
    if _is_driven(holders, use, limit, records):
        return Fence.DRIVER
    if limit.fence is not Fence.AGENT:
        return limit.fence
    kept = all(name in pod.caps and pod.caps[name].kept for name in holders)
    return Fence.FRAMEWORK if holders and kept else Fence.AGENT


def _is_driven(holders: set[str], use: PodOnCard, limit: PodLimit, records: Records) -> bool:
    """
    Return whether the driver holds every container that holds memory on a card, each to its part,
    and all of them together within the pod's limit: theirs do not add up to that by themselves.
    """
    identities = {name: identity for identity, name in use.pod.containers.items()}
    total = 0
    for name in holders:
        record = records.get((identities.get(name, ""), use.card.uuid))
        if record is None or record.found.state is not State.HELD:
            return False
        if record.found.hard_bytes > limit.parts.get(name, limit.limit_bytes):
            return False
        total += record.found.hard_bytes
    return bool(holders) and total <= limit.limit_bytes


class NodeTrouble(NamedTuple):
    """
    Why the driver's limits cannot be relied on on this node; `certain` where pods cannot start for
    it, and nothing that a tenant does could look like that.
    """

    why: str = ""
    certain: bool = False


def node_trouble(
    observation: Observation, mine: Sequence[LimitRecord], *, lasting: int, labelled: bool
) -> NodeTrouble:
    """
    Say what is wrong with the node, the worst first; `mine` are the records of containers whose
    limits are ours, so many of which have been absent for long.
    """
    driver = observation.sample.driver
    if labelled and is_too_old(driver):
        return NodeTrouble(f"driver {driver}: {_FAILURES[Code.FUNCTION_NOT_FOUND]}", certain=True)
    refused = [
        NodeTrouble(
            f"container {name} of pod {pod.namespace}/{pod.name} cannot start: {limit.refused}",
            certain="invalid argument" not in limit.refused.lower(),
        )
        for pod in observation.pods.by_uid.values()
        for name, limit in pod.driver.items()
        if limit.ours and limit.refused and not pod.ended
    ]
    if refused:
        return max(refused, key=lambda item: item.certain)
    if any(record.found.code == Code.FUNCTION_NOT_FOUND for record in mine):
        return NodeTrouble(_FAILURES[Code.FUNCTION_NOT_FOUND], certain=True)
    gone = lasting == len(mine) and all(record.found.code in _GONE for record in mine)
    return NodeTrouble(f"of none of its containers: {mine[0].found.why}" if mine and gone else "")
