"""People who create pods one after the other, and count."""

import itertools
import threading
from dataclasses import dataclass, field

from gpufence.names import INJECTED
from kube import Client, KubeError, core
from tests.support.objects import gpu_pod
from tests.support.threads import Beside

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
