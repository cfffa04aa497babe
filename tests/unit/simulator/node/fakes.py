"""
Stand-ins for what a pod's run drives: containers that end when told to, and an API that listens.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kube import KubeError
    from simulator.node.errors import NodeError
    from simulator.node.pod import Container, Pod


class FakeProcess:
    """
    A process that lives until the test, or a kill, ends it.
    """

    def __init__(self, session: int) -> None:
        self.session = session
        self.code: int | None = None
        self.signals: list[str] = []

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.signals.append("TERM")

    def kill(self) -> None:
        self.signals.append("KILL")
        self.code = 137

    def last_words(self) -> str:
        return "bye"


class FakeStart:
    """
    What starting a container gives.
    """

    def __init__(self, process: FakeProcess, began: float) -> None:
        self.id = f"{process.session:064x}"
        self.cgroup = f"0::/pod/{self.id}\n"
        self.process = process
        self.started_at = "T1"
        self.began = began
        self.cards = ""


class FakeLaunch:
    """
    Starts fake processes; `refusals` are raised first, one for each start.
    """

    def __init__(self) -> None:
        self.folder = Path("/nowhere")
        self.processes: dict[str, list[FakeProcess]] = {}
        self.refusals: list[NodeError] = []
        self.refreshed: list[Pod] = []
        self.cleared = False
        self.now = 0.0

    def start(self, pod: Pod, container: Container, restarts: int) -> FakeStart:
        del pod, restarts
        if self.refusals:
            raise self.refusals.pop(0)
        process = FakeProcess(1000 + sum(map(len, self.processes.values())))
        self.processes.setdefault(container.name, []).append(process)
        return FakeStart(process, self.now)

    def refresh(self, pod: Pod) -> None:
        self.refreshed.append(pod)

    def clear(self) -> None:
        self.cleared = True


class FakeReports:
    """
    Keeps what the API would be told; `errors` are raised first, one for each call.
    """

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.removed = 0
        self.errors: list[KubeError] = []

    def report(self, pod: Pod, status: dict[str, object]) -> None:
        del pod
        if self.errors:
            raise self.errors.pop(0)
        self.told.append(status)

    def remove(self, pod: Pod) -> None:
        del pod
        if self.errors:
            raise self.errors.pop(0)
        self.removed += 1
