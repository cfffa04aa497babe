"""Pods, nodes, cards, claims and needs: valid by default; a test says only what it is about."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpufence import names
from gpufence.cards import Card, Instance, NodeCards, write_cards
from gpufence.need import (
    CardNeed,
    Confidence,
    NeedDay,
    NeedKey,
    NeedReasons,
    NeedSummary,
    NodeNeed,
    OwnerNeed,
)
from gpufence.pods import Container, ContainerKind, Pod
from gpufence.quantity import GIB, MIB

T4_BYTES = 15360 * MIB
A100_BYTES = 40960 * MIB
APP = "registry.example/app:1"


def container(name: str = "main", **limits: object) -> dict[str, Any]:
    """Build a container; limits are given as `**{"aliyun.com/gpu-mem": "3"}`."""
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
    driver: str = "570.124.06",
) -> dict[str, Any]:
    """Build a node whose agent recorded these cards; it offers them, or a T4, as gpushare GiB."""
    whole = [item.memory_bytes // GIB for item in cards if item.mig is None]
    units = {names.GPUSHARE_MEMORY: str(sum(whole) or T4_BYTES // GIB)}
    offered: dict[str, object] = {**units} if allocatable is None else dict(allocatable)
    stated = write_cards(node_cards(*cards)._replace(driver=driver))
    said = {names.CARDS: stated} if cards else {}
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
    """List which containers run together, in order, as the documentation of Kubernetes says."""
    sidecars: list[Container] = []
    starts: list[list[Container]] = []
    for item in pod.containers:
        if item.kind is ContainerKind.SIDECAR:
            sidecars.append(item)
        elif item.kind is ContainerKind.INIT:
            starts.append([*sidecars, item])
    return [*starts, [*sidecars, *(item for item in pod.containers if item.regular)]]


class Sold(NamedTuple):
    """A card as a driver shows it, in MiB, and as AWS, Google and feature discovery call it."""

    shown: int
    aws: tuple[str, int]
    google: str
    product: str


CARDS = (
    Sold(15360, ("t4", 16384), "nvidia-tesla-t4", "Tesla-T4"),
    Sold(15079, ("t4", 16384), "nvidia-tesla-t4", "Tesla-T4-SHARED"),
    Sold(11441, ("k80", 12288), "nvidia-tesla-k80", "Tesla-K80"),
    Sold(16160, ("v100", 16384), "nvidia-tesla-v100", "Tesla-V100-SXM2-16GB"),
    Sold(32510, ("v100", 32768), "nvidia-tesla-v100", "Tesla-V100-SXM2-32GB"),
    Sold(23028, ("a10g", 22888), "nvidia-a10g", "NVIDIA-A10G"),
    Sold(23034, ("l4", 22888), "nvidia-l4", "NVIDIA-L4"),
    Sold(2812, ("l4", 2861), "nvidia-strange", "NVIDIA-L4-3Q"),
    Sold(46068, ("l40s", 45776), "nvidia-l40s", "NVIDIA-L40S"),
    Sold(40536, ("a100", 40960), "nvidia-tesla-a100", "A100-SXM4-40GB"),
    Sold(40960, ("a100", 40960), "nvidia-tesla-a100", "NVIDIA-A100-SXM4-40GB"),
    Sold(81920, ("a100", 81920), "nvidia-a100-80gb", "NVIDIA-A100-SXM4-80GB"),
    Sold(81559, ("h100", 81920), "nvidia-h100-mega-80gb", "NVIDIA-H100-80GB-HBM3"),
    Sold(97871, ("gh200", 98304), "nvidia-gh200", "NVIDIA-GH200-480GB"),
    Sold(97887, ("rtx-pro-6000", 98304), "nvidia-rtx-pro-6000", "NVIDIA-RTX-PRO-6000-Blackwell"),
    Sold(143771, ("h200", 144384), "nvidia-h200-141gb", "NVIDIA-H200"),
    Sold(183359, ("b200", 183296), "nvidia-b200", "NVIDIA-B200"),
    Sold(275040, ("b300", 274432), "nvidia-b300", "NVIDIA-B300-SXM6-AC"),
)


def labels_of(kind: str, sold: Sold) -> dict[str, str]:
    name, memory = sold.aws
    return {
        "nothing": {},
        "pool": {names.KARPENTER_POOL: "gpus"},
        "karpenter": {
            names.KARPENTER_POOL: "gpus",
            names.KARPENTER_GPU_MEMORY: str(memory),
            names.KARPENTER_GPU_NAME: name,
            names.KARPENTER_GPU_COUNT: "1",
        },
        "karpenter, memory alone": {names.KARPENTER_GPU_MEMORY: str(memory)},
        "eks": {
            names.EKS_COMPUTE: "auto",
            names.EKS_GPU_MEMORY: str(memory),
            names.EKS_GPU_NAME: name,
            names.EKS_GPU_COUNT: "1",
        },
        "gke": {names.GKE_ACCELERATOR: sold.google, names.GKE_ACCELERATOR_COUNT: "1"},
        "product": {names.GFD_PRODUCT: sold.product},
        "measured": {names.GFD_PRODUCT: sold.product, names.GFD_MEMORY: str(sold.shown)},
    }[kind]


T4 = CardNeed("Tesla T4", 15_360 * MIB, 512 * MIB)
NEED_KEY = NeedKey("vision", "Deployment", "classifier", "server", T4.model)


def need_summary(**changes: Any) -> NeedSummary:
    """Build a need of 4 GiB that can be trusted."""
    return NeedSummary(
        key=NEED_KEY,
        peak_bytes=4 * GIB,
        target_bytes=6 * GIB,
        confidence=Confidence.HIGH,
        days=9,
        pods=4,
        held_seconds=9 * 86_400.0,
        limit_bytes=8 * GIB,
        told_bytes=5 * GIB,
        capped=False,
        out_of_memory=0,
        evictions=0,
        reasons=NeedReasons("it held that", "the peak and 15 %", "9 days, 4 pods"),
    )._replace(**changes)


def need_day(number: int, **changes: Any) -> NeedDay:
    """Build a full day of three pods, one of them new, that held 4 GiB under a limit of 8."""
    return NeedDay(
        day=f"2026-11-{number:02}",
        peak_bytes=4 * GIB,
        pods=3,
        held_seconds=86_400.0,
        told_bytes=5 * GIB,
        limit_bytes=8 * GIB,
        process_bytes=4 * GIB,
        started=1,
    )._replace(**changes)


def node_need(*owners: OwnerNeed, node: str = "gpu-1") -> NodeNeed:
    return NodeNeed(node, owners, (T4,))


def owner_need(days: int = 9, key: NeedKey = NEED_KEY, **changes: Any) -> OwnerNeed:
    """Build as many days of one key."""
    return OwnerNeed(key, tuple(need_day(number, **changes) for number in range(1, days + 1)))


CLASS = names.DRA_CLASSES[0]
Json = dict[str, Any]


def device_class() -> Json:
    """Describe the class of all GPUs of NVIDIA's driver."""
    expression = f"device.driver == '{names.DRA_DRIVER}'"
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "DeviceClass",
        "metadata": {"name": CLASS},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def class_of(name: str, driver: str) -> Json:
    """Describe a class of one's own, of all devices of a driver that call themselves like it."""
    expression = f"device.driver == '{driver}' && device.attributes['{driver}'].?of.orValue('')"
    selector = {"cel": {"expression": f"{expression} == '{name}'"}}
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }


