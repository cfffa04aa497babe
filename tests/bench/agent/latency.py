"""How soon a pod goes whose hold has passed, on a real API server."""

import random
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpufence.quantity import GIB, MIB
from kube import ChangeType, Client, JsonObject, Reflector, Source, as_is, core
from tests.bench.agent.machine import CARDS, EVICTING, NODE, Machine, machine
from tests.support.agent.node_site import AgentProcess
from tests.support.observing import Figure, at_most, eventually, percentile

ROUNDS = 25
INTERVAL_SECONDS = 1.0
HOLD_SECONDS = 1.0
ALLOWED_SECONDS = 0.2
ACCEPTED_SECONDS = 0.5
SETTLE_SECONDS = (3 * INTERVAL_SECONDS, 7 * INTERVAL_SECONDS)
PATIENCE_SECONDS = 60.0
SETTINGS = {
    "GPUFENCE_INTERVAL_SECONDS": f"{INTERVAL_SECONDS}",
    "GPUFENCE_LIST_SECONDS": "10",
    "GPUFENCE_HOLD_SECONDS": f"{HOLD_SECONDS}",
    "GPUFENCE_GRACE_SECONDS": "0",
    "GPUFENCE_START_PAUSE_SECONDS": "0",
}


class Watcher:
    """Knows when the API server began to let a pod go."""

    def __init__(self, client: Client) -> None:
        self._seen: dict[str, float] = {}
        self._changed = threading.Condition()
        query = {"fieldSelector": f"spec.nodeName={NODE}"}
        source: Source[JsonObject] = Source(
            path=core("namespaces", EVICTING, "pods"), keep=as_is, query=query
        )
        self.reflector = Reflector(client, source, self)

    def replace(self, objects: Sequence[JsonObject]) -> None:
        for item in objects:
            self._note(item)

    def apply(self, change: ChangeType, item: JsonObject) -> None:
        del change
        self._note(item)

    def wait_for(self, uid: str) -> float:
        with self._changed:
            if not self._changed.wait_for(lambda: uid in self._seen, PATIENCE_SECONDS):
                raise RuntimeError(f"pod {uid} was not evicted in {PATIENCE_SECONDS:.0f} s")
            return self._seen[uid]

    def _note(self, item: JsonObject) -> None:
        if item["metadata"].get("deletionTimestamp"):
            with self._changed:
                self._seen.setdefault(item["metadata"]["uid"], time.monotonic())
                self._changed.notify_all()


def measure() -> list[Figure]:
    """Let a pod on each card go over its limit, again and again, each card in its own time."""
    with tempfile.TemporaryDirectory() as folder, machine(Path(folder)) as node:
        watcher = Watcher(node.client)
        watcher.reflector.start()
        with node.agent(**SETTINGS) as agent, ThreadPoolExecutor(CARDS) as cards:
            each = cards.map(lambda card: _violations(node, watcher, card), range(CARDS))
            taken = [seconds for of_card in each for seconds in of_card]
            told = eventually(lambda: len(_told(agent)) >= len(taken))
            own = _told(agent)
        watcher.reflector.stop()
    if not told:
        raise RuntimeError(f"{len(own)} of {len(taken)} evictions were told")
    seen = [seconds - HOLD_SECONDS for seconds in taken]
    one_interval = INTERVAL_SECONDS + ALLOWED_SECONDS
    return [
        Figure(f"hold passed -> accepted, of {len(own)}, p50", percentile(own, 50), "s"),
        at_most("  p99", percentile(own, 99), "s", ACCEPTED_SECONDS),
        Figure("over the limit -> seen to go, less the hold, p50", percentile(seen, 50), "s"),
        at_most("  p99", percentile(seen, 99), "s", one_interval + INTERVAL_SECONDS),
    ]


def _told(agent: AgentProcess) -> list[float]:
    """Read from the log how long after its hold each accepted eviction was accepted."""
    return [
        float(line["over_seconds"]) - HOLD_SECONDS + float(line["seconds"])
        for line in agent.lines
        if line.get("result") == "accepted" and "over_seconds" in line
    ]


def _violations(node: Machine, watcher: Watcher, card: int) -> list[float]:
    dice = random.Random(card)
    return [
        _violate(node, watcher, card, f"pod-{card}-{number}", dice.uniform(*SETTLE_SECONDS))
        for number in range(ROUNDS)
    ]


def _violate(node: Machine, watcher: Watcher, card: int, name: str, after: float) -> float:
    """Return how long after it took too much a pod was on its way out."""
    with _LOCK:
        tenant = node.admit(name)
        holding = node.start(tenant, card, 100 * MIB)
        node.show()
    time.sleep(after)
    began = time.monotonic()
    holding.resize(2 * GIB)
    seconds = watcher.wait_for(tenant.uid) - began
    with _LOCK:
        node.dismiss(tenant)
        node.show()
    return seconds


_LOCK = threading.Lock()
