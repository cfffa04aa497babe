"""
PURE. A pod as a node sees it: read once from the API's JSON, typed from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gpufence.names import MIRROR
from gpufence.shape import Object, as_list, as_object, as_text, as_texts, objects

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_GRACE_SECONDS = 30
BEST_EFFORT = "BestEffort"


class Kind(StrEnum):
    """
    The part a container plays in its pod's life.
    """

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class Restart(StrEnum):
    """
    After which endings a container is started again.
    """

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class Mount:
    """
    Where a container sees a volume, or with `sub_path` one file or folder of it.
    """

    volume: str
    path: str
    sub_path: str


@dataclass(frozen=True, slots=True)
class Container:
    """
    One container's wishes. `env` and `env_from` stay as they came: `environment` reads them.
    """

    name: str
    image: str
    kind: Kind
    restart: Restart
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[Object, ...]
    env_from: tuple[Object, ...]
    limits: Mapping[str, str]
    requests: Mapping[str, str]
    mounts: tuple[Mount, ...]


@dataclass(frozen=True, slots=True)
class Pod:
    """
    One pod; `containers` has the init containers first, in their order.

    `deletion_grace` is None until somebody deletes the pod.
    """

    uid: str
    name: str
    namespace: str
    node: str
    service_account: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    containers: tuple[Container, ...]
    volumes: tuple[Object, ...]
    restart: Restart
    grace: int
    deletion_grace: int | None
    quality: str
    phase: str
    conditions: tuple[Object, ...]

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def inits(self) -> tuple[Container, ...]:
        return tuple(one for one in self.containers if one.kind is not Kind.MAIN)

    @property
    def mains(self) -> tuple[Container, ...]:
        return tuple(one for one in self.containers if one.kind is Kind.MAIN)

    @property
    def is_mirror(self) -> bool:
        """
        Tell whether this only shows a static pod, which no node starts because of what it shows.
        """
        return MIRROR in self.annotations


def read_pod(pod: Object) -> Pod:
    """
    Read a pod of the API; raises InvalidError for what no API server would have stored.
    """
    metadata = as_object(pod.get("metadata"), "metadata")
    spec = as_object(pod.get("spec"), "spec")
    status = as_object(pod.get("status"), "status")
    restart = Restart(as_text(spec.get("restartPolicy"), "spec.restartPolicy") or Restart.ALWAYS)
    deletion = metadata.get("deletionGracePeriodSeconds")
    deleted = metadata.get("deletionTimestamp") is not None
    return Pod(
        uid=as_text(metadata.get("uid"), "metadata.uid"),
        name=as_text(metadata.get("name"), "metadata.name"),
        namespace=as_text(metadata.get("namespace"), "metadata.namespace"),
        node=as_text(spec.get("nodeName"), "spec.nodeName"),
        service_account=as_text(spec.get("serviceAccountName"), "spec.serviceAccountName"),
        labels=as_texts(metadata.get("labels"), "metadata.labels"),
        annotations=as_texts(metadata.get("annotations"), "metadata.annotations"),
        containers=(
            *(_container(one, restart, init=True) for one in _listed(spec, "initContainers")),
            *(_container(one, restart, init=False) for one in _listed(spec, "containers")),
        ),
        volumes=tuple(_listed(spec, "volumes")),
        restart=restart,
        grace=_seconds(spec.get("terminationGracePeriodSeconds"), DEFAULT_GRACE_SECONDS),
        deletion_grace=_seconds(deletion, DEFAULT_GRACE_SECONDS) if deleted else None,
        quality=as_text(status.get("qosClass"), "status.qosClass") or BEST_EFFORT,
        phase=as_text(status.get("phase"), "status.phase"),
        conditions=tuple(_listed(status, "conditions")),
    )


def _container(container: Object, of_pod: Restart, *, init: bool) -> Container:
    own = as_text(container.get("restartPolicy"), "restartPolicy")
    restart = Restart(own) if own else of_pod
    kind = Kind.MAIN
    if init:
        kind = Kind.SIDECAR if own == Restart.ALWAYS else Kind.INIT
        if restart is Restart.ALWAYS and kind is Kind.INIT:
            restart = Restart.ON_FAILURE
    resources = as_object(container.get("resources"), "resources")
    return Container(
        name=as_text(container.get("name"), "name"),
        image=as_text(container.get("image"), "image"),
        kind=kind,
        restart=restart,
        command=_texts(container, "command"),
        args=_texts(container, "args"),
        env=tuple(_listed(container, "env")),
        env_from=tuple(_listed(container, "envFrom")),
        limits=as_texts(resources.get("limits"), "limits"),
        requests=as_texts(resources.get("requests"), "requests"),
        mounts=tuple(_mount(one) for one in _listed(container, "volumeMounts")),
    )


def _mount(mount: Object) -> Mount:
    return Mount(
        as_text(mount.get("name"), "name"),
        as_text(mount.get("mountPath"), "mountPath"),
        as_text(mount.get("subPath"), "subPath"),
    )


def _listed(parent: Object, field: str) -> list[Object]:
    return objects(parent.get(field), field)


def _texts(container: Object, field: str) -> tuple[str, ...]:
    return tuple(as_text(item, field) for item in as_list(container.get(field), field))


def _seconds(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and value >= 0 else otherwise
