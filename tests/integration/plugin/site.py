"""A control plane with a GPU node, its agent's stand-in, and pods that bear the webhook's plans."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any

from gpufence import names
from kube import ConflictError, JsonObject, PatchType, core
from kubectl_gpufence.__main__ import run as run_verb
from kubectl_gpufence.output import ended, output_to
from kubectl_gpufence.verbs import parse
from simulator.controlplane import ControlPlane, User
from tests.support import objects
from tests.support.observing import wait_until
from tests.support.plugin import Said
from tests.support.servers import ApiServer
from tests.support.site import PlaneSite, run, surroundings

SYSTEM = core("namespaces", names.SYSTEM_NAMESPACE)
TENANT = User("tenant", "tenants")


class PluginSite(PlaneSite):
    """What a test of this folder stands on."""

    def __init__(
        self,
        plane: ControlPlane,
        standin: ApiServer,
        namespace: str,
        system: str = names.SYSTEM_NAMESPACE,
    ) -> None:
        super().__init__(plane, system)
        self.standin = standin
        self.team = namespace
        self.node = f"node-of-{namespace}"
        self.agent = f"gpufence-agent-{namespace}"
        self.agent_path = core("namespaces", system, "pods", self.agent)

    def install(self, node: JsonObject) -> None:
        """Make the node and a pod that says it is the agent there, at the stand-in's address."""
        with suppress(ConflictError):
            self.admin.post(core("namespaces"), objects.namespace(self.system, None))
        self.admin.post(core("nodes"), node | {"metadata": node["metadata"] | {"name": self.node}})
        made = objects.pod(self.agent)
        made["metadata"]["labels"] = {"app.kubernetes.io/name": "gpufence-agent"}
        port = {"name": "status", "containerPort": self.standin.port}
        made["spec"] = {
            "nodeName": self.node,
            "containers": [{"name": "agent", "image": "none", "ports": [port]}],
        }
        self.admin.post(core("namespaces", self.system, "pods"), made)
        self.report_ready(self.agent_path)

    def remove(self) -> None:
        """Take away what other tests of the session would meet."""
        for path in (self.agent_path, core("nodes", self.node)):
            self.drop(path, {"gracePeriodSeconds": 0})

    def create(self, item: JsonObject) -> JsonObject:
        """Make a pod on the node and have it run there, as a kubelet would say."""
        metadata = {"name": item["metadata"]["name"], "namespace": self.team}
        metadata |= {
            key: item["metadata"][key]
            for key in ("annotations", "ownerReferences")
            if key in item["metadata"]
        }
        spec = item["spec"] | {"nodeName": self.node}
        path = core("namespaces", self.team, "pods")
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        made = self.admin.post(path, body)
        self.report_ready(f"{path}/{metadata['name']}")
        return made

    def report_ready(self, path: str) -> None:
        address = self.standin.address
        status = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": address,
        }
        self.admin.patch(f"{path}/status", {"status": status}, PatchType.MERGE)

    def run(self, *arguments: str, user: str | User = "admin") -> Said:
        """Run the plugin in this process, as somebody; `run_by_kubectl` starts the program."""
        environ = {"KUBECONFIG": str(self.plane.kubeconfig(user))}
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                call = parse([*arguments])
                code = ended(
                    "kubectl gpufence",
                    lambda: run_verb(call, environ, output_to(out, err, environ)),
                )
            except SystemExit as end:
                code = int(str(end.code))
        return Said(code, out.getvalue(), err.getvalue())

    def run_by_kubectl(
        self, *arguments: str, verbs: tuple[str, ...] = ("gpufence",)
    ) -> subprocess.CompletedProcess[str]:
        """Run the plugin as people do: through the real kubectl."""
        command = (str(self.plane.kubectl_path), *verbs, *arguments)
        return run(command, {"KUBECONFIG": str(self.kubeconfig)})

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the plugin, for tests that do not let it end by itself."""
        return subprocess.Popen(
            [sys.executable, "-m", "kubectl_gpufence", *arguments],
            env=surroundings({"KUBECONFIG": str(self.kubeconfig)}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def wait_until_allowed(self, user: User, *question: str) -> None:
        """Wait until the API server has taken up a new binding."""
        config = {"KUBECONFIG": str(self.plane.kubeconfig(user))}

        def allowed() -> bool:
            asked = ("auth", "can-i", *question)
            done = self.plane.kubectl(*asked, check=False, environment=config)
            return done.stdout.strip() == "yes"

        wait_until(allowed, question)

    def json(self, *arguments: str, user: str | User = "admin") -> dict[str, Any]:
        done = self.run(*arguments, "-o", "json", user=user)
        assert 0 == done.code, done.err
        found: dict[str, Any] = done.json
        return found
