"""Handshakes and pods while certificates change, and a kubelet that hands Secrets out."""

import base64
import itertools
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpufence.names import INJECTED
from kube import Client, KubeError, core
from tests.integration.certs.site import CONFIGURATION, LOOPBACK
from tests.support.objects import gpu_pod
from tests.support.observing import Beside

CALL_SECONDS = 30.0
_BETWEEN_SECONDS = 0.02


class Handshakes(Beside):
    """Reads the bundle, shakes hands under the verified name, and again, until its block ends."""

    def __init__(self, client: Client, port: int, name: str) -> None:
        super().__init__()
        self.made = 0
        self.failed: list[str] = []
        self.leaves: set[bytes | None] = set()
        self._client = client
        self._port = port
        self._name = name

    def run(self) -> None:
        while not self.over.wait(_BETWEEN_SECONDS):
            try:
                for bundle in self._bundles():
                    self.leaves.add(self._shake_hands(bundle))
                    self.made += 1
            except (OSError, ValueError) as error:
                self.failed.append(repr(error))

    def _bundles(self) -> set[str]:
        hooks = self._client.get(CONFIGURATION)["webhooks"]
        return {base64.b64decode(hook["clientConfig"]["caBundle"]).decode() for hook in hooks}

    def _shake_hands(self, bundle: str) -> bytes | None:
        trust = ssl.create_default_context(cadata=bundle)
        trust.verify_flags |= ssl.VERIFY_X509_STRICT
        with (
            socket.create_connection((LOOPBACK, self._port), timeout=CALL_SECONDS) as plain,
            trust.wrap_socket(plain, server_hostname=self._name) as secure,
        ):
            return secure.getpeercert(binary_form=True)


PERIOD_SECONDS = 0.1


class Kubelet(Beside):
    """Projects one Secret into one folder until its block ends."""

    def __init__(self, client: Client, secret: str, folder: Path) -> None:
        super().__init__()
        self._client = client
        self._secret = secret
        self._folder = folder
        self._version = ""
        self._data: Mapping[str, str] = {}

    def run(self) -> None:
        while not self.over.wait(PERIOD_SECONDS):
            item = self._client.get(self._secret)
            data, version = item.get("data") or {}, str(item["metadata"]["resourceVersion"])
            if data != self._data:
                self._data, self._version = data, version
                self._project()

    def _project(self) -> None:
        generation = self._folder / f"..generation_{self._version}"
        generation.mkdir()
        for name, value in self._data.items():
            (generation / name).write_bytes(base64.b64decode(value))
            link = self._folder / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        fresh = self._folder / "..data_tmp"
        fresh.symlink_to(generation.name)
        fresh.rename(self._folder / "..data")


CREATORS = 2
_PAUSE_SECONDS = 0.05


@dataclass
class Count:
    """How many pods were made, which creations failed, and which pods the webhook never saw."""

    made: int = 0
    failed: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


class Load(Beside):
    """Creates pods that the webhook has to see, for as long as its block runs, and deletes them."""

    def __init__(self, client: Client, namespace: str) -> None:
        super().__init__(CREATORS)
        self.count = Count()
        self._client = client
        self._path = core("namespaces", namespace, "pods")
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def run(self) -> None:
        while not self.over.wait(_PAUSE_SECONDS):
            name = f"pod-{next(self._numbers)}"
            try:
                made = self._client.post(self._path, gpu_pod(name))
            except KubeError as error:
                with self._lock:
                    self.count.failed.append(str(error))
                continue
            with self._lock:
                self.count.made += 1
                if INJECTED not in (made["metadata"].get("annotations") or {}):
                    self.count.missed.append(name)
            self._client.delete(f"{self._path}/{name}", {"gracePeriodSeconds": 0})
