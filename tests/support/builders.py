"""
Builders of pods, nodes and cards: valid by default, so that a test says only what it is about.

Pods and nodes are plain JSON, as the API server sends them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gpufence import names
from gpufence.cards import Card, Instance, NodeCards, write_cards
from gpufence.pods import Container, ContainerKind, Pod
from gpufence.quantity import GIB, MIB

T4_BYTES = 15360 * MIB
A100_BYTES = 40960 * MIB
APP = "registry.example/app:1"


def container(name: str = "main", **limits: object) -> dict[str, Any]:
    """
    Build a container; limits that are no Python names go in as `**{"aliyun.com/gpu-mem": "3"}`.
    """
    return {"name": name, "image": APP, "resources": {"limits": limits}}


def gpushare(name: str = "main", units: object = "3") -> dict[str, Any]:
    """Build a container that asks for gpushare memory, the most common declaration."""
    return container(name, **{names.GPUSHARE_MEMORY: units})


def sidecar(name: str, **limits: object) -> dict[str, Any]:
    """Build an init container that stays."""
    return container(name, **limits) | {"restartPolicy": "Always"}


def pod(
    *containers: dict[str, Any],
    init: Sequence[dict[str, Any]] = (),
    annotations: Mapping[str, str] | None = None,
    **spec: object,
) -> dict[str, Any]:
    """Build a pod of these containers, one without any GPU if none is given."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-1",
            "namespace": "team-a",
            "uid": "11111111-2222-3333-4444-555555555555",
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "containers": list(containers) or [container()],
            "initContainers": list(init),
            **spec,
        },
    }


def card(
    index: int = 0,
    *,
    memory_bytes: int = T4_BYTES,
    uuid: str = "",
    model: str = "Tesla T4",
    compute_capability: tuple[int, int] | None = (7, 5),
    parent: str = "",
    profile: str = "",
) -> Card:
    """Build a T4, or a MIG instance where a profile is given."""
    return Card(
        uuid=uuid or f"{'MIG' if profile else 'GPU'}-{index}",
        index=index,
        model=model,
        memory_bytes=memory_bytes,
        compute_capability=compute_capability,
        mig=Instance(parent, profile) if profile else None,
    )


def node(
    *cards: Card,
    name: str = "node-1",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    allocatable: Mapping[str, object] | None = None,
    capacity: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """
    Build a node whose agent has written down these cards; it offers them, or one T4, as gpushare
    GiB.
    """
    whole = [item.memory_bytes // GIB for item in cards if item.mig is None]
    units = {names.GPUSHARE_MEMORY: str(sum(whole) or T4_BYTES // GIB)}
    offered: dict[str, object] = {**units} if allocatable is None else dict(allocatable)
    said = {names.CARDS: write_cards(node_cards(*cards))} if cards else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-of-{name}",
            "labels": dict(labels or {}),
            "annotations": said | dict(annotations or {}),
        },
        "status": {
            "allocatable": offered,
            "capacity": offered if capacity is None else dict(capacity),
        },
    }


def node_cards(
    *cards: Card, units: Mapping[str, str] | None = None, factor: int | None = None
) -> NodeCards:
    """Build what an agent says about its node."""
    return NodeCards(
        driver="570.124.06",
        observed="2026-01-02T03:04:05Z",
        cards=cards,
        units=tuple(sorted((units or {}).items())),
        factor=factor,
    )


def phases(pod: Pod) -> list[list[Container]]:
    """
    List who runs together, in the order in which they run, as the documentation of Kubernetes says
    it: what the product only sums up.
    """
    sidecars: list[Container] = []
    starts: list[list[Container]] = []
    for item in pod.containers:
        if item.kind is ContainerKind.SIDECAR:
            sidecars.append(item)
        elif item.kind is ContainerKind.INIT:
            starts.append([*sidecars, item])
    return [*starts, [*sidecars, *(item for item in pod.containers if item.regular)]]
