"""
Our programs as they run in their pods: with a token, without a kubeconfig, at their usual pace.
"""

import http.client
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.observing import cpu_seconds, memory_mib
from tests.support.processes import LOOPBACK, PATIENCE_SECONDS, ServingProcess
from tests.support.site import surroundings

_READY_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 0.02


@dataclass(frozen=True)
class Access:
    """The way of a pod to the API server."""

    url: str
    authority: Path
    token: Path


class Program(ServingProcess):
    """Use it as a context manager."""

    def __init__(self, name: str, access: Access, **settings: str) -> None:
        began = time.monotonic()
        files = str(access.authority), str(access.token)
        listen = {"GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0"}
        super().__init__(("tests.support.in_pod", name, access.url, *files), {**listen, **settings})
        self._began = began

    def page(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(
            LOOPBACK, self.port_of("statusListen"), timeout=PATIENCE_SECONDS
        )
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metric(self, start: str) -> float:
        """Add up the lines of /metrics that begin so."""
        lines = self.page("/metrics")[1].splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(start))

    def seconds_until(self, path: str) -> float:
        """Wait until a page says that all is well, and return how long that was after the start."""
        while self.page(path)[0] != http.HTTPStatus.OK:
            if time.monotonic() - self._began > _READY_SECONDS:
                raise TimeoutError(f"{path} is not well: {self.page(path)}")
            time.sleep(0.05)
        return time.monotonic() - self._began

    def seconds_until_metric(self, name: str) -> float:
        """Wait until a metric is not zero, and return how long that was after the start."""
        while not self.metric(name):
            if time.monotonic() - self._began > _READY_SECONDS:
                raise TimeoutError(f"{name} is zero")
            time.sleep(0.05)
        return time.monotonic() - self._began

    @property
    def memory(self) -> tuple[float, float]:
        return memory_mib(self.process.pid)

    @property
    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)


@dataclass(frozen=True)
class Call:
    """One call of the plugin, and what it took."""

    seconds: float
    cpu_seconds: float
    mib: float
    code: int
    lines: int
    notes: str


def plugin(kubeconfig: Path, *arguments: str) -> Call:
    """Run the plugin as a person does, with its answer in a file."""
    folder = kubeconfig.parent
    out, err = folder / "plugin.out", folder / "plugin.err"
    began = time.monotonic()
    with out.open("wb") as answer, err.open("wb") as aside:
        process = subprocess.Popen(
            (sys.executable, "-m", "kubectl_gpufence", *arguments),
            env=surroundings({"KUBECONFIG": str(kubeconfig)}),
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=aside,
        )
        mib = _peak(process.pid)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Call(
        seconds=time.monotonic() - began,
        cpu_seconds=used.ru_utime + used.ru_stime,
        mib=mib,
        code=process.returncode,
        lines=out.read_text("utf-8").count("\n"),
        notes=err.read_text("utf-8"),
    )


def _peak(process_id: int) -> float:
    """
    Wait until a process has ended, and return what it held at most. What the system says of that
    afterwards is no less than what its parent held when it began.
    """
    most = 0.0
    while os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        with suppress(IndexError):  # it holds nothing any more
            most = max(most, memory_mib(process_id)[1])
        time.sleep(_LOOK_SECONDS)
    return most
