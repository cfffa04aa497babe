"""What a tick costs at the size that is promised, nvitop beside it, and how soon a pod goes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gpufence.quantity import GIB, MIB
from kube import Client, JsonObject, as_is, core
from kube.informers.reflector import Reflector
from kube.watch import ChangeType, Source
from simulator.nvml.build import environment
from tests.bench.agent.machine import CARDS, EVICTING, NODE, Machine, Tenant, crowd, machine
from tests.support.agent.node_site import AgentProcess
from tests.support.observing import (
    MEASURING,
    Figure,
    at_most,
    children_naming,
    cpu_seconds,
    eventually,
    memory_mib,
    percentile,
)

PODS, PER_CARD = 110, 25
TICKS = 3600
FAST_SECONDS = 0.05
BUSY_TICKS = 600
REAL_SECONDS = 60.0
ROUNDS = 200
MOST_TICK_MILLISECONDS = 10.0
MOST_PERCENT = 1.0
MOST_MIB = 80.0
MOST_GROWTH_MIB = 2.0
_TICKS = "gpufence_agent_tick_duration_seconds_count"
_SECONDS = "gpufence_agent_tick_duration_seconds_sum"
_SKIPPED = "gpufence_agent_ticks_skipped_total"


@dataclass(frozen=True)
class Reading:
    """The agent at one moment."""

    at: float
    ticks: float
    tick_seconds: float
    parent_seconds: float
    child_seconds: float
    parent_mib: float
    child_mib: float

    @property
    def mib(self) -> float:
        return self.parent_mib + self.child_mib

    def each(self, before: Reading) -> tuple[float, float, float]:
        """Return parent's and child's CPU and the duration of a tick since, in milliseconds."""
        ticks = self.ticks - before.ticks
        return (
            (self.parent_seconds - before.parent_seconds) / ticks * 1000,
            (self.child_seconds - before.child_seconds) / ticks * 1000,
            (self.tick_seconds - before.tick_seconds) / ticks * 1000,
        )


def measure() -> list[Figure]:
    """Measure an agent at its usual pace, one in a hurry, and one with a suspect on every card."""
    with tempfile.TemporaryDirectory() as folder, machine(Path(folder)) as node:
        tenants = crowd(node, PODS, PER_CARD)
        usual = _usual(node)
        quiet, quiet_ms = _quiet(node)
        busy, busy_ms = _busy(node, tenants)
        peer = _peer(node)
    if peer["processes"] != CARDS * PER_CARD:
        raise RuntimeError(f"nvitop sees {peer['processes']:.0f} processes")
    return [
        *quiet,
        *busy,
        *usual,
        Figure("nvitop, CPU of one look at the same", peer["look"], "ms"),
        Figure("nvitop, CPU of one take_snapshots()", peer["snapshot"], "ms"),
        Figure("tick with all lists / nvitop's look", busy_ms / peer["look"], ""),
        Figure("tick / nvitop's look", quiet_ms / peer["look"], ""),
    ]


def _usual(node: Machine) -> list[Figure]:
    settings = {"GPUFENCE_INTERVAL_SECONDS": "1", "GPUFENCE_LIST_SECONDS": "10"}
    with node.agent(**settings) as agent:
        first = after(agent, 5)
        time.sleep(REAL_SECONDS)
        last = read(agent)
    spent = last.parent_seconds + last.child_seconds - first.parent_seconds - first.child_seconds
    percent = spent / (last.at - first.at) * 100
    return [
        at_most("a core at 1 s, parent and child", percent, "%", MOST_PERCENT),
        at_most("memory, parent and child", last.mib, "MiB", MOST_MIB),
        Figure("  of that: parent", last.parent_mib, "MiB"),
        Figure("  of that: child", last.child_mib, "MiB"),
    ]


def _quiet(node: Machine) -> tuple[list[Figure], float]:
    """Tick as often as can be, with a list for every ten looks as usual, and look at the memory."""
    with node.agent(**hurry(lists=10)) as agent:
        first = after(agent, TICKS // 10)
        last = after(agent, TICKS)
        skipped = agent.metrics()[_SKIPPED]
    parent, child, wall = last.each(first)
    growth = last.mib - first.mib
    budget = MOST_TICK_MILLISECONDS
    return [
        at_most("tick, CPU of parent and child", parent + child, "ms", budget),
        Figure("  of that: parent", parent, "ms"),
        Figure("  of that: child", child, "ms"),
        Figure("  from look to verdicts", wall, "ms"),
        at_most(
            f"more memory after {TICKS:,} ticks than after {TICKS // 10}",
            growth,
            "MiB",
            MOST_GROWTH_MIB,
        ),
        Figure("  ticks left out on the way", skipped, ""),
    ], parent + child


def _busy(node: Machine, tenants: list[Tenant]) -> tuple[list[Figure], float]:
    """Put a pod over its limit on every card, where none is evicted: lists every tick."""
    for tenant in tenants[:CARDS]:
        tenant.holdings[0].resize(3 * GIB)
    with node.agent(**hurry(lists=10)) as agent:
        first = after(agent, BUSY_TICKS // 10)
        last = after(agent, BUSY_TICKS)
    parent, child, wall = last.each(first)
    budget = MOST_TICK_MILLISECONDS
    return [
        at_most("tick, a suspect on each card", parent + child, "ms", budget),
        Figure("  of that: parent", parent, "ms"),
        Figure("  of that: child", child, "ms"),
        Figure("  from look to verdicts", wall, "ms"),
    ], parent + child


def hurry(lists: int) -> dict[str, str]:
    return {
        "GPUFENCE_INTERVAL_SECONDS": f"{FAST_SECONDS}",
        "GPUFENCE_LIST_SECONDS": f"{FAST_SECONDS * lists}",
    }


def after(agent: AgentProcess, ticks: int) -> Reading:
    """Wait until the agent has done so many ticks."""
    deadline = time.monotonic() + 600
    while (reading := read(agent)).ticks < ticks:
        if time.monotonic() > deadline or agent.process.poll() is not None:
            raise RuntimeError(f"{reading.ticks} ticks only: {agent.lines[-5:]}")
        time.sleep(0.5)
    return reading


def read(agent: AgentProcess) -> Reading:
    found = agent.metrics()
    parent = agent.process.pid
    children = children_naming(parent, MEASURING)
    return Reading(
        at=time.monotonic(),
        ticks=found[_TICKS],
        tick_seconds=found[_SECONDS],
        parent_seconds=cpu_seconds(parent),
        child_seconds=sum(cpu_seconds(pid) for pid in children),
        parent_mib=memory_mib(parent)[0],
        child_mib=sum(memory_mib(pid)[0] for pid in children),
    )


def _peer(node: Machine) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.agent.peer", f"{ROUNDS}"]
    done = subprocess.run(
        command,
        env={**os.environ, **environment(node.state.path)},
        capture_output=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


VIOLATIONS = 25
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


def measure_latency() -> list[Figure]:
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
        for number in range(VIOLATIONS)
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
