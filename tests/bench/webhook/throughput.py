"""Requests a second and how long each takes, over TLS, beside a bare FastAPI handler."""

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.bench.webhook import load, programs, sample
from tests.support.authority import Authority
from tests.support.observing import Figure, at_least, at_most, cpu_seconds

CONNECTIONS = (1, 8, 64)
JUDGED = 8
SECONDS = 3.0
SLICES, SLICE_SECONDS = 8, 0.7
PODS = 5000
PATH = "/v1/pods/cap"
MOST_P99_RATIO = 3.0


class Stream(NamedTuple):
    """
    Which reviews come one after the other, and the least share of the bare handler's throughput.
    """

    name: str
    bodies: list[bytes]
    least_ratio: float


@dataclass
class Side:
    """One of the two servers, measured slice by slice."""

    server: programs.Server
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
        """
        Return what a request costs the server, TLS and HTTP included: the warm-up counts as well.
        """
        return self.cpu_seconds / sum(run.sent for run in self.runs) * 1e6


def streams() -> list[Stream]:
    return [
        Stream("the same review", [sample.review()], 0.5),
        Stream("pods of one series", [sample.of_a_series(n) for n in range(PODS)], 0.5),
        Stream("every pod different", [sample.different(n) for n in range(PODS)], 0.3),
    ]


def measure(folder: Path, authority: Authority) -> list[Figure]:
    """Measure both servers in short turns, so that whatever else the machine does meets both."""
    figures: list[Figure] = []
    wanted = streams()
    with programs.bare(folder) as bare, programs.webhook(folder) as webhook:
        for stream in wanted:
            theirs, ours = Side(bare), Side(webhook)
            for _ in range(SLICES):
                theirs.measure(stream, authority)
                ours.measure(stream, authority)
            figures += _compared(stream, theirs, ours)
        for connections in CONNECTIONS:
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
