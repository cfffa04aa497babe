"""
Requests a second and how long each takes, over TLS, beside a bare FastAPI handler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.webhook import load, programs, sample
from tests.bench.webhook.figures import Figure, at_least, at_most

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.webhook.authority import Authority

CONNECTIONS = (1, 2, 4, 8, 16, 32, 64)
JUDGED = 8
SECONDS = 3.0
ROUNDS = 3
LEAST_RATIO = 0.8
MOST_MILLISECONDS = 5.0


def measure(folder: Path, authority: Authority) -> list[Figure]:
    """
    Measure both servers in turns, so that whatever else the machine does meets both.
    """
    ours: list[load.Load] = []
    theirs: list[load.Load] = []
    for _ in range(ROUNDS):
        with programs.bare(folder) as port:
            theirs.append(_run(port, authority, JUDGED))
        with programs.webhook(folder) as (port, _status, _pid):
            ours.append(_run(port, authority, JUDGED))
    best = max(ours, key=lambda each: each.per_second)
    bare = max(theirs, key=lambda each: each.per_second)
    figures = [
        at_least(
            f"webhook / bare FastAPI handler, {JUDGED} connections",
            best.per_second / bare.per_second,
            "",
            LEAST_RATIO,
        ),
        Figure(f"bare handler, {JUDGED} connections", bare.per_second, "req/s"),
        Figure("  p99", bare.p99_milliseconds, "ms"),
    ]
    with programs.webhook(folder) as (port, _status, _pid):
        for connections in CONNECTIONS:
            run = best if connections == JUDGED else _run(port, authority, connections)
            figures += _of(run, connections)
    return figures


def _of(run: load.Load, connections: int) -> list[Figure]:
    p99 = (
        at_most("  p99", run.p99_milliseconds, "ms", MOST_MILLISECONDS)
        if connections == JUDGED
        else Figure("  p99", run.p99_milliseconds, "ms")
    )
    return [
        Figure(f"webhook, {connections} connections", run.per_second, "req/s"),
        Figure("  p50", run.p50_milliseconds, "ms"),
        p99,
    ]


def _run(port: int, authority: Authority, connections: int) -> load.Load:
    target = load.Target(port, "/v1/pods/cap", sample.review(), authority.client_context())
    done = load.run(target, connections, SECONDS)
    if done.failed:
        raise RuntimeError(f"{done.failed} of {done.requests} requests failed")
    return done
