"""
The webhook as a real process: started as a user would, watched through its log.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import signal
    import ssl
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

PATIENCE_SECONDS = 60.0
LOOPBACK = "127.0.0.1"

Line = dict[str, Any]


class Webhook:
    """
    Runs `python -m webhook` on free ports; use it as a context manager.
    """

    def __init__(self, tls_dir: Path, trust: ssl.SSLContext, **settings: str) -> None:
        self.trust = trust
        self._lines: list[Line] = []
        self._changed = threading.Condition()
        self._ended = False
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tls_dir),
            "GPUFENCE_LISTEN": f"{LOOPBACK}:0",
            "GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0",
            "GPUFENCE_TLS_DIR": str(tls_dir),
            "GPUFENCE_CLUSTER": "none",
            "GPUFENCE_DEFAULT_CARD": "15360Mi",
            "GPUFENCE_DRAIN_SECONDS": "0",
            **_inherited(),
            **settings,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "webhook"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        try:
            fields = self.wait_for("serving")
        except BaseException:
            self.kill()
            raise
        self.port = int(str(fields["listen"]).rpartition(":")[2])
        self.status_port = int(str(fields["statusListen"]).rpartition(":")[2])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_SECONDS)
        finally:
            self.kill()

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}"

    @property
    def lines(self) -> list[Line]:
        with self._changed:
            return list(self._lines)

    def kill(self) -> None:
        """
        End without a word, as an empty machine's killer would.
        """
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_SECONDS)
        if self.process.stderr is not None:
            self.process.stderr.close()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait_for(self, message: str, after: int = 0) -> Line:
        """
        Wait for a line of the log whose message begins so.
        """
        return self.wait_for_line(lambda line: str(line["message"]).startswith(message), after)

    def wait_for_line(self, wanted: Callable[[Line], bool], after: int = 0) -> Line:
        """
        Wait for a line of the log, passing over the first few.
        """

        def found() -> Line | None:
            return next((line for line in self._lines[after:] if wanted(line)), None)

        with self._changed:
            self._changed.wait_for(lambda: found() or self._ended, PATIENCE_SECONDS)
            line = found()
        assert line is not None, f"no such line among {self._lines}"
        return line

    def connect(self, trust: ssl.SSLContext | None = None) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            LOOPBACK, self.port, context=trust or self.trust, timeout=PATIENCE_SECONDS
        )

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """
        Send a body on a connection of its own.
        """
        connection = self.connect()
        try:
            return ask(connection, "POST", path, body)
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, str]:
        """
        Ask the status port.
        """
        connection = http.client.HTTPConnection(
            LOOPBACK, self.status_port, timeout=PATIENCE_SECONDS
        )
        try:
            status, body = ask(connection, "GET", path)
            return status, body.decode()
        finally:
            connection.close()

    def metric(self, start: str) -> float:
        """
        Add up the lines of /metrics that begin so.
        """
        _, page = self.get("/metrics")
        return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(start))

    def _read(self) -> None:
        assert self.process.stderr is not None
        for text in self.process.stderr:
            try:
                line = json.loads(text)
            except ValueError:
                line = {"message": text}
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes]:
    connection.request(method, path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


def _inherited() -> Mapping[str, str]:
    # Coverage of child processes travels by these.
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("COVERAGE_") or name == "PYTHONPATH"
    }
