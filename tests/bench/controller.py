"""
`python -m tests.bench.controller [GPU pods] [profiles]`: what the controller holds in memory and
takes of a core with 50,000 pods in view, of which some ask for GPUs, and thousands of profiles,
from a scripted server.

It runs as in a pod, without the libraries that read a kubeconfig.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, ClassVar, Final
from urllib.parse import parse_qs, urlsplit

from gpufence import names
from gpufence.need import NodeNeed, merged, need_configmap, summarise, write_need
from gpufence.need.profile import conditions_of, profile_name, write_status
from gpufence.quantity import GIB
from gpufence.snapshot import (
    ActivityRow,
    PodActivityRow,
    PodRow,
    ProcessRow,
    Snapshot,
    UseRow,
    write_snapshot,
)
from kube import JsonObject
from tests.bench.profiles import CARD, NODES, TEAMS, needs
from tests.bench.webhook.load import free_port
from tests.support.observing import cpu_seconds, memory_mib, wait_until

PODS: Final = 50_000
PODS_OF_OWNER: Final = 10
PODS_OF_NODE: Final = 20
PAGE: Final = 250
SYSTEM: Final = names.SYSTEM_NAMESPACE
SECONDS: Final = 45.0
PATIENCE_SECONDS: Final = 300.0
STEP_SECONDS: Final = 15.0
IN_POD: Final = (
    "import os, sys; from kube import ClientSettings; from controller.program import run; "
    "run(os.environ, ClientSettings(server=sys.argv[1]))"
)
_PREFIX: Final = "gpufence_controller_"
_SHOWN: Final = tuple(_PREFIX + key for key in ("profile", "needs", "pass", "pods", "agents"))
NEEDS_PATH: Final = f"/api/v1/namespaces/{SYSTEM}/configmaps"
PROFILES_PATH: Final = f"/apis/{names.PROFILE_GROUP}/{names.PROFILES}"


class Collections:
    """What the server has, made object by object when it is asked for."""

    def __init__(self, gpu_pods: int, profiles: int) -> None:
        self.gpu_pods = gpu_pods
        self.nodes = max(gpu_pods // PODS_OF_NODE, 1)
        self.needs = needs(profiles)
        self.owners = max(gpu_pods // PODS_OF_OWNER, profiles)
        self._statuses = list(_profiles(self.needs))
        self.lists: dict[str, tuple[int, Callable[[int], JsonObject]]] = {
            "/api/v1/pods": (PODS, lambda place: _pod(place, gpu_pods, self.nodes)),
            "/api/v1/nodes": (self.nodes, _node),
            "/api/v1/namespaces": (TEAMS, _namespace),
            "/apis/apps/v1/deployments": (self.owners, lambda place: _owner(place, "Deployment")),
            "/apis/apps/v1/replicasets": (self.owners, lambda place: _owner(place, "ReplicaSet")),
            NEEDS_PATH: (len(self.needs), lambda place: _need(self.needs[place])),
            PROFILES_PATH: (len(self._statuses), lambda place: self._statuses[place]),
        }

    def snapshot(self, node: int) -> str:
        """Return what the agent of a node sees of the pods there."""
        places = range(node, self.gpu_pods, self.nodes)
        state = Snapshot(f"node-{node}", "0", "", "", fresh=True, stale_seconds=0.5)
        return write_snapshot(state._replace(pods=tuple(_row(place) for place in places)))

    def page(self, path: str, query: dict[str, list[str]]) -> Iterator[JsonObject | str]:
        """Yield the objects of one page, and then where the next one begins, empty at the end."""
        count, make = self.lists.get(path, (0, _namespace))
        if path == NEEDS_PATH and "labelSelector" not in query:
            count = 0
        first = int(query.get("continue", ["0"])[0])
        last = min(first + int(query.get("limit", [str(PAGE)])[0]), count)
        yield from (make(place) for place in range(first, last))
        yield str(last) if last < count else ""


class Handler(BaseHTTPRequestHandler):
    """Answers what the controller asks; a watch tells nothing."""

    there: Collections
    lease: ClassVar[dict[str, Any]] = {"metadata": {"resourceVersion": "1"}, "spec": {}}
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        if query.get("watch") == ["true"]:
            self._begin()
            time.sleep(SECONDS * 10)
        elif address.path in _KINDS:
            self._say(_KINDS[address.path])
        elif "/leases/" in address.path:
            self._say(self.lease)
        elif address.path.startswith("/node-"):
            self._say(json.loads(self.there.snapshot(int(address.path.split("/")[1][5:]))))
        else:
            self._say_page(address.path, query)

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "/leases/" in self.path:
            self.lease.update(body)
        self._say(body)

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body["metadata"]["resourceVersion"] = "1"
        self._say(body)

    def do_POST(self) -> None:
        self.do_PUT()

    def _say_page(self, path: str, query: dict[str, list[str]]) -> None:
        self._begin()
        self._chunk('{"kind":"List","items":[')
        comma = ""
        for item in self.there.page(path, query):
            if isinstance(item, str):
                self._chunk(f'],"metadata":{{"resourceVersion":"9","continue":"{item}"}}}}')
            else:
                self._chunk(comma + json.dumps(item))
                comma = ","
        self._chunk("")

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _say(self, said: object, status: int = 200) -> None:
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        pass


def serve(there: Collections) -> ThreadingHTTPServer:
    Handler.there = there
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def _kinds(**resources: str) -> JsonObject:
    listed: list[JsonObject] = []
    for plural, kind in resources.items():
        listed.append({"name": plural, "kind": kind, "namespaced": True})
        listed.append({"name": f"{plural}/scale", "kind": "Scale", "namespaced": True})
    return {"resources": listed}


_KINDS: Final[dict[str, JsonObject]] = {
    "/apis": {"groups": [{"preferredVersion": {"groupVersion": "apps/v1"}}]},
    "/api/v1": _kinds(),
    "/apis/apps/v1": _kinds(deployments="Deployment", replicasets="ReplicaSet"),
}


def _about(place: int, kind: str) -> JsonObject:
    suffix = {"Deployment": "", "ReplicaSet": "-6664c96cd5"}[kind]
    return {
        "name": f"model-{place}{suffix}",
        "namespace": f"team-{place % TEAMS}",
        "uid": f"{kind[:8]:a<8}-0000-0000-0000-{place:012}",
        "resourceVersion": str(10**6 + place),
    }


def _owner(place: int, kind: str) -> JsonObject:
    about = _about(place, kind)
    if kind == "ReplicaSet":
        above = _about(place, "Deployment")
        about["ownerReferences"] = [_reference("apps/v1", "Deployment", above)]
    template = {"spec": _spec(gpu=True)}
    replicas = {"replicas": PODS_OF_OWNER}
    return {"metadata": about, "spec": {**replicas, "template": template}, "status": replicas}


def _reference(version: str, kind: str, about: JsonObject) -> JsonObject:
    named = {"name": about["name"], "uid": about["uid"]}
    return {"apiVersion": version, "kind": kind, **named, "controller": True}


def _spec(*, gpu: bool) -> JsonObject:
    limits = {names.NVIDIA_GPU: "1"} if gpu else {}
    requests = {"cpu": "500m", "memory": "1Gi", **limits}
    resources = {"requests": requests, "limits": limits}
    return {"containers": [{"name": "server", "image": "x" * 60, "resources": resources}]}


def _pod(place: int, gpu_pods: int, nodes: int) -> JsonObject:
    gpu = place < gpu_pods
    set_of = _about(place // PODS_OF_OWNER, "ReplicaSet")
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "PodScheduled")]
    idle = {"type": names.GPU_IDLE, "status": "False", "reason": "Busy"}
    since = f"2026-11-{1 + place % 18:02}T{place % 24:02}:00:00Z"
    about = {
        "name": f"{set_of['name']}-{place:05}",
        "namespace": set_of["namespace"],
        "uid": f"aaaaaaaa-0000-0000-0000-{place:012}",
        "resourceVersion": str(place),
        "labels": {"app": f"model-{place // PODS_OF_OWNER}", "pod-template-hash": "6664c96cd5"},
        "annotations": {"kubectl.kubernetes.io/restartedAt": since},
        "ownerReferences": [_reference("apps/v1", "ReplicaSet", set_of)],
    }
    told = [{**item, "lastTransitionTime": since} for item in (*conditions, *([idle] * gpu))]
    return {
        "metadata": about,
        "spec": {**_spec(gpu=gpu), "nodeName": f"node-{place % nodes}"},
        "status": {"phase": "Running", "conditions": told},
    }


def _row(place: int) -> PodRow:
    """Make what an agent sees of a pod: within its limit, and busy."""
    set_of = _about(place // PODS_OF_OWNER, "ReplicaSet")
    uid = f"aaaaaaaa-0000-0000-0000-{place:012}"
    busy = ActivityRow("busy", 0.0, "Busy")
    use = UseRow("GPU-" + "a" * 36, 3 * GIB, 4 * GIB, 3 * GIB, "within", activity=busy)
    return PodRow(
        uid,
        set_of["namespace"],
        f"{set_of['name']}-{place:05}",
        "observe",
        f"ReplicaSet/{set_of['name']}",
        uses=(use._replace(processes=(ProcessRow(place + 1, 3 * GIB, "server"),)),),
        activity=PodActivityRow("busy", 0.0, "Busy", busy_share=0.5),
    )


def _node(place: int) -> JsonObject:
    labels = {"nvidia.com/gpu.product": CARD.model, "kubernetes.io/hostname": f"node-{place}"}
    offered = {"cpu": "96", "memory": "900Gi", names.NVIDIA_GPU: str(PODS_OF_NODE), "pods": "110"}
    return {
        "metadata": {"name": f"node-{place}", "labels": labels, "resourceVersion": "1"},
        "status": {"allocatable": offered, "capacity": offered},
    }


def _namespace(place: int) -> JsonObject:
    labels = {names.MODE: "observe", names.IDLE: "report"}
    return {"metadata": {"name": f"team-{place}", "labels": labels, "resourceVersion": "1"}}


def _need(need: NodeNeed) -> JsonObject:
    name = need_configmap(need.node)
    return {
        "metadata": {"name": name, "uid": f"{name:u<36}", "resourceVersion": "77"},
        "data": {names.NEED_KEY: write_need(need)},
    }


def _profiles(remembered: list[NodeNeed]) -> Iterator[JsonObject]:
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for place, owner in enumerate(merged(remembered)):
        said = summarise(owner, CARD)
        assert said is not None
        conditions = [
            {
                "type": item.type,
                "status": str(item.holds),
                "reason": item.reason,
                "message": item.message,
                "lastTransitionTime": since,
                "observedGeneration": 1,
            }
            for item in conditions_of([said])
        ]
        key = owner.key
        target = {"kind": key.kind, "name": key.name}
        yield {
            "metadata": {
                "name": profile_name(key.kind, key.name),
                "namespace": key.namespace,
                "uid": f"bbbbbbbb-0000-0000-0000-{place:012}",
                "resourceVersion": str(2 * 10**6 + place),
                "generation": 1,
                "labels": {names.MANAGED_BY: names.CONTROLLER},
            },
            "spec": {"targetRef": target, "apply": "Never", "margin": "15%"},
            "status": {**write_status([said], 1), "conditions": conditions},
        }


def main() -> None:
    words = sys.argv[1:]
    gpu_pods, profiles = (int(text) for text in (words + ["10000", "5000"][len(words) :])[:2])
    there = Collections(gpu_pods, profiles)
    server = serve(there)
    url = f"http://127.0.0.1:{server.server_port}"
    port = free_port()
    with TemporaryDirectory() as folder:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "GPUFENCE_STATUS_LISTEN": f"127.0.0.1:{port}",
            "GPUFENCE_PROFILE_SECONDS": "2",
            "GPUFENCE_PROFILE_WRITES": "1000",
            "GPUFENCE_LOG_LEVEL": "warning",
            "GPUFENCE_AGENTS": ",".join(f"node-{n}={url}/node-{n}" for n in range(there.nodes)),
            **{key: text for key, text in os.environ.items() if key.startswith("MALLOC_")},
        }
        command = [sys.executable, "-c", IN_POD, url]
        print(f"{PODS} pods, {gpu_pods} of them with GPUs, {profiles} profiles")
        with subprocess.Popen(command, env=environment) as process:
            try:
                _wait_for_all(port, profiles)
                ends = time.monotonic() + SECONDS
                while time.monotonic() < ends:
                    before = cpu_seconds(process.pid)
                    time.sleep(STEP_SECONDS)
                    held, peak = memory_mib(process.pid)
                    core = (cpu_seconds(process.pid) - before) / STEP_SECONDS
                    print(
                        f"  holds {held:.1f} MiB, at most {peak:.1f} MiB, {core:.1%} of a core",
                        flush=True,
                    )
                for line in _told(port):
                    print(f"  {line}")
            finally:
                process.terminate()


def _wait_for_all(port: int, profiles: int) -> None:
    wanted = {f"{_PREFIX}pods {PODS}", f"{_PREFIX}needs {NODES}", f"{_PREFIX}profiles {profiles}"}

    def seen() -> bool:
        try:
            return wanted <= set(_told(port))
        except OSError:
            return False

    wait_until(seen, "not everything is in view", PATIENCE_SECONDS)


def _told(port: int) -> list[str]:
    """Return the metrics by which one sees that it knows everything and has nothing to write."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return [line for line in lines if line.startswith(_SHOWN)]


if __name__ == "__main__":
    main()
