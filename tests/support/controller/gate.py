"""A gate before the API server, and GPU nodes without machines."""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path
from typing import Any

from gpufence import names
from gpufence.quantity import GIB
from gpufence.snapshot import PodActivityRow, PodRow, Snapshot, UseRow, write_snapshot
from gpufence.times import write_moment
from kube import Client, JsonObject, KubeError, NotFoundError, PatchType, core
from kube.informers.reflector import Reflector, Store
from kube.watch import Source
from simulator.controlplane import ControlPlane
from tests.support.observing import Beside
from tests.support.servers import Exchange, HttpServer

_CHUNK = 2**16
_HOP = frozenset({"date", "connection", "transfer-encoding", "content-length", "keep-alive"})
_SECONDS = 300.0

Chosen = Callable[[str, str], bool]


class Trouble(Enum):
    """What happens to a request, or to the answer of one that has arrived."""

    LOSE = auto()
    LOSE_ANSWER = auto()
    HOLD = auto()
    HOLD_ANSWER = auto()


def scaling(owner: str) -> Chosen:
    """Choose what scales a Deployment of that name."""
    return lambda method, path: method == "PUT" and path.endswith(f"/deployments/{owner}/scale")


def noting(owner: str) -> Chosen:
    """Choose what writes a note on a Deployment of that name."""
    return lambda method, path: method == "PATCH" and path.endswith(f"/deployments/{owner}")


class Gate(HttpServer):
    """
    Hands requests on, with whoever's token they come. Each trouble happens once, to the first
    request that it is about; what is refused is refused until `let_in`.
    """

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._port = plane.port
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._troubles: list[tuple[Trouble, Chosen]] = []
        self._refuse: Chosen | None = None
        self._open = threading.Event()
        self.refused = threading.Event()
        self.held = threading.Event()
        self.statuses: list[tuple[str, str, int]] = []

    @property
    def over_with(self) -> bool:
        """Return whether every trouble has happened."""
        return not self._troubles

    def kubeconfig(self, folder: Path, token: str) -> Path:
        """Write a kubeconfig that leads through the gate."""
        path = folder / "through-the-gate"
        named = {"name": "gate"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{**named, "cluster": {"server": self.url}}],
            "users": [{**named, "user": {"token": token}}],
            "contexts": [{**named, "context": {"cluster": "gate", "user": "gate"}}],
            "current-context": "gate",
        }
        path.write_text(json.dumps(config), encoding="utf-8")
        return path

    def trouble(self, what: Trouble, chosen: Chosen) -> None:
        self._troubles.append((what, chosen))

    def refuse(self, chosen: Chosen) -> None:
        self.refused.clear()
        self._refuse = chosen

    def let_in(self) -> None:
        self._refuse = None

    def let_go(self) -> None:
        self._open.set()

    def handle(self, exchange: Exchange) -> None:
        method, path = exchange.command, exchange.path.partition("?")[0]
        if self._refuse is not None and self._refuse(method, path):
            exchange.answer(503, b"{}")
            self.refused.set()
            return
        if self._strikes(Trouble.LOSE, method, path):
            exchange.cut()
            return
        if self._strikes(Trouble.HOLD, method, path):
            self._wait()
        try:
            self._hand_on(exchange, method, path)
        except (OSError, http.client.HTTPException):
            exchange.cut()

    def _strikes(self, what: Trouble, method: str, path: str) -> bool:
        for item in self._troubles:
            if item[0] is what and item[1](method, path):
                self._troubles.remove(item)
                return True
        return False

    def _wait(self) -> None:
        self.held.set()
        self._open.wait(_SECONDS)

    def _hand_on(self, exchange: Exchange, method: str, path: str) -> None:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=_SECONDS, context=self._tls
        )
        headers = {name: text for name, text in exchange.headers.items() if name.lower() != "host"}
        try:
            connection.request(method, exchange.path, exchange.body or None, headers)
            answer = connection.getresponse()
            self.statuses.append((method, path, answer.status))
            if self._strikes(Trouble.LOSE_ANSWER, method, path):
                answer.read()
                exchange.cut()
                return
            if self._strikes(Trouble.HOLD_ANSWER, method, path):
                self._wait()
            self._answer(exchange, answer)
        finally:
            connection.close()

    def _answer(self, exchange: Exchange, answer: http.client.HTTPResponse) -> None:
        kept = {name: text for name, text in answer.getheaders() if name.lower() not in _HOP}
        exchange.send_head(answer.status, {**kept, "Transfer-Encoding": "chunked"})
        while not self.over.is_set() and (chunk := answer.read1(_CHUNK)):
            exchange.send_chunk(chunk)
        exchange.wfile.write(b"0\r\n\r\n")
        exchange.wfile.flush()


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
        store: Store[JsonObject] = Store()
        source = Source(path=core("pods"), keep=self._kept)
        reflector = Reflector(self._admin, source, store)
        reflector.start()
        try:
            while not self.over.wait(_STEP_SECONDS):
                self._pods = dict(store.items)
                for item in self._pods.values():
                    self._play(item)
        finally:
            reflector.stop()

    def _kept(self, item: JsonObject) -> tuple[str, JsonObject | None]:
        ours = item["spec"].get("nodeName") in self.nodes
        return item["metadata"]["uid"], item if ours else None

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
