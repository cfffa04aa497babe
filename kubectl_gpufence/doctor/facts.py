"""
PURE. What the checks look at, as it was found, hidden or absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from gpufence.names import MODE
from gpufence.shape import Object, as_object, as_text
from kubectl_gpufence.pods import labels_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.scene import Agent, SeenNode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """
    An answer: the value, None for what is not there, or `hidden`: why it may not be seen.
    """

    value: T | None = None
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class Namespace:
    """
    A namespace and the value of its mode label; None where it has none.
    """

    name: str
    mode: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """
    `rights` are questions to the API server, and whether it lets the caller do that. `serving` is
    the time in seconds that each webhook pod's certificate still lasts, `trusted` the validity of
    each hook's CAs.
    """

    now: float
    version: Asked[Object] = field(default_factory=Asked)
    rights: Mapping[str, bool] = field(default_factory=dict)
    system: Asked[Object] = field(default_factory=Asked)
    deployment: Asked[Object] = field(default_factory=Asked)
    slices: Asked[list[Object]] = field(default_factory=Asked)
    configuration: Asked[Object] = field(default_factory=Asked)
    trusted: Mapping[str, tuple[tuple[float, float], ...] | None] = field(default_factory=dict)
    serving: Mapping[str, float | None] = field(default_factory=dict)
    policies: Mapping[str, Asked[Object]] = field(default_factory=dict)
    bindings: Mapping[str, Asked[Object]] = field(default_factory=dict)
    switch: Asked[Object] = field(default_factory=Asked)
    nodes: Asked[dict[str, SeenNode]] = field(default_factory=Asked)
    agents: Asked[tuple[Agent, ...]] = field(default_factory=Asked)
    namespaces: Asked[list[Namespace]] = field(default_factory=Asked)
    pods: Asked[list[SeenPod]] = field(default_factory=Asked)


def read_namespace(raw: Object) -> Namespace:
    metadata = as_object(raw.get("metadata"), "metadata")
    return Namespace(as_text(metadata.get("name"), "metadata.name"), labels_of(raw).get(MODE))
