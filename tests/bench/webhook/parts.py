"""CPU of one review, requests a second beside a bare handler, memory, and what a binding waits."""

import asyncio
import copy
import gc
import json
import math
import os
import sys
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from simulator.controlplane import Assets, ControlPlane
from simulator.progress import Progress
from tests.bench.webhook import load
from tests.support import objects
from tests.support.authority import Authority
from tests.support.objects import large_node
from tests.support.observing import Figure, at_least, at_most, cpu_seconds, memory_mib, percentile
from tests.support.rewriting import forget
from tests.support.servers import ApiServer, reply, watch
from tests.support.webhook_site import WebhookSite
from webhook.cluster import ClusterView
from webhook.hooks import PodHook
from webhook.policy import WebhookPolicy
from webhook.review import PODS, JsonObject, Reply, read_review
from webhook.rewrite import rewrite

FIRST_MICROSECONDS, AGAIN_MICROSECONDS = 140.0, 90.0
CALLS, ROUNDS = 100, 150
PODS_A_ROUND = 100


def measure_cpu() -> list[Figure]:
    """Measure the whole and its parts, best of several rounds."""
    body = load.review()
    policy = WebhookPolicy(default=CandidateCard(Units(gpushare_bytes=GIB), 15360 * MIB, (7, 5)))
    cluster = ClusterView()
    hook = PodHook(Mode.CAP, cluster, policy)

    def whole() -> Reply:
        answer = hook.answer(read_review(body, PODS))
        try:
            answer.send(None)
        except StopIteration as done:
            reply: Reply = done.value
            return reply
        raise AssertionError("nothing is waited for")

    def rewritten(pods: list[JsonObject], *, forgetting: bool = False) -> float:
        """Rewrite copies of pods, since it changes them; return the best mean."""
        best = math.inf
        for _ in range(ROUNDS):
            fresh = [copy.deepcopy(pod) for pod in pods]
            forget()
            gc.collect()
            began = time.process_time()
            for pod in fresh:
                if forgetting:
                    forget()
                rewrite(pod, Mode.CAP, {}, cluster.fleet(), policy)
            best = min(best, time.process_time() - began)
        return best / len(pods) * 1e6

    alike = [read_review(body, PODS).object] * PODS_A_ROUND
    different = [read_review(load.different(n), PODS).object for n in range(PODS_A_ROUND)]
    first, again = rewritten(alike, forgetting=True), rewritten(alike)
    return [
        at_most("rewrite of a pod never seen before", first, "us", FIRST_MICROSECONDS),
        at_most("rewrite of a pod with a limit seen before", again, "us", AGAIN_MICROSECONDS),
        Figure("rewrite of pods of which each is different", rewritten(different), "us"),
        Figure(f"review of {len(body) / 1000:.1f} KB, decode to encode", _best(whole), "us"),
        Figure("  of that: decode", _best(lambda: read_review(body, PODS)), "us"),
        Figure("answer to it", len(asyncio.run(hook.answer(read_review(body, PODS))).body), "B"),
    ]


def _best(call: Callable[[], object]) -> float:
    spent = timeit.repeat(call, timer=time.process_time, number=CALLS, repeat=ROUNDS)
    return min(spent) / CALLS * 1e6


LOADED_BY = (1, 8, 64)
JUDGED = 8
SECONDS = 3.0
SLICES, SLICE_SECONDS = 8, 0.7
STREAM_PODS = 5000
PATH = "/v1/pods/cap"
MOST_P99_RATIO = 3.0


class Stream(NamedTuple):
    """Which reviews follow each other, and the least share of the bare handler's throughput."""

    name: str
    bodies: list[bytes]
    least_ratio: float


@dataclass
class Side:
    """One of the two servers, measured slice by slice."""

    server: load.Server
    runs: list[load.Load] = field(default_factory=list)
    cpu_seconds: float = 0.0

    def measure(self, stream: Stream, authority: Authority) -> None:
        before = cpu_seconds(self.server.process_id)
        self.runs.append(_run(self.server.port, stream, authority, JUDGED, SLICE_SECONDS))
        self.cpu_seconds += cpu_seconds(self.server.process_id) - before

    @property
    def per_second(self) -> float:
        return median(run.per_second for run in self.runs)

    @property
    def p99_milliseconds(self) -> float:
        return median(run.p99_milliseconds for run in self.runs)

    @property
    def cpu_microseconds(self) -> float:
        """Return what a request costs the server, with TLS, HTTP and the warm-up."""
        return self.cpu_seconds / sum(run.sent for run in self.runs) * 1e6


def streams() -> list[Stream]:
    return [
        Stream("the same review", [load.review()], 0.5),
        Stream("pods of one series", [load.of_a_series(n) for n in range(STREAM_PODS)], 0.5),
        Stream("every pod different", [load.different(n) for n in range(STREAM_PODS)], 0.3),
    ]


def measure_throughput(folder: Path, authority: Authority) -> list[Figure]:
    """Measure both servers in short turns, so that whatever else the machine does meets both."""
    figures: list[Figure] = []
    wanted = streams()
    with load.bare(folder) as bare, load.webhook(folder) as webhook:
        for stream in wanted:
            theirs, ours = Side(bare), Side(webhook)
            for _ in range(SLICES):
                theirs.measure(stream, authority)
                ours.measure(stream, authority)
            figures += _compared(stream, theirs, ours)
        for connections in LOADED_BY:
            run = _run(webhook.port, wanted[-1], authority, connections, SECONDS)
            figures += [
                Figure(f"{wanted[-1].name}, {connections} connections", run.per_second, "req/s"),
                Figure("  p50", run.p50_milliseconds, "ms"),
                Figure("  p99", run.p99_milliseconds, "ms"),
            ]
    return figures


