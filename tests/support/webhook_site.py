"""A control plane with gpufence's own manifests, and the webhook as a real process."""

import base64
import http.client
import signal
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

from gpufence import names
from kube import PatchType, core, group
from simulator.controlplane import ControlPlane
from tests.support import objects
from tests.support.authority import Authority, write_secret
from tests.support.observing import wait_until
from tests.support.processes import LOOPBACK, PATIENCE_SECONDS, ServingProcess
from tests.support.site import ADMISSION, KINDS, RIGHTS, PlaneSite
from tests.support.tree import found
from webhook.metrics import NODES


class Webhook(ServingProcess):
    """Runs `python -m webhook` on free ports; use it as a context manager."""

    def __init__(self, tls_dir: Path, trust: ssl.SSLContext, **settings: str) -> None:
        self.trust = trust
        environment = {
            "HOME": str(tls_dir),
            "GPUFENCE_LISTEN": f"{LOOPBACK}:0",
            "GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0",
            "GPUFENCE_TLS_DIR": str(tls_dir),
            "GPUFENCE_CLUSTER": "none",
            "GPUFENCE_DEFAULT_CARD": "15360Mi",
            "GPUFENCE_DRAIN_SECONDS": "0",
            **settings,
        }
        super().__init__(("webhook",), environment)

    @property
    def port(self) -> int:
        return self.port_of("listen")

    @property
    def status_port(self) -> int:
        return self.port_of("statusListen")

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}"

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def connect(self, trust: ssl.SSLContext | None = None) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            LOOPBACK, self.port, context=trust or self.trust, timeout=PATIENCE_SECONDS
        )

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a body on a connection of its own."""
        connection = self.connect()
        try:
            return ask(connection, "POST", path, body)
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, str]:
        """Ask the status port."""
        connection = http.client.HTTPConnection(
            LOOPBACK, self.status_port, timeout=PATIENCE_SECONDS
        )
        try:
            status, body = ask(connection, "GET", path)
            return status, body.decode()
        finally:
            connection.close()

    def calls(self) -> float:
        """Count the reviews that were answered."""
        return self.metric("gpufence_webhook_requests_total")

    def metric(self, start: str) -> float:
        """Add up the lines of /metrics that begin so."""
        _, page = self.get("/metrics")
        return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(start))


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes]:
    connection.request(method, path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


HOOK_SECONDS = 30  # the longest there is: on a busy machine the shipped 1 and 3 s can be too short
FAIL_OPEN = "apiserver_admission_webhook_fail_open_count"
APPLIED = RIGHTS | KINDS.keys()
CONFIGURATION = group(ADMISSION, "mutatingwebhookconfigurations", names.WEBHOOK_CONFIGURATION)


class WebhookSite(PlaneSite):
    """One control plane with gpufence's objects on it."""

    def __init__(
        self, plane: ControlPlane, authority: Authority, folder: Path, *, full: bool = False
    ) -> None:
        super().__init__(plane)
        self._full = full
        self.authority = authority
        self.tls_dir = folder

    def install(self) -> None:
        """Apply everything but the hooks and the workload."""
        self.apply(objects.namespace(self.system, None), *self.shipped("webhook", APPLIED))
        write_secret(self.tls_dir, self.authority.leaf(), 0)

    def remove(self) -> None:
        """Take away what would reach into other tests."""
        self.drop(CONFIGURATION)
        for kind in KINDS.values():
            for name in ("mode", "undeclared", "frozen-annotations", "bindings", "pod-growth"):
                self.admin.delete(group(ADMISSION, kind, f"gpufence-{name}"))

    def webhook(self, **settings: str) -> Webhook:
        """Start a webhook with the rights of its own ServiceAccount."""
        usual = {
            "GPUFENCE_CLUSTER": "auto",
            "GPUFENCE_DEFAULT_CARD": "",
            "GPUFENCE_API_DEADLINE_SECONDS": f"{HOOK_SECONDS - 5}",
            "KUBECONFIG": str(self.kubeconfig_of(names.WEBHOOK_SERVICE)),
        }
        return Webhook(self.tls_dir, self.authority.client_context(), **(usual | settings))

    @contextmanager
    def calling(
        self, port: int, calls: Callable[[], float], *, patiently: bool = True
    ) -> Iterator[None]:
        """
        Let the API server call a port of this machine, from when it surely does to the block's end.

        Unless it is to wait `patiently`, it waits as long as the manifests say.
        """
        self.apply(configuration(port, self.authority, HOOK_SECONDS if patiently else None))
        try:
            self.wait_for_hooks(calls)
            yield
        finally:
            self.drop(CONFIGURATION)

    def wait_for_hooks(self, called: Callable[[], float], mode: str = "cap") -> None:
        """Make pods in earnest of nothing until a count goes up: the API server knows the hooks."""
        before = called()
        with self.namespace(mode) as name:
            wait_until(lambda: self._dry_run(name) and called() > before)

    @contextmanager
    def namespace(self, mode: str | None = None, **annotations: str) -> Iterator[str]:
        """Lend a namespace once pods can be made in it."""
        with super().namespace(mode, **annotations) as name:
            if self._full:
                account = core("namespaces", name, "serviceaccounts", "default")
                wait_until(lambda: self.exists(account))
            yield name

    def create(
        self, namespace: str, item: dict[str, Any], *, dry_run: bool = False
    ) -> dict[str, Any]:
        query: Mapping[str, str] = {"dryRun": "All"} if dry_run else {}
        return self.admin.post(core("namespaces", namespace, "pods"), item, query)

    def bind(
        self,
        namespace: str,
        pod: dict[str, Any],
        node: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Bind as a scheduler does, some of which put annotations on their Bindings."""
        metadata = pod["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": metadata["name"],
                "namespace": namespace,
                "uid": metadata["uid"],
                "annotations": dict(annotations or {}),
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self.admin.post(core("namespaces", namespace, "pods", metadata["name"], "binding"), body)

    @contextmanager
    def gpu_node(self, name: str, units: int, labels: Mapping[str, str]) -> Iterator[str]:
        """Lend a node that nobody runs on."""
        item = objects.node(name)
        item["metadata"]["labels"] |= labels
        self.admin.post(core("nodes"), item)
        self.admin.patch(
            core("nodes", name, "status"), {"status": objects.capacity(units)}, PatchType.MERGE
        )
        try:
            yield name
        finally:
            self.admin.delete(core("nodes", name))

    @contextmanager
    def known_nodes(
        self, webhook: Webhook, *nodes: tuple[str, int, Mapping[str, str]]
    ) -> Iterator[None]:
        """Lend nodes once the webhook knows them; others may have left theirs before."""
        wait_until(lambda: webhook.get("/readyz")[0] == HTTPStatus.OK)
        before = webhook.metric(NODES)
        with ExitStack() as undo:
            for node in nodes:
                undo.enter_context(self.gpu_node(*node))
            wait_until(lambda: webhook.metric(NODES) >= before + len(nodes))
            yield

    def fail_opens(self) -> float:
        """Count how often the API server went on without an answer of ours."""
        page = self.plane.kubectl("get", "--raw", "/metrics").stdout
        lines = [line for line in page.splitlines() if line.startswith(FAIL_OPEN)]
        return sum(float(line.split()[-1]) for line in lines if "pods.gpufence.io" in line)

    def _dry_run(self, namespace: str) -> bool:
        self.create(namespace, objects.gpu_pod(f"probe-{uuid4().hex[:8]}"), dry_run=True)
        return True


def configuration(port: int, authority: Authority, seconds: int | None = None) -> dict[str, Any]:
    """Return the shipped webhook configuration with a URL for the Service, and maybe a timeout."""
    item = found("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION)
    for hook in item["webhooks"]:
        path = hook["clientConfig"]["service"]["path"]
        hook["clientConfig"] = {
            "url": f"https://127.0.0.1:{port}{path}",
            "caBundle": base64.b64encode(authority.pem).decode(),
        }
        hook["timeoutSeconds"] = seconds or hook["timeoutSeconds"]
    return item


def annotations_of(item: Mapping[str, Any]) -> dict[str, str]:
    return dict(item["metadata"].get("annotations") or {})


def environment(item: Mapping[str, Any]) -> dict[str, str]:
    """Resolve the first container's variables as a kubelet would, through the pod's annotations."""
    said = annotations_of(item)
    values = {}
    for entry in item["spec"]["containers"][0].get("env", []):
        if "value" in entry:
            values[entry["name"]] = entry["value"]
        else:
            path = entry["valueFrom"]["fieldRef"]["fieldPath"]
            key = path.removeprefix("metadata.annotations['").removesuffix("']")
            values[entry["name"]] = said.get(key, "")
    return values
