"""
Memory with 5,000 GPU nodes in the cache, each of the size that real ones have, before and after
5,000 pods of which each is different.
"""

import json
from pathlib import Path
from typing import Any

from tests.bench.webhook import load, programs, sample
from tests.support.authority import Authority
from tests.support.objects import large_node
from tests.support.observing import Figure, at_most, memory_mib
from tests.support.servers import ApiServer, reply, watch

NODES, PAGE = 5000, 100
PODS, CONNECTIONS = 5000, 8
MOST_MIB = 80.0


def measure(folder: Path, authority: Authority) -> list[Figure]:
    """
    Let the webhook read 50 pages of nodes from a scripted API server, and rewrite pods; look at its
    memory after both.
    """
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
        with programs.webhook(
            folder, command, GPUFENCE_CLUSTER="auto", GPUFENCE_DEFAULT_CARD=""
        ) as program:
            before, _ = memory_mib(program.process_id)
            _send_pods(program.port, authority)
            after, peak = memory_mib(program.process_id)
        kilobytes = len(json.dumps(large_node(0))) / 1000
    return [
        at_most(
            f"memory at {NODES:,} nodes of {kilobytes:.0f} KB, after {PODS:,} different pods",
            after,
            "MiB",
            MOST_MIB,
        ),
        Figure("  before the first pod", before, "MiB"),
        Figure("  at most", peak, "MiB"),
    ]


def _send_pods(port: int, authority: Authority) -> None:
    """Send every pod, over a few connections."""
    requests = [load.request("/v1/pods/cap", sample.different(number)) for number in range(PODS)]
    sent = 0
    while sent < PODS:
        target = load.Target(port, requests[sent:], authority.client_context())
        done = load.run(target, CONNECTIONS, seconds=2.0)
        if done.failed:
            raise RuntimeError(f"{done.failed} of {done.requests} requests failed")
        sent += done.sent


def _page(first: int) -> dict[str, Any]:
    last = first + PAGE >= NODES
    metadata = {"resourceVersion": "9", **({} if last else {"continue": f"after-{first}"})}
    items = [large_node(number) for number in range(first, first + PAGE)]
    return {"kind": "NodeList", "metadata": metadata, "items": items}
