"""How long a binding waits for us on a real API server, the question about its pod included."""

import os
import sys
import time
from pathlib import Path

from simulator.controlplane import Assets, ControlPlane
from simulator.progress import Progress
from tests.support import objects
from tests.support.authority import Authority
from tests.support.observing import Figure, at_most, percentile
from tests.support.webhook_site import WebhookSite

PODS = 300
NODE, T4 = "t4", objects.gpu_labels("Tesla-T4", objects.T4_MIB, (7, 5))
MOST_MILLISECONDS = 25.0


def measure(folder: Path, authority: Authority) -> list[Figure]:
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
                for number in range(PODS):
                    made = site.create(name, objects.gpu_pod(f"pod-{number}"))
                    began = time.perf_counter()
                    site.bind(name, made, NODE)
                    seen.append((time.perf_counter() - began) * 1000)
                ours = [
                    float(line["milliseconds"])
                    for line in webhook.lines
                    if line.get("hook") == "bindings" and line.get("result") == "exact"
                ]
    if len(ours) != PODS:
        raise RuntimeError(f"{len(ours)} of {PODS} bindings were made exact")
    return [
        Figure("binding hook, pod GET included, p50", percentile(ours, 50), "ms"),
        at_most("  p99", percentile(ours, 99), "ms", MOST_MILLISECONDS),
        Figure("whole binding as the scheduler sees it, p50", percentile(seen, 50), "ms"),
        Figure("  p99", percentile(seen, 99), "ms"),
    ]
