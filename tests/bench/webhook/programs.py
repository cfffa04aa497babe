"""The programs that are measured, each in a process of its own with its log in a file."""

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
