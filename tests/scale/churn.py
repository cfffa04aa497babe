"""
`python -m tests.scale.churn KUBECONFIG NODES RATE`: pods come and go as in a cluster that works.

Each is created, bound, said to run, and taken away when its time is over, by a scheduler and a
kubelet that are played here. Ended by SIGTERM, it prints what it did, in milliseconds.
"""

import json
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from kube import Client, ClientSettings, KubeError, PatchType, connect, core
from tests.scale import objects, size

_THREADS: Final = 16
_LIFE_SECONDS: Final = 20.0
_ADDRESS: Final = "10.1.2.3"
_PODS: Final = core("namespaces", size.CHURN, "pods")


@dataclass
class Record:
    """How long requests took, and what went wrong."""

    creates: list[float] = field(default_factory=list)
    bindings: list[float] = field(default_factory=list)
    deleted: int = 0
    late: int = 0
    failures: list[str] = field(default_factory=list)


class Churn:
    """Begins a pod at each beat; who is late begins the next ones at once."""

    def __init__(self, client: Client, nodes: int, rate: float) -> None:
        self._client = client
        self._nodes = nodes
        self._pause = 1 / rate
        self._over = threading.Event()
        self._living: deque[tuple[float, str]] = deque()
        self.record = Record()

    def end(self, *_: object) -> None:
        self._over.set()

    def run(self) -> None:
        """Go on until ended."""
        began = time.monotonic()
        with ThreadPoolExecutor(_THREADS) as pool:
            for number in count():
                at = began + number * self._pause
                self.record.late += time.monotonic() - at > 1
                if self._over.wait(max(0.0, at - time.monotonic())):
                    return
                pool.submit(self._tried, self._come, number)
                while self._living and self._living[0][0] < time.monotonic():
                    pool.submit(self._tried, self._go, self._living.popleft()[1])

    def _tried(self, do: Callable[[Any], None], about: object) -> None:
        try:
            do(about)
        except (KubeError, OSError) as error:
            self.record.failures.append(str(error)[:200])

    def _come(self, number: int) -> None:
        name = f"job-{number:08}"
        began = time.perf_counter()
        made = self._client.post(_PODS, objects.asked(size.CHURN, name))
        created = time.perf_counter()
        node = {"apiVersion": "v1", "kind": "Node", "name": size.node_name(self._node(number))}
        metadata = {"name": name, "namespace": size.CHURN, "uid": made["metadata"]["uid"]}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": node}
        self._client.post(f"{_PODS}/{name}/binding", body)
        bound = time.perf_counter()
        status = {"status": objects.running(_ADDRESS)}
        self._client.patch(f"{_PODS}/{name}/status", status, PatchType.MERGE)
        self.record.creates.append((created - began) * 1000)
        self.record.bindings.append((bound - created) * 1000)
        self._living.append((time.monotonic() + _LIFE_SECONDS, name))

    def _node(self, number: int) -> int:
        """Choose nodes in turn, but leave the first one at rest, where an agent is watched."""
        return 1 + number % (self._nodes - 1) if self._nodes > 1 else 0

    def _go(self, name: str) -> None:
        self._client.delete(f"{_PODS}/{name}", {"gracePeriodSeconds": 0})
        self.record.deleted += 1


def main(kubeconfig: str, nodes: str, rate: str) -> None:
    settings = ClientSettings(kubeconfig=kubeconfig, pool_connections=_THREADS)
    with connect(settings) as client:
        churn = Churn(client, int(nodes), float(rate))
        signal.signal(signal.SIGTERM, churn.end)
        churn.run()
        json.dump(vars(churn.record), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
