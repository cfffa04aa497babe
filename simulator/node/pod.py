"""PURE. A pod as a node sees it: read once from the API's JSON, typed from then on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gpufence.pods import read_claims
from gpufence.shape import Object, as_list, as_object, as_text, as_texts, objects

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_GRACE_SECONDS = 30
BEST_EFFORT = "BestEffort"
GUARANTEED = "Guaranteed"


class RestartPolicy(StrEnum):
    """After which endings a container is started again."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"

    def applies(self, exit_code: int) -> bool:
        return self is RestartPolicy.ALWAYS or (self is RestartPolicy.ON_FAILURE and exit_code != 0)


@dataclass(frozen=True, slots=True)
class VolumeMount:
    """Where a container sees a volume, or with `sub_path` one file or folder of it."""

    volume: str
    path: str
    sub_path: str


@dataclass(frozen=True, slots=True)
class NodeContainer:
    """One container. `env` stays as it came: `environment` reads it."""

    name: str
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[Object, ...]
    limits: Mapping[str, str]
    mounts: tuple[VolumeMount, ...]


@dataclass(frozen=True, slots=True)
class NodePod:
    """
    One pod. `deletion_grace` is None until somebody deletes it; `unsupported` names what of it is
    not simulated. `claims` are the ResourceClaims made for it.
    """

    uid: str
    name: str
    namespace: str
    node: str
    service_account: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    containers: tuple[NodeContainer, ...]
    volumes: tuple[Object, ...]
    restart: RestartPolicy
    grace: int
    deletion_grace: int | None
    quality: str
    phase: str
    conditions: tuple[Object, ...]
    unsupported: tuple[str, ...]
    claims: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


def read_pod(pod: Object) -> NodePod:
    """Read a pod of the API; raises InvalidError for what no API server would have stored."""
    metadata = as_object(pod.get("metadata"), "metadata")
    spec = as_object(pod.get("spec"), "spec")
    status = as_object(pod.get("status"), "status")
    containers = objects(spec.get("containers"), "containers")
    policy = as_text(spec.get("restartPolicy"), "spec.restartPolicy") or RestartPolicy.ALWAYS
    deletion = metadata.get("deletionGracePeriodSeconds")
    deleted = metadata.get("deletionTimestamp") is not None
    return NodePod(
        uid=as_text(metadata.get("uid"), "metadata.uid"),
        name=as_text(metadata.get("name"), "metadata.name"),
        namespace=as_text(metadata.get("namespace"), "metadata.namespace"),
        node=as_text(spec.get("nodeName"), "spec.nodeName"),
        service_account=as_text(spec.get("serviceAccountName"), "spec.serviceAccountName"),
        labels=as_texts(metadata.get("labels"), "metadata.labels"),
        annotations=as_texts(metadata.get("annotations"), "metadata.annotations"),
        containers=tuple(map(_container, containers)),
        volumes=tuple(objects(spec.get("volumes"), "volumes")),
        restart=RestartPolicy(policy),
        grace=_seconds(spec.get("terminationGracePeriodSeconds")),
        deletion_grace=_seconds(deletion) if deleted else None,
        quality=as_text(status.get("qosClass"), "status.qosClass") or BEST_EFFORT,
        phase=as_text(status.get("phase"), "status.phase"),
        conditions=tuple(objects(status.get("conditions"), "conditions")),
        unsupported=(
            *(("init containers",) if spec.get("initContainers") else ()),
            *(("envFrom",) if any(item.get("envFrom") for item in containers) else ()),
        ),
        claims=tuple(ref.claim for ref in read_claims(pod)[0] if ref.claim),
    )


def cgroup_path(pod: NodePod, container_id: str) -> str:
    """
    Return where a container's control group is, as kubelet, systemd and containerd name it. A
    Guaranteed pod has no level for its class.
    """
    uid, top, quality = pod.uid.replace("-", "_"), "kubepods", pod.quality.lower()
    scope = f"cri-containerd-{container_id}.scope"
    if pod.quality == GUARANTEED:
        return f"/{top}.slice/{top}-pod{uid}.slice/{scope}"
    return f"/{top}.slice/{top}-{quality}.slice/{top}-{quality}-pod{uid}.slice/{scope}"


def cgroup_lines(path: str, *, v2: bool = True) -> str:
    """Return /proc/PID/cgroup of a process in this group: of version 1 with two of many lines."""
    return f"0::{path}\n" if v2 else f"5:memory:{path}\n1:name=systemd:{path}\n"


def _container(container: Object) -> NodeContainer:
    resources = as_object(container.get("resources"), "resources")
    return NodeContainer(
        name=as_text(container.get("name"), "name"),
        image=as_text(container.get("image"), "image"),
        command=_texts(container, "command"),
        args=_texts(container, "args"),
        env=tuple(objects(container.get("env"), "env")),
        limits=as_texts(resources.get("limits"), "limits"),
        mounts=tuple(map(_mount, objects(container.get("volumeMounts"), "volumeMounts"))),
    )


def _mount(mount: Object) -> VolumeMount:
    return VolumeMount(
        as_text(mount.get("name"), "name"),
        as_text(mount.get("mountPath"), "mountPath"),
        as_text(mount.get("subPath"), "subPath"),
    )


def _texts(container: Object, field: str) -> tuple[str, ...]:
    return tuple(as_text(item, field) for item in as_list(container.get(field), field))


def _seconds(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else DEFAULT_GRACE_SECONDS
