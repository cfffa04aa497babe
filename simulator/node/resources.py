"""
PURE. The Node object of a machine with these cards, as its dialect's device plugin would leave it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.cards import NodeCards, write_cards
from gpufence.quantity import MIB
from simulator.node.sharing import Dialect, Sharing, profiles, whole_cards

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.cards import Card

HOSTNAME = "kubernetes.io/hostname"
GPUSHARE_LABEL = "gpushare"
GPU_PRESENT = "nvidia.com/gpu.present"
GKE_ACCELERATOR = "cloud.google.com/gke-accelerator"
HAMI_LABEL = "gpu"


@dataclass(frozen=True, slots=True)
class Taint:
    """
    What keeps pods without a toleration away.
    """

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Machine:
    """
    What a node is made of; `kubelet` is the version it reports.
    """

    name: str
    address: str
    cards: tuple[Card, ...]
    sharing: Sharing
    driver: str = ""
    gfd: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cpu: str = "64"
    memory: str = "256Gi"
    pods: int = 250
    kubelet: str = ""


def node_object(machine: Machine, *, cards_seen: str | None, now: str) -> dict[str, object]:
    """
    Build the whole Node; with `cards_seen`, a time, it carries what our agent would write.
    """
    annotations = {}
    if cards_seen is not None:
        annotations[names.CARDS] = write_cards(said_cards(machine, cards_seen))
    taints = [
        {"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in machine.taints
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "labels": labels(machine),
            "annotations": annotations,
        },
        "spec": {"taints": taints} if taints else {},
        "status": node_status(machine, now, now),
    }


def node_status(machine: Machine, now: str, since: str, *, ready: bool = True) -> dict[str, object]:
    """
    Build the status, which is also what a heartbeat repeats.
    """
    offered = capacity(machine)
    return {
        "capacity": offered,
        "allocatable": offered,
        "conditions": conditions(now, since, ready=ready),
        "addresses": [
            {"type": "InternalIP", "address": machine.address},
            {"type": "Hostname", "address": machine.name},
        ],
        "nodeInfo": {
            **dict.fromkeys(("machineID", "systemUUID", "bootID"), machine.name),
            "kernelVersion": "simulated",
            "osImage": "gpufence simulator",
            "containerRuntimeVersion": "containerd://simulated",
            "kubeletVersion": machine.kubelet,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }


def conditions(now: str, since: str, *, ready: bool) -> list[dict[str, object]]:
    """
    Build the node's conditions as of now; none of them has changed since it began.
    """
    good = ("KubeletReady", "simulated node is ready")
    gone = ("SimulatorStopped", "the simulator of this node was stopped")
    said = {
        "Ready": (ready, *(good if ready else gone)),
        "MemoryPressure": (False, "KubeletHasSufficientMemory", "simulated"),
        "DiskPressure": (False, "KubeletHasNoDiskPressure", "simulated"),
        "PIDPressure": (False, "KubeletHasSufficientPID", "simulated"),
    }
    return [
        {
            "type": kind,
            "status": str(status),
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": since,
        }
        for kind, (status, reason, message) in said.items()
    ]


def capacity(machine: Machine) -> dict[str, str]:
    """
    Return everything the scheduler may count on.
    """
    figures = {resource: str(count) for resource, count in gpu_capacity(machine).items()}
    return {
        "cpu": machine.cpu,
        "memory": machine.memory,
        "ephemeral-storage": "100Gi",
        "pods": str(machine.pods),
        **figures,
    }


def gpu_capacity(machine: Machine) -> dict[str, int]:
    """
    Return the extended resources of the dialect.

    Device plugins that count memory give every card the size of the first. HAMi leaves counting
    `gpumem` to its own scheduler; here the node offers it, so that any scheduler can.
    """
    sharing, whole = machine.sharing, whole_cards(machine.cards)
    if sharing.dialect is Dialect.NONE:
        return {}
    counts: dict[str, int] = {}
    if sharing.dialect is Dialect.GPUSHARE and whole:
        counts[names.GPUSHARE_MEMORY] = sharing.units_of(whole[0]) * len(whole)
        counts[names.GPUSHARE_COUNT] = len(whole)
    elif sharing.dialect is Dialect.VOLCANO and whole:
        counts[names.VOLCANO_MEMORY] = _mib(whole[0]) // sharing.factor * len(whole)
        counts[names.VOLCANO_NUMBER] = len(whole)
    elif whole:
        counts[names.NVIDIA_GPU] = len(whole) * sharing.shares
        if sharing.dialect is Dialect.HAMI:
            counts[names.HAMI_MEMORY] = sum(map(_mib, whole))
    for profile, instances in profiles(machine.cards).items():
        counts[names.NVIDIA_MIG_PREFIX + profile] = len(instances)
    return counts


def labels(machine: Machine) -> dict[str, str]:
    """
    Return the node's labels: Kubernetes' own, the dialect's, GPU feature discovery's, the user's.
    """
    dialect = machine.sharing.dialect
    found = {HOSTNAME: machine.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if dialect is Dialect.GPUSHARE:
        found[GPUSHARE_LABEL] = "true"
    elif dialect is Dialect.HAMI:
        found[HAMI_LABEL] = "on"
    elif dialect is Dialect.GKE and machine.cards:
        found[GKE_ACCELERATOR] = _label(machine.cards[0].model).lower()
        found[names.GKE_SHARING] = "time-sharing"
        found[names.GKE_CLIENTS] = str(machine.sharing.shares)
    if machine.gfd or dialect is Dialect.TIME_SLICING:
        found |= discovered(machine.cards, machine.sharing)
    return {**found, **machine.labels}


def discovered(cards: Sequence[Card], sharing: Sharing) -> dict[str, str]:
    """
    Return the labels of GPU feature discovery, which describes all cards by the first.
    """
    physical = [card for card in cards if card.mig is None]
    if not physical:
        return {}
    sliced = sharing.dialect is Dialect.TIME_SLICING and sharing.shares > 1
    found = {
        GPU_PRESENT: "true",
        names.GFD_COUNT: str(len(physical)),
        names.GFD_PRODUCT: _label(physical[0].model) + ("-SHARED" if sliced else ""),
        names.GFD_MEMORY: str(_mib(physical[0])),
        names.GFD_REPLICAS: str(sharing.shares if sliced else 1),
        names.GFD_SHARING: "time-slicing" if sliced else "none",
    }
    if physical[0].compute_capability is not None:
        major, minor = physical[0].compute_capability
        found[names.GFD_COMPUTE_MAJOR], found[names.GFD_COMPUTE_MINOR] = str(major), str(minor)
    for profile, instances in profiles(cards).items():
        found[names.GFD_MIG_MEMORY.format(profile=profile)] = str(_mib(instances[0]))
    return found


def said_cards(machine: Machine, observed: str) -> NodeCards:
    """
    Return what our agent would say about the node.
    """
    sharing = machine.sharing
    gpushare = sharing.dialect is Dialect.GPUSHARE
    return NodeCards(
        driver=machine.driver,
        observed=observed,
        cards=machine.cards,
        units=((names.GPUSHARE_MEMORY, sharing.unit),) if gpushare else (),
        factor=sharing.factor if sharing.dialect is Dialect.VOLCANO else None,
    )


def _mib(card: Card) -> int:
    return card.memory_bytes // MIB


def _label(model: str) -> str:
    return model.replace(" ", "-")
