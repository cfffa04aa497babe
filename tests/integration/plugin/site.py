"""
A control plane with a GPU node, its agent's stand-in, and pods that bear the webhook's plans.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpufence import names
from kube import ClientSettings, ConflictError, NotFoundError, PatchType, connect, core
from simulator.controlplane import User
from tests.support.observing import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kube import JsonObject
    from simulator.controlplane import ControlPlane
    from tests.integration.plugin.agents import StandIn

SYSTEM = core("namespaces", names.SYSTEM_NAMESPACE)
PATIENCE_SECONDS = 60.0
TENANT = User("tenant", "tenants")


class Site:
    """
    What a test of this folder stands on.
    """

    def __init__(self, plane: ControlPlane, standin: StandIn, namespace: str) -> None:
        self.plane = plane
        self.standin = standin
        self.namespace = namespace
        self.node = f"node-of-{namespace}"
        self.agent = f"gpufence-agent-{namespace}"
        self.client = connect(ClientSettings(kubeconfig=str(plane.kubeconfig())))

    def install(self, node: JsonObject) -> None:
        """
        Make the node and a pod that says it is the agent there, at the stand-in's address.
        """
        with suppress(ConflictError):
            self.client.post(core("namespaces"), _object("Namespace", names.SYSTEM_NAMESPACE))
        self.client.post(core("nodes"), node | {"metadata": node["metadata"] | {"name": self.node}})
        made = _object("Pod", self.agent)
        made["metadata"]["labels"] = {"app.kubernetes.io/name": "gpufence-agent"}
        port = {"name": "status", "containerPort": self.standin.port}
        made["spec"] = {
            "nodeName": self.node,
            "containers": [{"name": "agent", "image": "none", "ports": [port]}],
        }
        self.client.post(f"{SYSTEM}/pods", made)
        self.report(f"{SYSTEM}/pods/{self.agent}", ready=True)

    def remove(self) -> None:
        """
        Take away what other tests of the session would meet.
        """
        for path in (f"{SYSTEM}/pods/{self.agent}", core("nodes", self.node)):
            with suppress(NotFoundError):
                self.client.delete(path, {"gracePeriodSeconds": 0})
        self.client.close()

    def create(self, item: JsonObject) -> JsonObject:
        """
        Make a pod on the node and have it run there, as a kubelet would say.
        """
        metadata = {"name": item["metadata"]["name"], "namespace": self.namespace}
        metadata["annotations"] = item["metadata"]["annotations"]
        spec = item["spec"] | {"nodeName": self.node}
        path = core("namespaces", self.namespace, "pods")
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        made = self.client.post(path, body)
        self.report(f"{path}/{metadata['name']}", ready=True)
        return made

    def exists(self, path: str) -> bool:
        try:
            self.client.get(path)
        except NotFoundError:
            return False
        return True

    def report(self, path: str, *, ready: bool) -> None:
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        addresses = {
            "podIP": self.standin.address,
            "podIPs": [{"ip": self.standin.address}],
            "hostIP": self.standin.address,
        }
        status = {"phase": "Running", "conditions": [condition], **addresses}
        self.client.patch(f"{path}/status", {"status": status}, PatchType.MERGE)

    def run(self, *arguments: str, user: str | User = "admin") -> subprocess.CompletedProcess[str]:
        """
        Run the plugin as a program of its own.
        """
        return self._run(sys.executable, "-m", "kubectl_gpufence", *arguments, user=user)

    def kubectl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """
        Run the plugin as people do: through the real kubectl.
        """
        return self._run(str(self.plane.kubectl_path), "gpufence", *arguments)

    def _run(self, *command: str, user: str | User = "admin") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self._environment(user),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """
        Start the plugin, for tests that do not let it end by itself.
        """
        return subprocess.Popen(
            [sys.executable, "-m", "kubectl_gpufence", *arguments],
            env=self._environment("admin"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def _environment(self, user: str | User) -> Mapping[str, str]:
        return {
            **os.environ,
            "KUBECONFIG": str(self.plane.kubeconfig(user)),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONIOENCODING": "utf-8",
        }

    def wait_until_allowed(self, user: User, *question: str) -> None:
        """
        Wait until the API server has taken up a new binding.
        """
        config = {"KUBECONFIG": str(self.plane.kubeconfig(user))}

        def allowed() -> bool:
            asked = ("auth", "can-i", *question)
            done = self.plane.kubectl(*asked, check=False, environment=config)
            return done.stdout.strip() == "yes"

        assert eventually(allowed), question

    def json(self, *arguments: str, user: str | User = "admin") -> dict[str, Any]:
        done = self.run(*arguments, "-o", "json", user=user)
        assert 0 == done.returncode, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def _object(kind: str, name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
