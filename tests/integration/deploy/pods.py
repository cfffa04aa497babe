"""What a kubelet does with pods that end by themselves: Jobs of certificates, and Helm's tests."""

import subprocess
from contextlib import suppress
from uuid import uuid4

from gpufence import names
from kube import ClientSettings, JsonObject, KubeError, PatchType, connect, core
from simulator.controlplane import ControlPlane
from tests.support.site import run
from tests.support.threads import Beside

ACCOUNTS = frozenset({"gpufence-certs", names.CERTS_INSTALL, "gpufence-doctor"})


class Kubelet(Beside):
    """Runs each pod of these accounts once, with that account's rights, and reports its end."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._plane = plane
        self.done: dict[str, subprocess.CompletedProcess[str]] = {}
        self._seen: set[str] = set()

    def run(self) -> None:
        with connect(ClientSettings(kubeconfig=str(self._plane.kubeconfig()))) as client:
            while not self.over.wait(0.1):
                for pod in client.list(core("pods")).items:
                    if self._is_new(pod):
                        self._seen.add(pod["metadata"]["uid"])
                        phase = self._play(pod)
                        path = core("namespaces", _where(pod), "pods", pod["metadata"]["name"])
                        status = {"status": {"phase": phase}}
                        with suppress(KubeError):  # it may have deleted itself
                            client.patch(f"{path}/status", status, PatchType.MERGE)

    def _is_new(self, pod: JsonObject) -> bool:
        metadata = pod["metadata"]
        return (
            pod["spec"].get("serviceAccountName") in ACCOUNTS
            and pod["status"].get("phase") == "Pending"
            and "deletionTimestamp" not in metadata
            and metadata["uid"] not in self._seen
        )

    def _play(self, pod: JsonObject) -> str:
        account = pod["spec"]["serviceAccountName"]
        token = self._plane.service_account_token(_where(pod), account)
        config = self._plane.token_kubeconfig(f"{account}-{uuid4().hex[:8]}", token)
        (container,) = pod["spec"]["containers"]
        command = (*container["command"], *container.get("args", ()))
        environment = {"KUBECONFIG": str(config), "GPUFENCE_NAMESPACE": _where(pod)}
        self.done[account] = run(command, environment | {"GPUFENCE_CERTS_WAIT_SECONDS": "0"})
        return "Failed" if self.done[account].returncode else "Succeeded"


def _where(pod: JsonObject) -> str:
    return str(pod["metadata"]["namespace"])
