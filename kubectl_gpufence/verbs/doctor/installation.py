"""PURE. What the doctor examines, as it is there, hidden or absent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.claim_requests import names_driver
from gpufence.dialects import GPU_RESOURCES
from gpufence.names import DRA_CLASSES, DRA_DRIVER, IDLE, MODE, SYSTEM_NAMESPACE
from gpufence.shape import Object, as_object, as_text, objects
from gpufence.slices import read_slice
from kubectl_gpufence.pods import annotations_of, labels_of, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.errors import Problem
    from kubectl_gpufence.cluster_view import NodeAgent, SeenNode
    from kubectl_gpufence.pods import SeenEvent, SeenPod

T = TypeVar("T")
Validity = tuple[tuple[float, float], ...]

_ACTIVITY: Final = "/v1/activity/"
_BY_CLASS: Final = "deviceclass.resource."  # of a quota on devices of a class
HOOKS: Final = tuple(
    f"{name}.gpufence.io" for name in ("observe.pods", "cap.pods", "evict.pods", "bindings")
)
IDLE_WORDS: Final = ("report", "warn", "release")
POLICIES: Final = (
    "gpufence-mode",
    "gpufence-idle",
    "gpufence-undeclared",
    "gpufence-frozen-annotations",
    "gpufence-bindings",
    "gpufence-pod-growth",
    "gpufence-agent-need",
    "gpufence-agent-cards",
)


@dataclass(frozen=True, slots=True)
class MaybeHidden(Generic[T]):
    """An answer: the value, None for what is not there, or `hidden`: why it may not be seen."""

    value: T | None = None
    hidden: str = ""


class LabelledNamespace(NamedTuple):
    """
    A namespace and the values of its labels for mode and idle GPUs; None where it has none, or is
    on its way out. `problems` are annotations that nobody can read, `quota_bytes` what its pods may
    ask for by annotations together.
    """

    name: str
    mode: str | None
    idle: str | None = None
    problems: tuple[Problem, ...] = ()
    quota_bytes: int | None = None


class SliceCards(NamedTuple):
    """
    A node, and how many of its cards claims may have; `shared` of them count their memory, and give
    a claim that asks for none at least so much.
    """

    node: str
    cards: int
    shared: int
    least_bytes: int | None = None


class ServedClass(NamedTuple):
    """
    A DeviceClass, and the extended resource by which pods may ask for its devices, if any; `gpus`:
    these are NVIDIA's.
    """

    name: str
    resource: str
    gpus: bool = False


def read_published(raw: Object) -> SliceCards:
    """Read one ResourceSlice; one of another driver has no cards."""
    spec = as_object(raw.get("spec"), "spec")
    node = as_text(spec.get("nodeName"), "spec.nodeName")
    if spec.get("driver") != DRA_DRIVER:
        return SliceCards(node, 0, 0)
    read = read_slice(raw)
    devices = objects(spec.get("devices"), "spec.devices")
    shared = [item for item in devices if item.get("allowMultipleAllocations") is True]
    least = None if read is None else read.least_bytes
    return SliceCards(node, len(devices), len(shared), least)


def read_class(raw: Object) -> ServedClass:
    name = as_text(as_object(raw.get("metadata"), "metadata").get("name"), "metadata.name")
    spec = as_object(raw.get("spec"), "spec")
    resource = as_text(spec.get("extendedResourceName"), "extendedResourceName")
    return ServedClass(name, resource, gpus=name in DRA_CLASSES or names_driver(spec))


class Scaler(NamedTuple):
    """A ScaledObject and what it scales; `counts_work`: a trigger of it asks the controller."""

    namespace: str
    name: str
    version: str
    kind: str
    target: str
    counts_work: bool


def read_scaler(raw: Object) -> Scaler:
    """Read one ScaledObject."""
    metadata = as_object(raw.get("metadata"), "metadata")
    spec = as_object(raw.get("spec"), "spec")
    target = as_object(spec.get("scaleTargetRef"), "spec.scaleTargetRef")
    triggers = objects(spec.get("triggers"), "spec.triggers")
    asked = [as_object(trigger.get("metadata"), "metadata") for trigger in triggers]
    return Scaler(
        namespace=as_text(metadata.get("namespace"), "metadata.namespace"),
        name=as_text(metadata.get("name"), "metadata.name"),
        version=as_text(target.get("apiVersion"), "apiVersion") or "apps/v1",
        kind=as_text(target.get("kind"), "kind") or "Deployment",
        target=as_text(target.get("name"), "name"),
        counts_work=any(_ACTIVITY in as_text(item.get("url"), "url") for item in asked),
    )


def asks_gpu(owner: Object) -> bool:
    """Return whether the pods of an owner ask for GPUs by resources."""
    spec = as_object(owner.get("spec"), "spec")
    template = as_object(spec.get("template"), "spec.template")
    pod = as_object(template.get("spec"), "spec.template.spec")
    resources = (
        as_object(container.get("resources"), "resources")
        for container in objects(pod.get("containers"), "spec.containers")
    )
    return any(GPU_RESOURCES & as_object(each.get("limits"), "limits").keys() for each in resources)


@dataclass(frozen=True, slots=True)
class Installation:
    """
    `quotas` are the namespaces that have one on GPUs; `tried` is whether the webhook saw a pod.
    `rights` are questions to the API server, and whether it lets the caller do that. `serving` is
    the time in seconds that each webhook pod's certificate still lasts, `trusted` from when to when
    each hook's CAs are valid, None where they cannot be read. It is `young` if it was installed or
    rolled out a moment ago; the agents of `young_nodes` were. `home` is the namespace it is in.
    """

    now: float
    version: MaybeHidden[Object] = field(default_factory=MaybeHidden)
    rights: Mapping[str, bool] = field(default_factory=dict)
    system: MaybeHidden[Object] = field(default_factory=MaybeHidden)
    deployment: MaybeHidden[Object] = field(default_factory=MaybeHidden)
    slices: MaybeHidden[list[Object]] = field(default_factory=MaybeHidden)
    configuration: MaybeHidden[Object] = field(default_factory=MaybeHidden)
    trusted: Mapping[str, Validity | None] = field(default_factory=dict)
    serving: Mapping[str, float | None] = field(default_factory=dict)
    policies: Mapping[str, MaybeHidden[Object]] = field(default_factory=dict)
    bindings: Mapping[str, MaybeHidden[Object]] = field(default_factory=dict)
    switch: MaybeHidden[Object] = field(default_factory=MaybeHidden)
    nodes: MaybeHidden[dict[str, SeenNode]] = field(default_factory=MaybeHidden)
    agents: MaybeHidden[dict[str, NodeAgent]] = field(default_factory=MaybeHidden)
    namespaces: MaybeHidden[list[LabelledNamespace]] = field(default_factory=MaybeHidden)
    pods: MaybeHidden[list[SeenPod]] = field(default_factory=MaybeHidden)
    scalers: MaybeHidden[list[Scaler]] = field(default_factory=MaybeHidden)
    published: MaybeHidden[list[SliceCards]] = field(default_factory=MaybeHidden)
    classes: MaybeHidden[list[ServedClass]] = field(default_factory=MaybeHidden)
    events: MaybeHidden[list[SeenEvent]] = field(default_factory=MaybeHidden)
    quotas: MaybeHidden[list[str]] = field(default_factory=MaybeHidden)
    tried: MaybeHidden[bool] = field(default_factory=MaybeHidden)
    young: bool = False
    young_nodes: frozenset[str] = frozenset()
    home: str = SYSTEM_NAMESPACE

    @property
    def kubectl(self) -> str:
        """Return how a remedy begins that is about what is installed."""
        return f"kubectl -n {self.home}"

    @property
    def elsewhere(self) -> str:
        """
        Return where the API server calls a webhook that is no Deployment here; empty where it is
        one, or where a hook names no address.
        """
        configuration = self.configuration.value
        if configuration is None or self.deployment.value is not None:
            return ""
        clients = [
            as_object(hook.get("clientConfig"), "clientConfig")
            for hook in objects(configuration.get("webhooks"), "webhooks")
        ]
        urls = [as_text(client.get("url"), "clientConfig.url") for client in clients]
        hosts = {"/".join(url.split("/", 3)[:3]) for url in urls}
        return ", ".join(sorted(hosts)) if urls and all(urls) else ""

    @property
    def away(self) -> str:
        """Return why no webhook can answer, which is the cause of much else; empty if one can."""
        if self.deployment.hidden or self.elsewhere:
            return ""
        if self.deployment.value is None:
            return "there is no webhook"
        return "" if replicas(self.deployment.value)[0] else "no replica of the webhook is ready"


def replicas(deployment: Object) -> tuple[int, int]:
    """Return how many replicas are ready, and how many are wanted."""
    ready = as_object(deployment.get("status"), "status").get("readyReplicas")
    wanted = as_object(deployment.get("spec"), "spec").get("replicas")
    return _number(ready, 0), _number(wanted, 1)


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def read_quota(raw: Object) -> str:
    """Return the namespace of a quota that counts GPUs or their memory, else nothing."""
    hard = as_object(as_object(raw.get("spec"), "spec").get("hard"), "spec.hard")
    counted = {key.removeprefix("requests.") for key in hard}
    gpus = counted & GPU_RESOURCES.keys() or any(_BY_CLASS in key for key in counted)
    metadata = as_object(raw.get("metadata"), "metadata")
    return as_text(metadata.get("namespace"), "metadata.namespace") if gpus else ""


def read_labelled(raw: Object) -> LabelledNamespace:
    if "deletionTimestamp" in as_object(raw.get("metadata"), "metadata"):
        return LabelledNamespace(name_of(raw), None)
    labels, words = labels_of(raw), annotations_of(raw)
    options = read_namespace_options(words)
    problems, mode = options.unreadable, labels.get(MODE)
    if MODE in labels:  # whose pods take the rest of its words over
        problems += read_pod_options(words, frozenset()).unreadable
    return LabelledNamespace(name_of(raw), mode, labels.get(IDLE), problems, options.quota_bytes)
