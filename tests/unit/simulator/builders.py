"""Pods, containers and cards with valid defaults, and a node around them that runs nothing."""

from typing import Any

from gpufence.cards import Card
from gpufence.quantity import MIB
from simulator.node.lifecycle import ContainerRecord, Running, Terminated, Waiting
from simulator.node.pod import NodePod, read_pod

UID = "11111111-2222-3333-4444-555555555555"
ADDRESS = "10.1.2.3"
Json = dict[str, Any]


def container(name: str = "main", **fields: Any) -> Json:
    """Describe a container that runs the workload's image."""
    return {"name": name, "image": "gpufence/workload", **fields}


def env(*entries: tuple[str, Any]) -> list[Json]:
    """Describe variables: a text is a literal, an object where the value comes from."""
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
    annotations: dict[str, str] | None = None,
    restart: str = "Always",
    volumes: tuple[Json, ...] = (),
    spec: Json | None = None,
    **metadata: Any,
) -> Json:
    """Describe a pod that is bound to the node, as the API has it."""
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
            "containers": list(containers) or [container()],
            "volumes": list(volumes),
            **(spec or {}),
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def pod(*containers: Json, **fields: Any) -> NodePod:
    return read_pod(pod_object(*containers, **fields))


def card(index: int = 0, memory_mib: int = 15360, **fields: Any) -> Card:
    return Card(f"GPU-{index}", index, "Tesla T4", memory_mib * MIB, (7, 5), **fields)


def waiting() -> ContainerRecord:
    return ContainerRecord(Waiting("ContainerCreating"))


def running(**fields: Any) -> ContainerRecord:
    return ContainerRecord(Running("c" * 64, "T1"), **fields)


def ended(exit_code: int = 0, **fields: Any) -> ContainerRecord:
    ending = Terminated("c" * 64, "T1", "T2", exit_code, "last words")
    return ContainerRecord(ending, last=ending, **fields)
