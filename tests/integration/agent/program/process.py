"""
The agent as a real process: started as a user would, watched through its log and its pages.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from gpufence.snapshot import Snapshot, read_snapshot
from tests.integration.controlplane.observing import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

PATIENCE_SECONDS = 20.0
LOOPBACK = "127.0.0.1"
QUICK = {
    "GPUFENCE_INTERVAL_SECONDS": "0.2",
    "GPUFENCE_LIST_SECONDS": "0.4",
    "GPUFENCE_HOLD_SECONDS": "0.8",
    "GPUFENCE_SHORT_HOLD_SECONDS": "0.4",
    "GPUFENCE_GRACE_SECONDS": "0.2",
    "GPUFENCE_START_PAUSE_SECONDS": "0.2",
    "GPUFENCE_EVICTION_GRACE_SECONDS": "1",
    "GPUFENCE_NODE_EVICTIONS_PER_MINUTE": "1000",
    "GPUFENCE_NAMESPACE_EVICTIONS_PER_MINUTE": "1000",
    "GPUFENCE_NVML_DEADLINE_SECONDS": "1",
    "GPUFENCE_NVML_RESTART_SECONDS": "0.05",
    "GPUFENCE_NVML_RESTART_LIMIT_SECONDS": "0.1",
    "GPUFENCE_NVML_AVOID_SECONDS": "0.5",
    "GPUFENCE_UNMEASURED_SECONDS": "0.5",
    "GPUFENCE_REPEATED_HOLD_SECONDS": "0.8",
}

Line = dict[str, Any]


class AgentProcess:
    """
    Runs `python -m agent`, or another module with its arguments, on a free port; use it as a
    context manager.
    """

    def __init__(self, *command: str, **settings: str) -> None:
        self._lines: list[Line] = []
        self._changed = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen(
            [sys.executable, "-m", *(command or ("agent",))],
            env={
                "PATH": os.environ["PATH"],
                "GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0",
                **QUICK,
                **inherited(),
                **settings,
            },
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
        self.port = int(str(fields["statusListen"]).rpartition(":")[2])
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

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_SECONDS)
        if self.process.stderr is not None:
            self.process.stderr.close()

    @property
    def lines(self) -> list[Line]:
        with self._changed:
            return list(self._lines)

    def wait_for(self, message: str) -> Line:
        """
        Wait for a line of the log whose message begins so.
        """

        def found() -> Line | None:
            lines = (line for line in self._lines if str(line["message"]).startswith(message))
            return next(lines, None)

        with self._changed:
            self._changed.wait_for(lambda: found() or self._ended, PATIENCE_SECONDS)
            line = found()
        assert line is not None, f"no such line among {self._lines}"
        return line

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def snapshot(self) -> Snapshot:
        return read_snapshot(self.get("/v1/snapshot")[1])

    def metrics(self) -> dict[str, float]:
        """
        Return every line of /metrics by its name and labels.
        """
        _, page = self.get("/metrics")
        lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def outcomes(self, name: str) -> list[str]:
        """
        Return what the agent makes of a pod at the moment, for each card.
        """
        pods = [pod for pod in self.snapshot().pods if pod.name == name]
        return [use.outcome for pod in pods for use in pod.uses]

    def wait_for_outcome(self, name: str, *outcomes: str) -> None:
        reached = eventually(lambda: bool(set(self.outcomes(name)) & set(outcomes)))

        assert reached, f"{name} is not {outcomes}: {self.snapshot()} {self.lines[-5:]}"

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


def inherited() -> Mapping[str, str]:
    # Coverage of child processes travels by these.
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("COVERAGE_") or name == "PYTHONPATH"
    }
