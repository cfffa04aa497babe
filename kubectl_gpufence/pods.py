"""
PURE. What the API server says of a pod: what it declares, what was injected, where it runs; and how
little of that is kept where there are thousands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.candidates import CandidateCard, usable_cards, wanted_resources
from gpufence.capped import read_endings
from gpufence.devices import Reading, with_devices
from gpufence.dialects import CARD_KEYS, SPECS, Undeclared, Units, Unreadable, declares
from gpufence.errors import GpufenceError, UnknownVersionError
from gpufence.fences import Fence
from gpufence.held import UNASKED, held_limits
from gpufence.memory_condition import read_memory_condition
from gpufence.plan import Done, read_plan
from gpufence.pods import ContainerKind, read_pod
from gpufence.shape import Object, as_object, as_text, as_texts, objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpufence.capped import Ending
    from gpufence.memory_condition import MemoryCondition
    from gpufence.nodes import GpuNode
    from gpufence.plan import Plan, Setting
    from gpufence.pods import Pod
    from gpufence.shape import Object


STATUS_PORT: Final = 8080
STATUS: Final = "status"

_NOTHING: Mapping[str, str] = {}
_NO_CLAIMS: Mapping[str, Object | str] = {}
_CARDS: Final = frozenset(CARD_KEYS)
_FENCED_BY_SYSTEM: Final = {
    **{spec.name: Fence.LIBRARY for spec in SPECS if spec.library_caps},
    "mig": Fence.MIG,
}


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """The plan on a pod, or why it cannot be read; `newer` where a newer webhook wrote it."""

    plan: Plan | None = None
    trouble: str = ""
    newer: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """
    What a pod declares, as the agents reckon it, or why it declares nothing. An implied amount is
    not `enforced` unless its namespace asks for that. The request is None where it is the limit.
    """

    limit_bytes: int | None = None
    dialect: str = ""
    basis: str = ""
    why_not: str = ""
    enforced: bool = True
    request_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SeenPod:
    """
    A pod as the API server has it. `injected` is empty where the webhook never saw it, `owner` is
    `ContainerKind/name` of its controller, `quoted` what counts of its namespace's annotations,
    `endings` the last failures of its containers, `memory` its condition `gpufence.io/GPUMemory`.
    """

    uid: str
    namespace: str
    name: str
    node: str
    phase: str
    owner: str
    terminating: bool
    injected: str
    recorded: RecordedPlan
    uses_gpu: bool
    pod: Pod
    on_node: GpuNode | None
    quoted: Mapping[str, str]
    endings: tuple[Ending, ...]
    memory: Object | None = None

    @property
    def said(self) -> MemoryCondition | None:
        """Return what it says of its own use, by its agent."""
        return None if self.memory is None else read_memory_condition([self.memory])

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.pod.annotations

    @property
    def declaration(self) -> Declaration:
        """Work out what it declares; of most pods nobody asks that, since their plans say it."""
        return declaration_of(self.pod, self.on_node, self.quoted)

    @property
    def limit_bytes(self) -> int | None:
        """Return what the webhook reckoned with, else what the pod declares by itself."""
        plan = self.recorded.plan
        if plan is not None and plan.limit_bytes is not None:
            return plan.limit_bytes
        return self.declaration.limit_bytes

    @property
    def told_bytes(self) -> int | None:
        """
        Return what all processes of the pod together were told they may allocate on a card.

        Init containers are gone when the others run, and count only where they are all there is.
        """
        plan = self.recorded.plan
        if plan is None:
            return None
        first = {item.name for item in self.pod.containers if item.kind is ContainerKind.INIT}
        caps = {
            name: item.cap_bytes * item.processes
            for name, item in plan.containers.items()
            if item.cap_bytes is not None
        }
        lasting = [cap for name, cap in caps.items() if name not in first]
        return sum(lasting) if lasting else max(caps.values(), default=None)

    @property
    def planned_fence(self) -> Fence | None:
        """Return what shall hold the pod by its plan, which no agent has looked at."""
        plan = self.recorded.plan
        if plan is None or plan.limit_bytes is None:
            return None
        if plan.dialect in _FENCED_BY_SYSTEM:
            return _FENCED_BY_SYSTEM[plan.dialect]
        settings = [
            (item.env, one.kept and item.allowance_bytes is not None and item.done is not Done.LEFT)
            for one in plan.containers.values()
            for item in one.settings
        ]
        if any(env == names.DRIVER_LIMIT for env, _ in settings):
            return Fence.DRIVER
        return Fence.FRAMEWORK if any(kept for _, kept in settings) else Fence.AGENT

    @property
    def only_planned(self) -> bool:
        """Return whether the plan's figures are those of `observe`: worked out, not carried out."""
        plan = self.recorded.plan
        containers = () if plan is None else plan.containers.values()
        return any(item.done is Done.PLANNED for one in containers for item in one.settings)


