"""
One pod's run with fake processes, a fake API and a clock of the test's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from simulator.node.lifecycle import Pauses
from simulator.node.run import Parts, PodRun
from tests.unit.simulator.node.builders import NODE, container, pod
from tests.unit.simulator.node.fakes import FakeLaunch, FakeReports

if TYPE_CHECKING:
    from tests.unit.simulator.node.fakes import FakeProcess

DELETED = "2026-01-01T00:00:00Z"
SIDECAR = container("s", restartPolicy="Always")


class World:
    """
    One pod's run and everything around it; `turn` is one look at it at a time of the test's choice.
    """

    def __init__(self, *containers: Any, **fields: Any) -> None:
        self.launch = FakeLaunch()
        self.reports = FakeReports()
        self.said: list[str] = []
        self._containers, self._fields = containers, fields
        parts = Parts(
            NODE,
            self.reports,
            lambda _: cast("Any", self.launch),
            Pauses(first_seconds=10),
            self.said.append,
        )
        self.run = PodRun(pod(*containers, **fields), parts, 0.0)

    def turn(self, now: float) -> None:
        self.launch.now = now
        self.run.advance(now)
        self.run.tell(now)

    def update(self, now: float, **fields: Any) -> None:
        self.run.update(pod(*self._containers, **self._fields, **fields), now)

    def delete(self, now: float, grace: int = 30) -> None:
        self.update(now, deletionTimestamp=DELETED, deletionGracePeriodSeconds=grace)

    def process(self, name: str = "main") -> FakeProcess:
        return self.launch.processes[name][-1]

    def end(self, now: float, code: int = 0, name: str = "main") -> None:
        self.process(name).code = code
        self.turn(now)

    @property
    def phases(self) -> list[str]:
        return [status["phase"] for status in self.reports.told]

    @property
    def state(self) -> Any:
        return self.reports.told[-1]["containerStatuses"][0]["state"]
