"""A load of kept connections over TLS, cheap enough to measure a server on the other core."""

import asyncio
import itertools
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import uvloop

from tests.support.observing import percentile


@dataclass(frozen=True)
class Load:
    """What a run came to; `sent` counts those of the warm-up, too."""

    requests: int
    sent: int
    failed: int
    seconds: float
    p50_milliseconds: float
    p99_milliseconds: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True)
class Target:
    """Where to send which requests, again from the first after the last."""

    port: int
    requests: Sequence[bytes]
    trust: ssl.SSLContext


def request(path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Caller(asyncio.Protocol):
    """Asks again as soon as it is answered, each time what is next for all callers."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._sent = 0.0
        self.latencies: list[float] = []
        self.sent = 0
        self.failed = 0
        self.stopped = False
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment] # it is a Transport: we dialled TCP
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self.latencies.append(time.perf_counter() - self._sent)
        if not head.startswith(b"HTTP/1.1 200"):
            self.failed += 1
        self._received = b""
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self.failed += not self.stopped
        if not self.done.done():
            self.done.set_result(None)

    def _ask(self) -> None:
        assert self._transport is not None
        if self.stopped:
            self._transport.close()
            return
        self.sent += 1
        self._sent = time.perf_counter()
        self._transport.write(next(self._requests))


def run(target: Target, connections: int, seconds: float) -> Load:
    """Load a server for some seconds, after a short while that does not count."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(target, connections, seconds))


async def _run(target: Target, connections: int, seconds: float) -> Load:
    loop = asyncio.get_running_loop()
    callers = []
    requests = itertools.cycle(target.requests)
    for _ in range(connections):
        _, caller = await loop.create_connection(
            lambda: _Caller(requests),
            "127.0.0.1",
            target.port,
            ssl=target.trust,
            server_hostname="localhost",
        )
        callers.append(caller)
    await asyncio.sleep(0.3)
    for caller in callers:
        caller.latencies.clear()
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    latencies = [each for caller in callers for each in caller.latencies]
    took = time.perf_counter() - began
    for caller in callers:
        caller.stopped = True
    await asyncio.gather(*(caller.done for caller in callers))
    return Load(
        requests=len(latencies),
        sent=sum(caller.sent for caller in callers),
        failed=sum(caller.failed for caller in callers),
        seconds=took,
        p50_milliseconds=percentile(latencies, 50) * 1000,
        p99_milliseconds=percentile(latencies, 99) * 1000,
    )