def see_pod(
    raw: Object,
    node: GpuNode | None,
    namespace: Mapping[str, str] = _NOTHING,
    claims: Mapping[str, Object | str] = _NO_CLAIMS,
    plans: Callable[[Mapping[str, str]], RecordedPlan] | None = None,
) -> SeenPod:
    """
    Read a pod; `namespace` are its namespace's annotations, which count where no plan quotes them,
    `claims` its resource claims, by its own names, where somebody has read them, and `plans` reads
    plans for whoever has many alike.

    Raises:
        InvalidError: it is no pod at all.
    """
    metadata = as_object(raw.get("metadata"), "metadata")
    status = as_object(raw.get("status"), "status")
    uid = as_text(metadata.get("uid"), "metadata.uid")
    pod = read_pod(raw)
    if claims:
        pod = with_devices(pod, claims, Reading(uid, bound=bool(pod.node_name)))
    recorded = (plans or read_recorded)(pod.annotations)
    said = objects(status.get("conditions"), "status.conditions")
    claiming = bool(pod.claims) and recorded.plan is not None
    quoted = namespace if recorded.plan is None else recorded.plan.namespace
    return SeenPod(
        uid=uid,
        namespace=as_text(metadata.get("namespace"), "metadata.namespace"),
        name=as_text(metadata.get("name"), "metadata.name"),
        node=pod.node_name,
        phase=as_text(status.get("phase"), "status.phase"),
        owner=owner_of(metadata),
        terminating=metadata.get("deletionTimestamp") is not None,
        injected=pod.annotations.get(names.INJECTED, ""),
        recorded=recorded,
        uses_gpu=bool(wanted_resources(pod)) or claiming or _names_gpu(pod.annotations),
        pod=pod,
        on_node=node,
        quoted=quoted,
        endings=tuple(read_endings(status)),
        memory=next((item for item in said if item.get("type") == names.GPU_MEMORY), None),
    )


def read_recorded(
    annotations: Mapping[str, str], alike: dict[object, Setting] | None = None
) -> RecordedPlan:
    """Read the plan that the webhook wrote on a pod."""
    text = annotations.get(names.PLAN)
    if text is None:
        seen = names.INJECTED in annotations
        return RecordedPlan(trouble=f"{names.PLAN} is missing" if seen else "")
    try:
        return RecordedPlan(plan=read_plan(text, alike))
    except UnknownVersionError as error:
        return RecordedPlan(trouble=str(error), newer=True)
    except GpufenceError as error:
        return RecordedPlan(trouble=str(error))


def declaration_of(pod: Pod, node: GpuNode | None, namespace: Mapping[str, str]) -> Declaration:
    """Work out what a pod declares, on the smallest card of its node that it may meet."""
    options = read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))
    cards = () if node is None else usable_cards(pod, node)
    card = CandidateCard(
        units=Units() if node is None else node.units,
        memory_bytes=min((card.memory_bytes for card in cards), default=None),
    )
    limits = held_limits(pod, options, read_namespace_options(namespace), card)
    match limits:
        case Undeclared():
            return Declaration(why_not=limits.reason)
        case Unreadable():
            return Declaration(why_not=limits.problem.sentence)
    if limits.dialect == UNASKED:
        most = namespace.get(names.MAX_MEMORY, "nothing")
        return Declaration(dialect=UNASKED, why_not=f"{limits.basis}; of a card it may hold {most}")
    amount = limits.limit_bytes
    why_not = "" if amount is not None else "the size of its card is not known"
    said = (str(limits.dialect), limits.basis, why_not, limits.enforced, limits.promised_bytes)
    return Declaration(amount, *said)


def owner_of(metadata: Object) -> str:
    """Name the controller of an object as `ContainerKind/name`."""
    field = "metadata.ownerReferences"
    for item in objects(metadata.get("ownerReferences"), field):
        if item.get("controller") is True:
            kind = as_text(item.get("kind"), f"{field}.kind")
            return f"{kind}/{as_text(item.get('name'), f'{field}.name')}"
    return ""


def name_of(raw: Object) -> str:
    return as_text(as_object(raw.get("metadata"), "metadata").get("name"), "metadata.name")


def node_of(raw: Object) -> str:
    return as_text(as_object(raw.get("spec"), "spec").get("nodeName"), "spec.nodeName")


