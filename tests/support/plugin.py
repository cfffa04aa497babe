"""
Pods with plans, nodes and agents' snapshots as the plugin meets them.

The plans are the webhook's own: they are what the plugin has to tell.
"""

import copy
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
from kubectl_gpufence.cluster_view import ClusterAnswers, NodeAgent, SeenNode, by_node, see_node
from kubectl_gpufence.pods import SeenPod, see_pod
from tests.support.builders import APP, T4_BYTES, card, gpushare, node, pod
from tests.support.rewriting import POLICY, gpu_node, rewritten
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
    **spec: Any,
) -> dict[str, Any]:
    """
    Build a pod on the node, as the webhook leaves it in a mode; no mode: the webhook never saw it.
    """
    made = pod(*(containers or (gpushare("trainer"),)), annotations=annotations, **spec)
    made["metadata"] |= {"name": name, "uid": uid}
    for item in made["spec"]["containers"]:
        if item["image"] == APP:
            item["image"] = "registry.example/torch:1"  # which keeps to its variables
    if mode is not None:
        made = rewritten(made, mode, namespace)[0]
    if bound:
        made["metadata"]["annotations"] |= (
            exact_values(copy.deepcopy(made), gpu_node(raw_node()), POLICY) if mode else {}
        )
        made["spec"]["nodeName"] = NODE
    made["status"] = {"phase": "Running" if bound else "Pending"}
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