def slice_of(node: str, of: str, driver: str, memory: str = names.DRA_MEMORY) -> Json:
    """Describe a device of such a class in a pool of its own: 40 GiB, shared in steps."""
    policy = {"default": "1Gi", "validRange": {"min": "256Mi", "step": "256Mi"}}
    device = {
        "name": of,
        "allowMultipleAllocations": True,
        "attributes": {"of": {"string": of}, "uuid": {"string": f"GPU-{of}"}},
        "capacity": {memory: {"value": "40Gi", "requestPolicy": policy}},
    }
    pool = {"name": f"{node}-{of}", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{of}"},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": [device]},
    }


def request(memory: str = "", name: str = "gpu", **fields: Any) -> Json:
    """Describe a request for one card, or so much memory of one."""
    capacity = {"capacity": {"requests": {names.DRA_MEMORY: memory}}} if memory else {}
    return {"name": name, "exactly": {"deviceClassName": CLASS, **capacity, **fields}}


def claim(name: str, *requests: Json) -> Json:
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": list(requests)}},
    }


def template(name: str, *requests: Json) -> Json:
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def result(device: str = "gpu-0", memory: str = "", name: str = "gpu", **fields: Any) -> Json:
    """Describe what a request was given."""
    consumed = {"consumedCapacity": {names.DRA_MEMORY: memory}} if memory else {}
    return {
        "request": name,
        "driver": names.DRA_DRIVER,
        "pool": "node-1",
        "device": device,
        **consumed,
        **fields,
    }


def allocated(item: Json, *results: Json, users: tuple[str, ...] = ("uid-1",)) -> Json:
    """Give a claim what its scheduler has chosen, for pods with these UIDs."""
    status = {
        "allocation": {"devices": {"results": list(results)}},
        "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in users],
    }
    return {**item, "metadata": {"uid": f"uid-{item['metadata']['name']}", **item["metadata"]}} | {
        "status": status
    }


def claiming(container: Json, **uses: str) -> Json:
    """Let a container use claims of its pod, all of them or one request: `claiming(c, gpu="")`."""
    used = [{"name": name, **({"request": one} if one else {})} for name, one in uses.items()]
    return {**container, "resources": {**container.get("resources", {}), "claims": used}}


def by_template(name: str, of: str) -> Json:
    return {"name": name, "resourceClaimTemplateName": of}


def by_name(name: str, claim_name: str) -> Json:
    return {"name": name, "resourceClaimName": claim_name}
