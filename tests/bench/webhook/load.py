"""A load of kept connections over TLS: the reviews in it, and the programs that are measured."""

import asyncio
import http.client
import itertools
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from tests.support.objects import large_pod
from tests.support.observing import percentile

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(pod_object: dict[str, Any] | None = None, uid: str = UID) -> bytes:
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
        "object": pod_object or large_pod(),
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(whole, separators=(",", ":")).encode()


def of_a_series(number: int) -> bytes:
    """Return the review of one pod of many from one template: its name and uids are its own."""
    one = large_pod()
    one["metadata"] |= {"name": f"trainer-{number}", "uid": _uid(number)}
    one["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = f"trainer-{number}"
    return review(one, _uid(number))


def different(number: int) -> bytes:
    """Return the review of a pod like no other; some set a variable or start a server."""
    one = large_pod()
    name = f"job-{number}"
    one["metadata"] |= {"name": name, "generateName": f"{name}-", "uid": _uid(number)}
    one["metadata"]["labels"] = {"app": name, "pod-template-hash": f"{number:08x}"}
    one["metadata"]["annotations"] = {
        f"example.com/note-{n}": f"note {n} of {name}" for n in range(4)
    }
    one["metadata"]["annotations"]["gpufence.io/memory"] = f"{700 + number % 10_007}Mi"
    container = one["spec"]["containers"][0]
    container["name"] = f"main-{number}"
    container["image"] = f"registry.example.com/team-{number % 97}/app-{number}:1.{number}"
    container["command"] = ["python", "-m", f"job_{number}", "--seed", str(number)]
    container["resources"]["limits"]["aliyun.com/gpu-mem"] = str(1 + number % 14)
    for n, entry in enumerate(container["env"]):
        entry["value"] = f"value-{n}-of-{number}"
    if not number % 4:
        wish = {"name": "XLA_PYTHON_CLIENT_MEM_FRACTION", "value": f"0.{number % 90 + 10}"}
        container["env"].append(wish)
    if not number % 10:
        container["command"] = ["vllm", "serve", f"model-{number}"]
    return review(one, _uid(number))


def _uid(number: int) -> str:
    return f"705ab4f5-6393-11e8-b7cc-{number:012x}"


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


PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Server:
    port: int
    process_id: int


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def webhook(
    folder: Path, command: Sequence[str] = ("webhook",), **settings: str
) -> Iterator[Server]:
    """Run the webhook as in production."""
    port, status = free_port(), free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GPUFENCE_LISTEN": f"127.0.0.1:{port}",
        "GPUFENCE_STATUS_LISTEN": f"127.0.0.1:{status}",
        "GPUFENCE_TLS_DIR": str(folder),
        "GPUFENCE_CLUSTER": "none",
        "GPUFENCE_DEFAULT_CARD": "15360Mi",
        "GPUFENCE_DRAIN_SECONDS": "0",
        **settings,
    }
    with _running([sys.executable, "-m", *command], folder, environment) as process:
        _wait_until(process, lambda: _is_ready(status))
        yield Server(port, process.pid)


@contextmanager
def bare(folder: Path) -> Iterator[Server]:
    """Run the handler that the webhook is compared with, with the same server and the same TLS."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "uvicorn", "tests.bench.webhook.bare:app"),
        *("--port", str(port), "--loop", "uvloop", "--http", "httptools", "--no-access-log"),
        *("--ssl-certfile", str(folder / "tls.crt"), "--ssl-keyfile", str(folder / "tls.key")),
    ]
    with _running(command, folder, dict(os.environ)) as process:
        _wait_until(process, lambda: _listens(port))
        yield Server(port, process.pid)


@contextmanager
def _running(
    command: list[str], folder: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{command[2]}.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def _wait_until(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} did not become ready")
        time.sleep(0.05)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
