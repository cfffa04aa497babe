"""
Requests a second and how long each takes, over TLS, beside a bare FastAPI handler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from tests.bench._figures import Figure, at_least, at_most
from tests.bench.webhook import load, programs, sample

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.authority import Authority

CONNECTIONS = (1, 2, 4, 8, 16, 32, 64)
JUDGED = 8
SECONDS = 3.0
SLICES, SLICE_SECONDS = 8, 0.7
LEAST_RATIO = 0.8
MOST_MILLISECONDS = 5.0


@dataclass
class Side:
    """
    One of the two servers, measured slice by slice.
    """

    server: programs.Server
    runs: list[load.Load] = field(default_factory=list)
    cpu_seconds: float = 0.0

    def measure(self, authority: Authority) -> None:
        before = programs.cpu_seconds(self.server.process_id)
        self.runs.append(_run(self.server.port, authority, JUDGED, SLICE_SECONDS))
        self.cpu_seconds += programs.cpu_seconds(self.server.process_id) - before

    @property
    def per_second(self) -> float:
        return median(run.per_second for run in self.runs)

    @property
    def p99_milliseconds(self) -> float:
        return median(run.p99_milliseconds for run in self.runs)

    @property
    def cpu_microseconds(self) -> float:
        """
        Tell what a request costs the server, TLS and HTTP included: the warm-up counts as well.
        """
        return self.cpu_seconds / sum(run.sent for run in self.runs) * 1e6


def measure(folder: Path, authority: Authority) -> list[Figure]:
    """
    Measure both servers in short turns, so that whatever else the machine does meets both.
    """
    with programs.bare(folder) as bare, programs.webhook(folder) as webhook:
        theirs, ours = Side(bare), Side(webhook)
        for _ in range(SLICES):
            theirs.measure(authority)
            ours.measure(authority)
        ratio = ours.per_second / theirs.per_second
        figures = [
            at_least(f"webhook / bare handler, {JUDGED} connections", ratio, "", LEAST_RATIO),
            Figure(f"bare FastAPI handler, {JUDGED} connections", theirs.per_second, "req/s"),
            Figure("  p99", theirs.p99_milliseconds, "ms"),
            Figure("  CPU for a request", theirs.cpu_microseconds, "us"),
            Figure(f"webhook, {JUDGED} connections", ours.per_second, "req/s"),
            at_most("  p99", ours.p99_milliseconds, "ms", MOST_MILLISECONDS),
            Figure("  CPU for a request", ours.cpu_microseconds, "us"),
        ]
        for connections in CONNECTIONS:
            run = _run(webhook.port, authority, connections, SECONDS)
            figures += [
                Figure(f"webhook, {connections} connections", run.per_second, "req/s"),
                Figure("  p50", run.p50_milliseconds, "ms"),
                Figure("  p99", run.p99_milliseconds, "ms"),
            ]
    return figures


def _run(port: int, authority: Authority, connections: int, seconds: float) -> load.Load:
    target = load.Target(port, "/v1/pods/cap", sample.review(), authority.client_context())
    done = load.run(target, connections, seconds)
    if done.failed:
        raise RuntimeError(f"{done.failed} of {done.requests} requests failed")
    return done
