"""
Pods, containers and cards with valid defaults: a test names only what it is about.
"""

from __future__ import annotations

from typing import Any

from gpufence.cards import Card, Instance
from gpufence.quantity import MIB
from simulator.node.downward import NodeFacts
from simulator.node.lifecycle import Record, Running, Terminated, Waiting
from simulator.node.pod import Pod, read_pod

UID = "11111111-2222-3333-4444-555555555555"
NODE = NodeFacts("node-a", "10.1.2.3", {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Gi"})
Json = dict[str, Any]


def container(name: str = "main", **fields: Any) -> Json:
    """
    Describe a container that runs the workload's image.
    """
    return {"name": name, "image": "gpufence/workload", **fields}


def env(*entries: tuple[str, Any]) -> list[Json]:
    """
    Describe variables: a text is a literal, an object where the value comes from.
    """
    return [
        {"name": name, "value": value}
        if isinstance(value, str)
        else {"name": name, "valueFrom": value}
        for name, value in entries
    ]


def field(path: str) -> Json:
    return {"fieldRef": {"fieldPath": path}}


def pod_object(
    *containers: Json,
    inits: tuple[Json, ...] = (),
    annotations: dict[str, str] | None = None,
    restart: str = "Always",
    volumes: tuple[Json, ...] = (),
    **metadata: Any,
) -> Json:
    """
    Describe a pod that is bound to the node, as the API has it.
    """
    return {
        "metadata": {
            "name": "trainer",
            "namespace": "team-a",
            "uid": UID,
            "labels": {"app": "training"},
            "annotations": annotations or {},
            **metadata,
        },
        "spec": {
            "nodeName": "node-a",
            "serviceAccountName": "robot",
            "restartPolicy": restart,
            "initContainers": list(inits),
            "containers": list(containers) or [container()],
            "volumes": list(volumes),
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def pod(*containers: Json, **fields: Any) -> Pod:
    return read_pod(pod_object(*containers, **fields))


def card(index: int = 0, memory_mib: int = 15360, model: str = "Tesla T4") -> Card:
    return Card(f"GPU-{index}", index, model, memory_mib * MIB, (7, 5))


def instance(number: int, parent: str = "GPU-0", profile: str = "1g.5gb") -> Card:
    """
    Describe one MIG instance of the card with index 0.
    """
    cut = Instance(parent, profile)
    return Card(f"MIG-{number}", 0, "NVIDIA A100", 4864 * MIB, (8, 0), cut)


def waiting() -> Record:
    return Record(Waiting("ContainerCreating"))


def running(**fields: Any) -> Record:
    return Record(Running("c" * 64, "T1"), **fields)


def ended(exit_code: int = 0, **fields: Any) -> Record:
    ending = Terminated("c" * 64, "T1", "T2", exit_code, "last words")
    return Record(ending, last=ending, **fields)
