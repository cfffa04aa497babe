"""
The objects of the cluster, as large as real ones, with all that people, kubelets and gpufence have
written on them.
"""

import copy
from typing import Any, Final

from gpufence import names
from gpufence.cards import Card, NodeCards, write_cards
from gpufence.mode import Mode
from gpufence.quantity import MIB
from tests.scale import size
from tests.support.objects import controlled, deployment, large_node, large_pod
from tests.support.rewriting import POLICY, gpu_node, rewritten
from webhook.fleet import Fleet
from webhook.rewrite.binding import exact_values

Json = dict[str, Any]
KINDS: Final = 3
UNITS: Final = 3  # of GiB, as the pods of `large` ask for
AGENT_LABEL: Final = "app.kubernetes.io/name"
_AT: Final = "2026-01-02T03:04:05Z"


def node(number: int, kind: int) -> Json:
    """Make a node of one of three kinds, whose agent has said which cards it has."""
    made = large_node(kind, features=20, images=20)
    labels = made["metadata"]["labels"]
    name = size.node_name(number)
    labels["kubernetes.io/hostname"] = name
    made["metadata"] = {
        "name": name,
        "labels": labels,
        "annotations": {names.CARDS: write_cards(_cards(number, labels))},
    }
    made["spec"]["providerID"] = f"cloud:///{name}"
    made["status"]["conditions"] = [_true("Ready"), _true("NetworkReady")]
    return {"apiVersion": "v1", "kind": "Node", **made}


def namespace(name: str, mode: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {names.MODE: mode}},
    }


def owners(number: int) -> tuple[Json, Json]:
    """Make a Deployment, and the ReplicaSet that it controls."""
    above = deployment(size.deployment_name(number), 10)
    above["metadata"]["namespace"] = size.team_of(number)
    pod_spec = asked(size.team_of(number), "template")["spec"]
    above["spec"]["template"]["spec"] = {**pod_spec, "restartPolicy": "Always"}
    known = {**above, "metadata": {**above["metadata"], "uid": size.uid("deployment", number)}}
    below = copy.deepcopy(above) | {"kind": "ReplicaSet"}
    below["metadata"]["name"] = size.replica_set_name(number)
    return above, controlled(below, known)


def asked(namespace: str, name: str, container: str = "trainer") -> Json:
    """Make a pod as its owner asks for it: 3 GiB of a card."""
    made = large_pod(settings=8, volumes=2)
    for field in ("managedFields", "generateName", "ownerReferences"):
        del made["metadata"][field]
    made["metadata"] |= {"namespace": namespace, "name": name}
    made["spec"]["containers"][0]["name"] = container
    made["spec"]["tolerations"] = [{"operator": "Exists"}]
    return made


def pod(number: int, owner: int, node_number: int, raw_node: Json) -> Json:
    """Make a pod on a node, as the webhook has left it there."""
    name = size.deployment_name(owner)
    made = asked(size.team_of(owner), size.pod_name(number, owner), name)
    made["metadata"]["labels"] |= {"app": name}
    reference = {"name": size.replica_set_name(owner), "uid": size.uid("replicaset", owner)}
    above = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": reference}
    made = controlled(made, above)
    kind = gpu_node(raw_node)
    made = rewritten(made, Mode.EVICT, fleet=Fleet((kind,)))[0]
    made["metadata"]["annotations"] |= exact_values(copy.deepcopy(made), kind, POLICY)
    made["spec"]["nodeName"] = size.node_name(node_number)
    return made


def agent(number: int, port: int) -> Json:
    """Make the pod of a node's agent."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": size.agent_name(number),
            "namespace": names.SYSTEM_NAMESPACE,
            "labels": {AGENT_LABEL: "gpufence-agent"},
        },
        "spec": {
            "nodeName": size.node_name(number),
            "serviceAccountName": "gpufence-agent",
            "containers": [
                {
                    "name": "agent",
                    "image": "registry.example.com/gpufence/agent:1",
                    "ports": [{"name": "status", "containerPort": port}],
                    "env": [{"name": "GPUFENCE_NODE", "value": size.node_name(number)}],
                }
            ],
        },
    }


def running(address: str) -> Json:
    """Say what a kubelet says of a pod that runs, and its agent of a pod that works."""
    return {
        "phase": "Running",
        "conditions": [
            _true("PodScheduled"),
            _true("Ready"),
            _true("ContainersReady"),
            {**_true(names.GPU_IDLE), "status": "False", "reason": "Kernels"},
        ],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": address,
        "startTime": _AT,
    }


def _true(kind: str) -> Json:
    return {"type": kind, "status": "True", "lastTransitionTime": _AT}


def _cards(number: int, labels: dict[str, str]) -> NodeCards:
    capability = int(labels[names.GFD_COMPUTE_MAJOR]), int(labels[names.GFD_COMPUTE_MINOR])
    memory, model = int(labels[names.GFD_MEMORY]) * MIB, labels[names.GFD_PRODUCT]
    return NodeCards(
        driver="580.95.05",
        observed=_AT,
        cards=tuple(
            Card(size.card_uuid(number, index), index, model, memory, capability)
            for index in range(size.CARDS)
        ),
        units=((names.GPUSHARE_MEMORY, "GiB"),),
    )