def _compared(stream: Stream, theirs: Side, ours: Side) -> list[Figure]:
    ratio = ours.per_second / theirs.per_second
    tail = ours.p99_milliseconds / theirs.p99_milliseconds
    return [
        at_least(
            f"{stream.name}: webhook / bare handler, {JUDGED} connections",
            ratio,
            "",
            stream.least_ratio,
        ),
        at_most("  p99 / its p99", tail, "", MOST_P99_RATIO),
        Figure("  bare FastAPI handler", theirs.per_second, "req/s"),
        Figure("    p99", theirs.p99_milliseconds, "ms"),
        Figure("    CPU for a request", theirs.cpu_microseconds, "us"),
        Figure("  webhook", ours.per_second, "req/s"),
        Figure("    p99", ours.p99_milliseconds, "ms"),
        Figure("    CPU for a request", ours.cpu_microseconds, "us"),
    ]


def _run(
    port: int, stream: Stream, authority: Authority, connections: int, seconds: float
) -> load.Load:
    requests = [load.request(PATH, body) for body in stream.bodies]
    target = load.Target(port, requests, authority.client_context())
    done = load.run(target, connections, seconds)
    if done.failed:
        raise RuntimeError(f"{done.failed} of {done.requests} requests failed")
    return done


NODES, PAGE = 5000, 100
FED_PODS, FED_BY = 5000, 8
MOST_MIB = 80.0


def measure_memory(folder: Path, authority: Authority) -> list[Figure]:
    """Measure the webhook's memory after 50 pages of nodes, and after it rewrote pods."""
    with ApiServer() as server:
        pages = [reply(_page(first)) for first in range(0, NODES, PAGE)]
        namespaces = {"kind": "NamespaceList", "metadata": {"resourceVersion": "9"}, "items": []}
        server.on("GET /api/v1/nodes", *pages)
        server.on("WATCH /api/v1/nodes", watch(then="hang"))
        server.on("GET /api/v1/namespaces", reply(namespaces))
        server.on("WATCH /api/v1/namespaces", watch(then="hang"))
        for optional in (
            "gpufence.io/v1alpha1/gpumemoryprofiles",
            "resource.k8s.io/v1/resourceslices",
        ):
            server.on(f"GET /apis/{optional}", reply({"kind": "Status", "code": 404}, 404))
        command = ("tests.support.in_pod", "webhook", server.url)
        with load.webhook(
            folder, command, GPUFENCE_CLUSTER="auto", GPUFENCE_DEFAULT_CARD=""
        ) as program:
            before, _ = memory_mib(program.process_id)
            _send_pods(program.port, authority)
            after, peak = memory_mib(program.process_id)
        kilobytes = len(json.dumps(large_node(0))) / 1000
    return [
        at_most(
            f"memory at {NODES:,} nodes of {kilobytes:.0f} KB, after {FED_PODS:,} different pods",
            after,
            "MiB",
            MOST_MIB,
        ),
        Figure("  before the first pod", before, "MiB"),
        Figure("  at most", peak, "MiB"),
    ]


def _send_pods(port: int, authority: Authority) -> None:
    """Send every pod, over a few connections."""
    requests = [load.request("/v1/pods/cap", load.different(number)) for number in range(FED_PODS)]
    sent = 0
    while sent < FED_PODS:
        target = load.Target(port, requests[sent:], authority.client_context())
        done = load.run(target, FED_BY, seconds=2.0)
        if done.failed:
            raise RuntimeError(f"{done.failed} of {done.requests} requests failed")
        sent += done.sent


def _page(first: int) -> dict[str, Any]:
    last = first + PAGE >= NODES
    metadata = {"resourceVersion": "9", **({} if last else {"continue": f"after-{first}"})}
    items = [large_node(number) for number in range(first, first + PAGE)]
    return {"kind": "NodeList", "metadata": metadata, "items": items}


BOUND_PODS = 300
NODE, T4 = "t4", objects.gpu_labels("Tesla-T4", objects.T4_MIB, (7, 5))
MOST_MILLISECONDS = 25.0


def measure_bindings(folder: Path, authority: Authority) -> list[Figure]:
    """Create and bind pods one after the other; the webhook's own log says how long each took."""
    with ControlPlane.start(
        Assets.from_environment(os.environ), progress=Progress(sys.stderr)
    ) as plane:
        folder.mkdir()
        with WebhookSite(plane, authority, folder) as site:
            site.install()
            with (
                site.webhook() as webhook,
                site.known_nodes(webhook, (NODE, 15, T4)),
                site.namespace("cap") as name,
                site.calling(webhook.port, webhook.calls),
            ):
                seen = []
                for number in range(BOUND_PODS):
                    made = site.create(name, objects.gpu_pod(f"pod-{number}"))
                    began = time.perf_counter()
                    site.bind(name, made, NODE)
                    seen.append((time.perf_counter() - began) * 1000)
                ours = [
                    float(line["milliseconds"])
                    for line in webhook.lines
                    if line.get("hook") == "bindings" and line.get("result") == "exact"
                ]
    if len(ours) != BOUND_PODS:
        raise RuntimeError(f"{len(ours)} of {BOUND_PODS} bindings were made exact")
    return [
        Figure("binding hook, pod GET included, p50", percentile(ours, 50), "ms"),
        at_most("  p99", percentile(ours, 99), "ms", MOST_MILLISECONDS),
        Figure("whole binding as the scheduler sees it, p50", percentile(seen, 50), "ms"),
        Figure("  p99", percentile(seen, 99), "ms"),
    ]
