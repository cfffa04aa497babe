"""A desk: a scripted API server, a kubeconfig for it, and the plugin run in this process."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpufence.snapshot import write_snapshot
from kube import JsonObject
from kubectl_gpufence.__main__ import run
from kubectl_gpufence.output import Output
from kubectl_gpufence.verbs import parse
from kubectl_gpufence.view import Display
from tests.support.api_server import Answer, ApiServer, refusal, reply
from tests.support.plugin import NODE, raw_node, raw_pod, snapshot

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

    def get(self, path: str, answer: Answer) -> None:
        self.server.on(f"GET {path}", answer)

    def run(
        self, *arguments: str, out: io.StringIO | None = None, err: io.StringIO | None = None
    ) -> Said:
        """Run the plugin; errors that end it are the caller's to expect."""
        out, err = out or io.StringIO(), err or io.StringIO()
        verb, *rest = arguments
        call = parse([verb, "--request-timeout", "2s", *rest])
        code = run(call, self.environ, Output(out, err, Display(width=100)))
        return Said(code, out.getvalue(), err.getvalue())


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
