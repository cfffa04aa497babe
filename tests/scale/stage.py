"""
The cluster that is played with: a real etcd and API server, filled, with gpufence's own manifests,
and one program that answers for all agents.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kube import core
from simulator.controlplane import Assets, ControlPlane, PlaneOptions
from simulator.progress import Progress
from tests.scale import objects, size
from tests.scale.audit import Audit, Relay
from tests.scale.programs import Access
from tests.scale.seed import sow
from tests.scale.size import Size
from tests.support.authority import Authority
from tests.support.observing import cpu_seconds, memory_mib, processes_naming
from tests.support.servers import own_address
from tests.support.site import RIGHTS
from tests.support.webhook_site import APPLIED, WebhookSite
from tools.manifests import COMPONENTS
from tools.manifests import objects as manifests

_CONTROLLER: Final = "gpufence-controller"
_READY_SECONDS: Final = 600.0  # an API server that comes back has thousands of objects to read
_HEAP_PERCENT: Final = 100  # as Go does by itself: here memory is what there is least of


@dataclass(frozen=True)
class Stage:
    """Where everything is; `bytes_of` is how long objects are in JSON."""

    size: Size
    plane: ControlPlane
    site: WebhookSite
    audit: Audit
    folder: Path
    bytes_of: Mapping[str, int]

    def access(self, account: str, pod: str | None = None, relay: Relay | None = None) -> Access:
        """Return the way of a pod of ours to the API server."""
        token = self.folder / f"{pod or account}.token"
        token.write_text(self._token(account, pod), encoding="utf-8")
        return Access(self.plane.url if relay is None else relay.url, self.plane.ca_file, token)

    def server_mib(self) -> Mapping[str, float]:
        """Return what the API server and etcd hold."""
        return {name: memory_mib(pid)[0] for name, pid in self._servers()}

    def server_cpu(self) -> float:
        """Return the seconds of CPU that both have taken."""
        return sum(cpu_seconds(pid) for _, pid in self._servers())

    def _servers(self) -> list[tuple[str, int]]:
        named = [
            (Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip(), pid)
            for pid in processes_naming(str(self.plane.folder))
        ]
        return sorted(item for item in named if item[0] in {"etcd", "kube-apiserver"})

    def _token(self, account: str, pod: str | None) -> str:
        spec: dict[str, Any] = {"expirationSeconds": 7200}
        if pod is not None:
            made = self.site.admin.get(core("namespaces", self.site.system, "pods", pod))
            bound = {"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": made["metadata"]["uid"]}
            spec["boundObjectRef"] = bound
        path = core("namespaces", self.site.system, "serviceaccounts", account, "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.site.admin.post(path, body)["status"]["token"])


@contextmanager
def staged(folder: Path, wanted: Size, progress: Progress) -> Iterator[Stage]:
    """Start the cluster and fill it."""
    audit = Audit(folder)
    options = PlaneOptions(
        api_options=audit.options,
        heap_percent=_HEAP_PERCENT,
        ready_seconds=_READY_SECONDS,
    )
    authority = Authority()
    tls = folder / "tls"
    tls.mkdir()
    with ExitStack() as undo:
        assets = Assets.from_environment(os.environ)
        plane = undo.enter_context(ControlPlane.start(assets, options, progress))
        site = undo.enter_context(WebhookSite(plane, authority, tls))
        site.install()
        site.apply(
            *site.shipped("agent", APPLIED), *_controller(), objects.namespace(size.CHURN, "cap")
        )
        site.set_policy("evict")
        port = undo.enter_context(_answering(wanted))
        with progress.step(f"filling it: {wanted.nodes:,} nodes, {wanted.pods:,} pods"):
            bytes_of = sow(plane.folder, site.admin, wanted, own_address(), port)
        yield Stage(wanted, plane, site, audit, folder, bytes_of)


def _controller() -> list[dict[str, Any]]:
    kinds = RIGHTS | APPLIED | {"Lease"}
    return [item for item in manifests(COMPONENTS / "idle-release") if item["kind"] in kinds]


@contextmanager
def _answering(wanted: Size) -> Iterator[int]:
    """Play all agents, and return at which port."""
    figures = map(str, (wanted.nodes, wanted.pods, wanted.silent))
    command = (sys.executable, "-m", "tests.scale.agents", own_address(), *figures)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()