def labels_of(raw: Object) -> Mapping[str, str]:
    metadata = as_object(raw.get("metadata"), "metadata")
    return as_texts(metadata.get("labels"), "metadata.labels")


def annotations_of(raw: Object) -> Mapping[str, str]:
    metadata = as_object(raw.get("metadata"), "metadata")
    return as_texts(metadata.get("annotations"), "metadata.annotations")


class StatusPod(NamedTuple):
    """
    A pod of ours that can be asked. One that is asked at an address of its own is called as that.
    `created` is when it was made, as its object says; `namespace` is where gpufence is.
    """

    name: str
    node: str
    ready: bool = True
    port: int = STATUS_PORT
    created: str = ""
    namespace: str = names.SYSTEM_NAMESPACE


def read_status_pod(raw: Object) -> StatusPod:
    """Read what is needed to ask a pod of ours; its container calls the port `status`."""
    spec, status = as_object(raw.get("spec"), "spec"), as_object(raw.get("status"), "status")
    numbers = [
        number
        for container in objects(spec.get("containers"), "spec.containers")
        for port in objects(container.get("ports"), "spec.containers[].ports")
        if port.get("name") == STATUS and isinstance(number := port.get("containerPort"), int)
    ]
    ready = any(
        item.get("type") == "Ready" and item.get("status") == "True"
        for item in objects(status.get("conditions"), "status.conditions")
    )
    metadata = as_object(raw.get("metadata"), "metadata")
    created = as_text(metadata.get("creationTimestamp"), "metadata.creationTimestamp")
    port = next(iter(numbers), STATUS_PORT)
    namespace = as_text(metadata.get("namespace"), "metadata.namespace")
    where = namespace or names.SYSTEM_NAMESPACE
    return StatusPod(name_of(raw), node_of(raw), ready, port, created, where)


def _names_gpu(annotations: Mapping[str, str]) -> bool:
    """Return whether annotations alone make it a pod of ours."""
    return any(key == names.INJECTED or declares(key) for key in annotations) or any(
        key == names.MEMORY or key.startswith(names.MEMORY_OF_CONTAINER) for key in annotations
    )


class AlikePlans:
    """
    Reads plans, equal ones that come soon after each other once: pods of one owner stand together
    in a list, and their plans are equal on nodes of one kind. What plans say of settings is read
    once for all that are alike.
    """

    MOST: Final = 64
    MOST_SETTINGS: Final = 4096

    def __init__(self) -> None:
        self._known: dict[str, RecordedPlan] = {}
        self._settings: dict[object, Setting] = {}

    def __call__(self, annotations: Mapping[str, str]) -> RecordedPlan:
        text = annotations.get(names.PLAN)
        if text is None:
            return read_recorded(annotations)
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= self.MOST:
                self._known.clear()
            if len(self._settings) >= self.MOST_SETTINGS:
                self._settings.clear()
            found = self._known[text] = read_recorded(annotations, self._settings)
        return found


def slim(pod: SeenPod) -> SeenPod:
    """
    Return a pod without the annotations that declare nothing, for whoever holds thousands: most of
    what a pod says is what the webhook wrote, and that has been read.
    """
    declaring = {
        key: text
        for key, text in pod.pod.annotations.items()
        if key in _CARDS
        or declares(key)
        or (key.startswith(names.PREFIX) and key not in names.WRITTEN_KEYS)
    }
    return replace(pod, pod=pod.pod._replace(annotations=declaring))


class SeenEvent(NamedTuple):
    """Something that an agent or the controller has said."""

    at: str
    reason: str
    times: int
    message: str
    about: str = ""
    warning: bool = False
    since: str = ""

    @property
    def sentence(self) -> str:
        times = f" ({self.times} times)" if self.times > 1 else ""
        return f"{self.at or 'at some time'} {self.reason}{times}: {self.message}"


def read_event(item: Object) -> SeenEvent:
    """
    Read an Event.

    Raises:
        InvalidError: it is none.
    """
    metadata = as_object(item.get("metadata"), "metadata")
    about = as_object(item.get("involvedObject"), "involvedObject")
    last = item.get("lastTimestamp") or item.get("eventTime") or metadata.get("creationTimestamp")
    parts = (about.get(key) for key in ("namespace", "kind", "name"))
    count = item.get("count")
    return SeenEvent(
        at=as_text(last, "lastTimestamp"),
        reason=as_text(item.get("reason"), "reason"),
        times=count if isinstance(count, int) else 1,
        message=as_text(item.get("message"), "message"),
        about="/".join(as_text(part, "involvedObject") for part in parts if part),
        warning=item.get("type") == "Warning",
        since=as_text(item.get("firstTimestamp"), "firstTimestamp"),
    )
