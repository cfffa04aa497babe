"""
GPU nodes without machines: whoever is bound there runs, does what the test says, and goes at once.

What a kubelet and an agent would write is written here: phases, the condition of idleness, and the
snapshots that agents serve.
"""

import time
from datetime import UTC, datetime
from typing import Any

from gpufence import names
from gpufence.quantity import GIB
from gpufence.snapshot import PodActivityRow, PodRow, Snapshot, UseRow, write_snapshot
from gpufence.times import write_moment
from kube import Client, JsonObject, KubeError, NotFoundError, PatchType, as_is, collect, core
from tests.support.http_server import Exchange, HttpServer
from tests.support.threads import Beside

_STEP_SECONDS = 0.1
CARD = "GPU-1"
WITHIN = UseRow(CARD, 3 * GIB, 5 * GIB, outcome="within")


def gpu_node(name: str, cards: int = 2) -> JsonObject:
    """Make a node that shares its cards by gpushare, 15 GiB each."""
    offered = {
        "cpu": "8",
        "memory": "32Gi",
        "pods": "110",
        names.GPUSHARE_MEMORY: str(15 * cards),
        names.GPUSHARE_COUNT: str(cards),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "pool": name}},
        "status": {"allocatable": offered, "capacity": offered},
    }


class PlayedNodes(Beside):
    """
    Use it as a context manager. `busy` are parts of the names of pods that work; all others are
    idle, and have been for `idle_seconds` when they begin. `greedy` are parts of the names of those
    that hold more than their limit. `contradictions` tell what agents say of
    pods, by parts of their names, where that is something else than their conditions do. What is
    written of times is by a clock that is `clock_ahead_seconds` ahead of the API server's.
    """

    def __init__(self, admin: Client, *nodes: str) -> None:
        super().__init__()
        self._admin = admin
        self.nodes = nodes
        self.busy: set[str] = set()
        self.unknown: set[str] = set()
        self.greedy: set[str] = set()
        self.idle_seconds = 10.0
        self.contradictions: dict[str, str] = {}
        self.clock_ahead_seconds = 0.0
        self._pods: dict[str, JsonObject] = {}
        self._said: dict[str, tuple[str, float]] = {}
        for name in nodes:
            admin.post(core("nodes"), gpu_node(name))
            admin.patch(
                core("nodes", name, "status"), {"status": gpu_node(name)["status"]}, PatchType.MERGE
            )

    def __exit__(self, *unused: object) -> None:
        super().__exit__(*unused)
        for name in self.nodes:
            self._admin.delete(core("nodes", name))

    def run(self) -> None:
        while not self.over.wait(_STEP_SECONDS):
            try:
                listed = collect(self._admin.get, core("pods"), as_is).items
            except KubeError:
                continue
            pods = {
                item["metadata"]["uid"]: item
                for item in listed
                if item["spec"].get("nodeName") in self.nodes
            }
            self._pods = pods
            for item in pods.values():
                self._play(item)

    def _play(self, item: JsonObject) -> None:
        metadata = item["metadata"]
        path = core("namespaces", metadata["namespace"], "pods", metadata["name"])
        try:
            if metadata.get("deletionTimestamp"):
                self._admin.delete(path, {"gracePeriodSeconds": 0})
                return
            said = self._state(metadata["name"])
            status = {"True": "True", "busy": "False"}.get(said, "Unknown")
            before = self._said.get(metadata["uid"], ("", 0.0))
            if before[0] != said:
                began = time.time() - (self.idle_seconds if said == "True" else 0.0)
                self._said[metadata["uid"]] = (said, began)
                self._patch(path, status if _has_gpu(item) else "", began)
        except (NotFoundError, KubeError):
            pass

    def _patch(self, path: str, status: str, began: float) -> None:
        at = write_moment(began + self.clock_ahead_seconds)
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": at}]
        if status:
            reason = "NoKernels" if status == "True" else "Busy"
            idle = {"type": names.GPU_IDLE, "status": status, "reason": reason}
            conditions.append({**idle, "lastTransitionTime": at})
        body = {"status": {"phase": "Running", "conditions": conditions}}
        self._admin.patch(f"{path}/status", body, PatchType.STRATEGIC)

    def _state(self, name: str) -> str:
        if any(part in name for part in self.busy):
            return "busy"
        return "Unknown" if any(part in name for part in self.unknown) else "True"

    def snapshot(self, node: str, age_seconds: float) -> Snapshot:
        pods = [item for item in self._pods.values() if item["spec"].get("nodeName") == node]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Snapshot(
            node=node,
            version="0",
            at=now,
            started=now,
            fresh=True,
            stale_seconds=age_seconds,
            pods=tuple(self._row(item["metadata"]) for item in pods),
        )

    def _row(self, metadata: dict[str, Any]) -> PodRow:
        said, began = self._said.get(metadata["uid"], ("Unknown", time.time()))
        other = (word for part, word in self.contradictions.items() if part in metadata["name"])
        said = next(other, said)
        seconds = time.time() - began
        activity = {
            "True": PodActivityRow("idle", seconds, "NoKernels", busy_share=0.0),
            "busy": PodActivityRow("busy", 0.0, "Busy", busy_share=0.75),
        }.get(said, PodActivityRow("unknown", None, "NotMeasurable", why="no counters"))
        over = any(part in metadata["name"] for part in self.greedy)
        use = UseRow(CARD, 6 * GIB, 5 * GIB, outcome="holding") if over else WITHIN
        return PodRow(
            metadata["uid"],
            metadata["namespace"],
            metadata["name"],
            mode="observe",
            uses=(use,),
            activity=activity,
        )


def _has_gpu(pod: JsonObject) -> bool:
    return any(
        names.GPUSHARE_MEMORY in item.get("resources", {}).get("limits", {})
        for item in pod["spec"]["containers"]
    )


class PlayedAgents(HttpServer):
    """
    Serves each node's snapshot below its name, as `played` sees it.

    `silent` nodes do not answer, `stale` ones tell of long ago.
    """

    def __init__(self, played: PlayedNodes) -> None:
        super().__init__()
        self._played = played
        self.silent: set[str] = set()
        self.stale: set[str] = set()

    def setting_of(self, *nodes: str) -> str:
        """Return where the agents of nodes are, by default those of all."""
        return ",".join(f"{node}={self.url}/{node}" for node in nodes or self._played.nodes)

    def handle(self, exchange: Exchange) -> None:
        node = exchange.path.split("/")[1]
        if node in self.silent:
            exchange.hang()
            return
        snapshot = self._played.snapshot(node, 60.0 if node in self.stale else 0.1)
        exchange.answer(200, write_snapshot(snapshot).encode())
