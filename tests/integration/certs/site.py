"""A cluster with the manifests of the certificates, and programs that run against it."""

import base64
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from certs.bundle import Bundle, read_bundle
from certs.facts import look_at
from certs.material import KeyPair, ServiceNames, Stored
from gpufence.names import (
    CA_SECRET,
    CERTS_INSTALL,
    TLS_SECRET,
    WEBHOOK_CONFIGURATION,
    WEBHOOK_SERVICE,
)
from kube import PatchType, core, group
from simulator.controlplane import ControlPlane
from tests.support import tree
from tests.support.etcd import full
from tests.support.servers import Exchange, HttpServer
from tests.support.site import CERTS, PATIENCE_SECONDS, RIGHTS, PlaneSite

WRITES = frozenset({"POST", "PATCH", "PUT", "DELETE"})


class Proxy(HttpServer):
    """
    Forwards plain HTTP on loopback to the API server, as the holder of a token.

    `after_write` is called with the number of each write once it is done, before it is answered; if
    it returns True the connection ends without an answer.
    """

    def __init__(
        self, server: str, trust: ssl.SSLContext, token: str, after_write: Callable[[int], bool]
    ) -> None:
        super().__init__()
        self._upstream = urlsplit(server)
        self._trust = trust
        self._token = token
        self.writes: list[str] = []
        self._after_write = after_write
        self._lock = threading.Lock()

    def _is_last(self, method: str, path: str, status: int) -> bool:
        """Count what was written; return whether the one who wrote is to hear nothing of it."""
        if method not in WRITES or status >= http.client.BAD_REQUEST:
            return False
        with self._lock:
            self.writes.append(path.rpartition("/")[2])
            return self._after_write(len(self.writes))

    def handle(self, exchange: Exchange) -> None:
        kept = ("Content-Type", "Accept")
        headers = {name: exchange.headers[name] for name in kept if exchange.headers[name]}
        headers["Authorization"] = f"Bearer {self._token}"
        upstream = http.client.HTTPSConnection(
            str(self._upstream.hostname), self._upstream.port, context=self._trust, timeout=30
        )
        try:
            upstream.request(exchange.command, exchange.path, exchange.body or None, headers)
            response = upstream.getresponse()
            content = response.read()
        finally:
            upstream.close()
        if self._is_last(exchange.command, exchange.path, response.status):
            exchange.close_connection = True
            return
        kind = {"Content-Type": response.headers["Content-Type"]}
        exchange.answer(response.status, content, kind)


LOOPBACK = "127.0.0.1"
CONFIGURATION = group(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", WEBHOOK_CONFIGURATION
)
PROGRAM = """
import runpy, sys, time
off, right = float(sys.argv.pop(1)), time.time
time.time = lambda: right() + off
runpy.run_module("certs", run_name="__main__", alter_sys=True)
"""


