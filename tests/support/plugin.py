"""Pods with plans, nodes and snapshots as the plugin meets them, and the plugin in this process."""

import copy
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.memory_condition import HeldOnCard, MemoryReason, write_message
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import (
    CardRow,
    NobodyRow,
    PodRow,
    ProcessRow,
    Snapshot,
    UseRow,
    write_snapshot,
)
from kube import JsonObject
from kubectl_gpufence.__main__ import run
from kubectl_gpufence.cluster_view import ClusterAnswers, NodeAgent, SeenNode, by_node, see_node
from kubectl_gpufence.output import Output, advice
from kubectl_gpufence.pods import SeenPod, see_pod
from kubectl_gpufence.reader import CONFIGURATION
from kubectl_gpufence.verbs import parse
from kubectl_gpufence.view import Display
from tests.support.builders import APP, T4_BYTES, card, gpushare, node, pod
from tests.support.rewriting import POLICY, gpu_node, rewritten
from tests.support.servers import Answer, ApiServer, Seen, refusal, reply
from webhook.policy import WebhookPolicy
from webhook.rewrite.binding import exact_values

NODE = "gpu-1"
CARD = "GPU-0"
UID = "11111111-2222-3333-4444-555555555555"
LIMIT = 3 * GIB


class Screen(io.StringIO):
    """A terminal in memory."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def raw_node(name: str = NODE, count: int = 1) -> dict[str, Any]:
    return node(*(card(index) for index in range(count)), name=name)


def seen_node(name: str = NODE, count: int = 1) -> SeenNode:
    return see_node(raw_node(name, count))


def raw_pod(
    *containers: dict[str, Any],
    name: str = "trainer-0",
    uid: str = UID,
    mode: Mode | None = Mode.EVICT,
    bound: bool = True,
    annotations: Mapping[str, str] | None = None,
    namespace: Mapping[str, str] | None = None,
    policy: WebhookPolicy = POLICY,
    **spec: Any,
) -> dict[str, Any]:
    """Build a pod on the node as the webhook leaves it in a mode; without one it never saw it."""
    made = pod(*(containers or (gpushare("trainer"),)), annotations=annotations, **spec)
    made["metadata"] |= {"name": name, "uid": uid}
    for item in made["spec"]["containers"]:
        if item["image"] == APP:
            item["image"] = "registry.example/torch:1"  # which keeps to its variables
    if mode is not None:
        made = rewritten(made, mode, namespace, policy=policy)[0]
    if bound:
        where = gpu_node(raw_node())._replace(driver="615.71.09")
        made["metadata"]["annotations"] |= (
            exact_values(copy.deepcopy(made), where, POLICY) if mode else {}
        )
        made["spec"]["nodeName"] = NODE
    made["status"] = {"phase": "Running" if bound else "Pending"}
    return made


def raw_saying(reason: str, *cards: HeldOnCard, **changes: Any) -> dict[str, Any]:
    """Build a pod that says this of itself, by its agent."""
    message = write_message(MemoryReason.OVER, cards) if cards else "brand new"
    said = {"reason": str(reason), "message": message, "lastProbeTime": "2026-01-02T03:04:05Z"}
    made = raw_pod(**changes)
    made["status"]["conditions"] = [{"type": names.GPU_MEMORY, "status": "True", **said}]
    return made


def seen_pod(*containers: dict[str, Any], **changes: Any) -> SeenPod:
    return see_pod(raw_pod(*containers, **changes), seen_node().gpu)


def use_row(used: int | None = 2 * GIB, **changes: Any) -> UseRow:
    """Build a use within its limit, of one process."""
    return UseRow(
        card=CARD,
        used_bytes=used,
        limit_bytes=LIMIT,
        allowance_bytes=2150 * MIB,
        outcome="within",
        processes=(ProcessRow(41, used, container="trainer"),),
    )._replace(**changes)


def pod_row(*uses: UseRow, **changes: Any) -> PodRow:
    return PodRow(
        uid=UID,
        namespace="team-a",
        name="trainer-0",
        mode="evict",
        owner="Job/trainer",
        uses=uses or (use_row(),),
    )._replace(**changes)


def card_row(index: int = 0, **changes: Any) -> CardRow:
    return CardRow(
        uuid=f"GPU-{index}",
        index=index,
        model="Tesla T4",
        total_bytes=T4_BYTES,
        used_bytes=4 * GIB,
        free_bytes=11 * GIB,
        reserved_bytes=300 * MIB,
        committed_bytes=6 * GIB,
        unattributed_bytes=0,
        listed_seconds_ago=1.5,
    )._replace(**changes)


def snapshot(*pods: PodRow, **changes: Any) -> Snapshot:
    """Build the snapshot of a healthy agent with one card."""
    return Snapshot(
        node=NODE,
        version="0.1.0",
        at="2026-01-02T03:04:05Z",
        started="2026-01-02T00:00:00Z",
        driver="570.124.06",
        highest="evict",
        fresh=True,
        stale_seconds=0.4,
        cards=(card_row(),),
        pods=pods or (pod_row(),),
        nobody=(NobodyRow(CARD, ProcessRow(7, 12 * MIB, command="Xorg")),),
    )._replace(**changes)


def agent(state: Snapshot | None, trouble: str = "", **changes: Any) -> NodeAgent:
    text = "" if state is None else write_snapshot(state)
    made = NodeAgent(NODE, "gpufence-agent-x", snapshot=state, trouble=trouble, text=text)
    return replace(made, **changes)


def cluster(*pods: SeenPod, agents: tuple[NodeAgent, ...] = (), **changes: Any) -> ClusterAnswers:
    return replace(ClusterAnswers(pods, by_node(agents), {NODE: seen_node()}), **changes)


SYSTEM = "/api/v1/namespaces/gpufence-system/pods"
PODS = "/api/v1/namespaces/team-a/pods"
AGENT = f"{SYSTEM}/gpufence-agent-x:8080/proxy/v1/snapshot"
DENIED = refusal(403, "Forbidden", "not yours")
ABSENT = refusal(404, "NotFound", "not here")


@dataclass(frozen=True)
class Said:
    """What the plugin answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Desk:
    """A cluster of one node, one agent and one pod, until a test says otherwise."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self._config = folder / "config"
        self.environ = {"KUBECONFIG": str(self._config)}
        self._config.write_text(yaml.safe_dump(_kubeconfig(server.url)))
        self.get("/api/v1/nodes", listed(raw_node()))
        self.get(SYSTEM, listed(agent_pod()))
        self.get(AGENT, reply(write_snapshot(snapshot()).encode()))
        self.get(PODS, listed(raw_pod()))
        self.get("/api/v1/pods", listed(raw_pod()))
        self.get(f"{PODS}/trainer-0", reply(raw_pod()))
        self.get(f"/api/v1/nodes/{NODE}", reply(raw_node()))
        self.get("/api/v1/namespaces/team-a", reply(namespace("team-a", "evict")))
        self.get("/api/v1/namespaces/team-a/events", listed())
        self.get("/api/v1/namespaces/empty/pods", listed())
        self.get("/api/v1/namespaces/empty/events", listed())
        self.get("/apis/keda.sh/v1alpha1/scaledobjects", ABSENT)
        self.get(CONFIGURATION, ABSENT)

    def get(self, path: str, answer: Answer) -> None:
        self.server.on(f"GET {path}", answer)

    def run(
        self, *arguments: str, out: io.StringIO | None = None, err: io.StringIO | None = None
    ) -> Said:
        """Run the plugin; errors that end it are the caller's to expect."""
        out, err = out or io.StringIO(), err or io.StringIO()
        verb, *rest = arguments
        call = parse([verb, "--request-timeout", "20s", *rest])
        code = run(call, self.environ, Output(out, err, Display(width=100)))
        return Said(code, out.getvalue(), err.getvalue())


