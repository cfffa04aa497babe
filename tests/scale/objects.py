"""
The objects of the cluster, as large as real ones, and how it is filled with them: one of each kind
is made as anybody would, and what etcd has of it is copied with other numbers in it.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpufence import names
from gpufence.cards import Card, NodeCards, write_cards
from gpufence.mode import Mode
from gpufence.quantity import MIB
from kube import Client, PatchType, core, group
from tests.scale import size
from tests.scale.size import Size
from tests.support.etcd import Etcd
from tests.support.objects import controlled, deployment, large_node, large_pod
from tests.support.observing import wait_until
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


_NODE, _OWNER, _POD = 80808, 70750, 606060
# What of a first object its copies exchange: texts of one length each.
_FIRST: Final = {
    "node": f"{_NODE:05}",
    "owner": f"{_OWNER:05}",
    "team": size.team_of(_OWNER),
    "pod": f"{_POD:06}",
}
_OWNERS: Final = {
    "deployment": size.uid("deployment", _OWNER),
    "replicaset": size.uid("replicaset", _OWNER),
}
Copies = Iterator[tuple[str, bytes]]


@dataclass(frozen=True)
class Template:
    """What etcd has of the first object of a kind."""

    key: str
    content: bytes
    uid: str

    def copy(self, uid: str, owner: int | None = None, **numbers: str) -> tuple[str, bytes]:
        """Return key and value of another object, with its own UID, numbers and owner."""
        texts = {_FIRST[name]: text for name, text in numbers.items()}
        if owner is not None:
            texts[_FIRST["owner"]], texts[_FIRST["team"]] = f"{owner:05}", size.team_of(owner)
            texts |= {first: size.uid(kind, owner) for kind, first in _OWNERS.items()}
        key, content = self.key, self.content.replace(self.uid.encode(), uid.encode())
        for before, text in texts.items():
            if len(before) != len(text):
                raise ValueError(f"{text} is not as long as {before}, in whose place it is to be")
            key = key.replace(before, text)
            content = content.replace(before.encode(), text.encode())
        return key, content


class Seeds:
    """The first object of each kind in an empty cluster; `bytes_of` is how long some are."""

    def __init__(self, admin: Client, etcd: Etcd, address: str, agents_port: int) -> None:
        self._admin, self._etcd = admin, etcd
        self._address = address
        self.bytes_of: dict[str, int] = {}
        for number in range(size.TEAMS):
            admin.post(core("namespaces"), namespace(size.team_of(number), "evict"))
        self.bytes_of["a pod, as it is made"] = _length(asked(size.CHURN, "asked"))
        self._deployment, self._replica_set = self._owners()
        kinds = range(KINDS)
        self._nodes, self._pods = [], []
        for kind in kinds:
            raw = node(_NODE, kind)
            self._nodes.append(self._first("a node", core("nodes"), "minions", raw))
            self._pods.append(self._pod(raw))
        self._agent = self._running(agent(_NODE, agents_port), "the pod of an agent")

    def nodes(self, wanted: Size) -> Copies:
        for number in range(wanted.nodes):
            template = self._nodes[number % KINDS]
            yield template.copy(size.uid("node", number), node=f"{number:05}")

    def owners(self, wanted: Size) -> Copies:
        for number in range(wanted.owners):
            yield self._deployment.copy(size.uid("deployment", number), number)
            yield self._replica_set.copy(size.uid("replicaset", number), number)

    def pods(self, wanted: Size) -> Copies:
        for number in range(wanted.pods):
            node = number % wanted.nodes
            template = self._pods[node % KINDS]
            texts = {"node": f"{node:05}", "pod": f"{number:06}"}
            yield template.copy(size.uid("pod", number), size.owner_of(number), **texts)

    def agents(self, wanted: Size) -> Copies:
        for number in range(wanted.nodes):
            yield self._agent.copy(size.uid("agent", number), node=f"{number:05}")

    def _owners(self) -> tuple[Template, Template]:
        where = group("apps/v1", "namespaces", size.team_of(_OWNER))
        key = f"{{}}/{size.team_of(_OWNER)}"
        above, below = owners(_OWNER)
        return (
            self._first("a Deployment", f"{where}/deployments", key.format("deployments"), above),
            self._first("a ReplicaSet", f"{where}/replicasets", key.format("replicasets"), below),
        )

    def _pod(self, raw_node: dict[str, Any]) -> Template:
        return self._running(
            pod(_POD, _OWNER, _NODE, raw_node),
            "a GPU pod, with what kubelet and gpufence write",
        )

    def _running(self, item: dict[str, Any], what: str) -> Template:
        namespace = item["metadata"]["namespace"]
        path = core("namespaces", namespace, "pods")
        self._admin.post(path, item)
        status = {"status": running(self._address)}
        item["metadata"].pop("uid", None)
        where = f"{path}/{item['metadata']['name']}"
        self._admin.patch(f"{where}/status", status, PatchType.MERGE)
        return self._taken(what, where, f"pods/{namespace}/{item['metadata']['name']}")

    def _first(self, what: str, path: str, key: str, item: dict[str, Any]) -> Template:
        self._admin.post(path, item)
        name = item["metadata"]["name"]
        return self._taken(what, f"{path}/{name}", f"{key}/{name}")

    def _taken(self, what: str, path: str, key: str) -> Template:
        """Read the first object, and take it away again."""
        made = self._admin.get(path)
        self.bytes_of[what] = _length(made)
        found = Template(f"/registry/{key}", self._etcd.get(f"/registry/{key}"), _uid(made))
        self._admin.delete(path, {"gracePeriodSeconds": 0})
        return found


def sow(
    folder: Path, admin: Client, wanted: Size, address: str, agents_port: int
) -> Mapping[str, int]:
    """Fill the cluster; return how long some objects are."""
    with closing(Etcd(folder)) as etcd:
        seeds = Seeds(admin, etcd, address, agents_port)
        for copies in (seeds.nodes, seeds.owners, seeds.pods, seeds.agents):
            etcd.put(copies(wanted))
    # What etcd wrote in one go has one version: a list may be answered while half of it is seen.
    pods = wanted.pods + wanted.nodes
    wait_until(lambda: (_count(admin, "nodes"), _count(admin, "pods")) == (wanted.nodes, pods))
    return seeds.bytes_of


def _count(admin: Client, kind: str) -> int:
    listed = admin.get(core(kind), {"limit": 1})
    return len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0))


def _length(item: dict[str, Any]) -> int:
    return len(json.dumps(item, separators=(",", ":")))


def _uid(item: dict[str, Any]) -> str:
    return str(item["metadata"]["uid"])