class CertsSite(PlaneSite):
    """The manifests in a namespace of its own; the program runs with the rights they grant."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        super().__init__(plane, namespace)
        self.folder = folder
        self.names = ServiceNames(WEBHOOK_SERVICE, namespace, (LOOPBACK,))
        self._kubeconfigs = 0

    def install(self) -> None:
        """Apply the manifests, with a URL of this machine in place of the Service, and patience."""
        item = tree.found("MutatingWebhookConfiguration", WEBHOOK_CONFIGURATION)
        for hook in item["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {"url": f"https://{LOOPBACK}:9{path}"}
            hook["timeoutSeconds"] = 30  # what a busy machine takes is not what is lost here
        self.apply(*self.shipped("certs", RIGHTS | {"Secret"}), item)
        self.token = self.plane.service_account_token(self.system, CERTS_INSTALL)
        self.kubeconfig_of_install = self.kubeconfig_of(CERTS_INSTALL, self.token)
        self.token_of_daily = self.plane.service_account_token(self.system, CERTS)
        self.kubeconfig_of_daily = self.kubeconfig_of(CERTS, self.token_of_daily)

    def aim(self, host: str, port: int) -> None:
        """Let the API server find the webhook on a port of this machine; bundles stay."""
        hooks = self.admin.get(CONFIGURATION)["webhooks"]
        changes = [
            {
                "op": "replace",
                "path": f"/webhooks/{at}/clientConfig/url",
                "value": f"https://{host}:{port}{urlsplit(hook['clientConfig']['url']).path}",
            }
            for at, hook in enumerate(hooks)
        ]
        self.admin.patch(CONFIGURATION, changes)

    def remove(self) -> None:
        self.drop(CONFIGURATION)

    def start(
        self, *arguments: str, kubeconfig: Path | None = None, off: float = 0.0, **settings: str
    ) -> subprocess.Popen[str]:
        """
        Start the program as a pod of the manifests would: `renew` runs daily, others install.

        `off` is by how many seconds the clock of its node is wrong.
        """
        daily = arguments[0] == "renew"
        own = self.kubeconfig_of_daily if daily else self.kubeconfig_of_install
        environment = {
            **{key: text for key, text in os.environ.items() if key.startswith("COVERAGE_")},
            "PATH": os.environ["PATH"],
            "KUBECONFIG": str(kubeconfig or own),
            "GPUFENCE_NAMESPACE": self.system,
            "GPUFENCE_CERTS_ADDRESSES": LOOPBACK,
            "GPUFENCE_CERTS_SETTLE_SECONDS": "0.5",
            "GPUFENCE_CERTS_WAIT_SECONDS": "20",
            **settings,
        }
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(off), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, code: int = 0, **given: Any) -> str:
        """Run the program to its end and return what it said."""
        process = self.start(*arguments, **given)
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert code == process.returncode, said
        return said

    def run_and_kill(self, write: int, *arguments: str, off: float = 0.0) -> list[str]:
        """
        Run the program and kill it right after its n-th write was carried out; a number that it
        never reaches lets it end. Return what it wrote.
        """
        processes: list[subprocess.Popen[str]] = []

        def after(number: int) -> bool:
            if number == write:
                processes[0].send_signal(signal.SIGKILL)
            return number == write

        with self._through_a_proxy(after, *arguments, off=off) as (process, writes):
            processes.append(process)
            said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        killed = len(writes) == write
        assert (-signal.SIGKILL if killed else 0) == process.returncode, said
        return writes

    def run_and_fill(self, write: int, *arguments: str, code: int = 1) -> tuple[list[str], str]:
        """
        Run the program, whose API server can store nothing after its n-th write, nor from the
        beginning if that is 0. Return what it wrote and what it said.
        """
        with ExitStack() as undo:

            def after(number: int) -> bool:
                if number == write:
                    undo.enter_context(full(self.plane.folder))
                return False

            after(0)
            with self._through_a_proxy(after, *arguments) as (process, writes):
                said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert code == process.returncode, said
        return writes, said

    def secret(self, name: str) -> dict[str, bytes]:
        item = self.admin.get(self.path(name))
        return {key: base64.b64decode(text) for key, text in (item.get("data") or {}).items()}

    def put(self, name: str, **data: bytes | None) -> None:
        """Let somebody else write or remove keys of a Secret; underscores stand for dots."""
        changed = {
            key.replace("_", "."): None if value is None else base64.b64encode(value).decode()
            for key, value in data.items()
        }
        self.admin.patch(self.path(name), {"data": changed}, PatchType.MERGE)

    def path(self, name: str) -> str:
        return core("namespaces", self.system, "secrets", name)

    def authority(self) -> KeyPair:
        data = self.secret(CA_SECRET)
        return KeyPair(data.get("tls.crt", b""), data.get("tls.key", b""))

    def leaf(self) -> KeyPair:
        data = self.secret(TLS_SECRET)
        return KeyPair(data.get("tls.crt", b""), data.get("tls.key", b""))

    def stored(self) -> Stored:
        return look_at(self.authority(), self.leaf(), self.secret(TLS_SECRET).get("ca.crt", b""))

    def bundles(self) -> list[Bundle]:
        hooks = self.admin.get(CONFIGURATION)["webhooks"]
        return [
            read_bundle(base64.b64decode(hook["clientConfig"].get("caBundle", "")))
            for hook in hooks
        ]

    def wipe_bundles(self) -> None:
        """Let somebody apply the webhook configuration as it was before anything was trusted."""
        hooks = self.admin.get(CONFIGURATION)["webhooks"]
        paths = [f"/webhooks/{at}/clientConfig/caBundle" for at in range(len(hooks))]
        changes = [{"op": "add", "path": path, "value": ""} for path in paths]
        self.admin.patch(CONFIGURATION, changes)

    def versions(self) -> list[str]:
        """Return the versions of all three objects: they change with every write."""
        paths = (self.path(CA_SECRET), self.path(TLS_SECRET), CONFIGURATION)
        return [str(self.admin.get(path)["metadata"]["resourceVersion"]) for path in paths]

    @contextmanager
    def _through_a_proxy(
        self, after: Callable[[int], bool], *arguments: str, off: float = 0.0
    ) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
        """Run the program by way of a proxy; yield it and the writes that were carried out."""
        token = self.token_of_daily if arguments[0] == "renew" else self.token
        trust = ssl.create_default_context(cafile=self.plane.ca_file)
        with Proxy(self.plane.url, trust, token, after) as proxy:
            yield self.start(*arguments, kubeconfig=self._to(proxy), off=off), proxy.writes

    def _to(self, proxy: Proxy) -> Path:
        self._kubeconfigs += 1
        path = self.folder / f"proxy-{self._kubeconfigs}.kubeconfig"
        named = {"name": "proxy"}
        said = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [{**named, "cluster": {"server": proxy.url}}],
            "users": [{**named, "user": {}}],
            "contexts": [{**named, "context": {"cluster": "proxy", "user": "proxy"}}],
        }
        path.write_text(json.dumps(said), encoding="utf-8")
        return path
