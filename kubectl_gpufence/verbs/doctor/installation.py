"""PURE. What the doctor examines, as it is there, hidden or absent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from gpufence.names import MODE
from gpufence.shape import as_object
from kubectl_gpufence.pods import labels_of, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.shape import Object
    from kubectl_gpufence.cluster_view import NodeAgent, SeenNode
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.verbs.doctor.checks_agents import ServedClass, SliceCards
    from kubectl_gpufence.verbs.doctor.checks_scaling import Scaler

T = TypeVar("T")
Validity = tuple[tuple[float, float], ...]

HOOKS: Final = tuple(
    f"{name}.gpufence.io" for name in ("observe.pods", "cap.pods", "evict.pods", "bindings")
)
POLICIES: Final = (
    "gpufence-mode",
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
    """A namespace and the value of its mode label; None where it has none, or is on its way out."""

    name: str
    mode: str | None


@dataclass(frozen=True, slots=True)
class Installation:
    """
    `rights` are questions to the API server, and whether it lets the caller do that. `serving` is
    the time in seconds that each webhook pod's certificate still lasts, `trusted` from when to when
    each hook's CAs are valid, None where they cannot be read.
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


def read_labelled(raw: Object) -> LabelledNamespace:
    ends = "deletionTimestamp" in as_object(raw.get("metadata"), "metadata")
    return LabelledNamespace(name_of(raw), None if ends else labels_of(raw).get(MODE))