Asked = tuple[str, Mapping[str, Answer]]
"""What is typed, and what the cluster answers otherwise than a desk's does."""


def answered(folder: Path, cases: Mapping[str, Asked]) -> dict[str, list[str]]:
    """Show what verbs say where the cluster answers so, and what was asked for."""
    with ApiServer() as server:
        return {title: [*_answered(server, folder, *case)] for title, case in cases.items()}


def _answered(
    server: ApiServer, folder: Path, typed: str, answers: Mapping[str, Answer]
) -> Iterator[str]:
    server.forget()
    desk = Desk(server, folder)
    for path, answer in answers.items():
        desk.get(path, answer)
    try:
        said = desk.run(*typed.replace("SERVER", server.url).split())
    except GpufenceError as error:
        lines = [f"error: {advice(error)}"]
    else:
        err = (f"! {line}" for line in said.err.splitlines())
        lines = [f"exit {said.code}", *said.out.splitlines(), *err]
    for line in lines:
        yield f"  {line}".rstrip().replace(server.url, "SERVER")
    yield from sorted({f"  < {_request(each)}" for each in server.requests})


def _request(seen: Seen) -> str:
    query = "&".join(f"{name}={text}" for name, text in seen.query.items())
    return f"{seen.key}?{query}" if query else seen.key


def listed(*items: JsonObject) -> Answer:
    return reply({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": list(items)})


def agent_pod(name: str = "gpufence-agent-x", node: str = NODE, ready: str = "True") -> JsonObject:
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "agent"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def namespace(name: str, mode: str) -> JsonObject:
    return {"metadata": {"name": name, "labels": {"gpufence.io/mode": mode}}}


def _kubeconfig(url: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}}
        ],
    }
