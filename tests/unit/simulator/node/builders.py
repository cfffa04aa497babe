"""Pods, containers and cards with valid defaults, and a node around them that runs nothing."""

from pathlib import Path
from typing import Any, cast

from gpufence.cards import Card
from gpufence.quantity import MIB
from kube import KubeError
from simulator.node.errors import NodeError
from simulator.node.lifecycle import ContainerRecord, RestartPauses, Running, Terminated, Waiting
from simulator.node.pod import NodeContainer, NodePod, read_pod
from simulator.node.run import PodRun, PodRunContext

UID = "11111111-2222-3333-4444-555555555555"
ADDRESS = "10.1.2.3"
Json = dict[str, Any]


def container(name: str = "main", **fields: Any) -> Json:
    """Describe a container that runs the workload's image."""
    return {"name": name, "image": "gpufence/workload", **fields}


def env(*entries: tuple[str, Any]) -> list[Json]:
    """Describe variables: a text is a literal, an object where the value comes from."""
    return [
        {"name": name, "value": value}
        if isinstance(value, str)
        else {"name": name, "valueFrom": value}
        for name, value in entries
    ]


def field(path: str) -> Json:
    return {"fieldRef": {"fieldPath": path}}


def pod_object(
    *containers: Json,
    annotations: dict[str, str] | None = None,
    restart: str = "Always",
    volumes: tuple[Json, ...] = (),
    spec: Json | None = None,
    **metadata: Any,
) -> Json:
    """Describe a pod that is bound to the node, as the API has it."""
    return {
        "metadata": {
            "name": "trainer",
            "namespace": "team-a",
            "uid": UID,
            "labels": {"app": "training"},
            "annotations": annotations or {},
            **metadata,
        },
        "spec": {
            "nodeName": "node-a",
            "serviceAccountName": "robot",
            "restartPolicy": restart,
            "containers": list(containers) or [container()],
            "volumes": list(volumes),
            **(spec or {}),
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def pod(*containers: Json, **fields: Any) -> NodePod:
    return read_pod(pod_object(*containers, **fields))


def card(index: int = 0, memory_mib: int = 15360, **fields: Any) -> Card:
    return Card(f"GPU-{index}", index, "Tesla T4", memory_mib * MIB, (7, 5), **fields)


def waiting() -> ContainerRecord:
    return ContainerRecord(Waiting("ContainerCreating"))


def running(**fields: Any) -> ContainerRecord:
    return ContainerRecord(Running("c" * 64, "T1"), **fields)


def ended(exit_code: int = 0, **fields: Any) -> ContainerRecord:
    ending = Terminated("c" * 64, "T1", "T2", exit_code, "last words")
    return ContainerRecord(ending, last=ending, **fields)


DELETED = "2026-01-01T00:00:00Z"


class FakeProcess:
    """A process that lives until the test, or a kill, ends it."""

    def __init__(self, session: int, began: float) -> None:
        self.session = session
        self.code: int | None = None
        self.signals: list[str] = []
        # It is also what starting it gives.
        self.id, self.cgroup, self.process = f"{session:064x}", f"0::/{session}\n", self
        self.started_at, self.began = "T1", began

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.signals.append("TERM")

    def kill(self) -> None:
        self.signals.append("KILL")
        self.code = 137

    def last_line(self) -> str:
        return "bye"


class FakeStarter:
    """Starts fake processes; `refusals` are raised first, one for each start."""

    def __init__(self) -> None:
        self.folder = Path("/nowhere")
        self.cards: tuple[Card, ...] = ()
        self.processes: list[FakeProcess] = []
        self.refusals: list[NodeError] = []
        self.refreshed: list[NodePod] = []
        self.ended: list[str] = []
        self.cleared = False
        self.now = 0.0

    def start(self, pod: NodePod, container: NodeContainer, restarts: int) -> FakeProcess:
        del pod, container, restarts
        if self.refusals:
            raise self.refusals.pop(0)
        self.processes.append(FakeProcess(1000 + len(self.processes), self.now))
        return self.processes[-1]

    def refresh(self, pod: NodePod) -> None:
        self.refreshed.append(pod)

    def end(self, pod: NodePod, container_id: str) -> None:
        del pod
        self.ended.append(container_id)

    def clear(self) -> None:
        self.cleared = True


class FakeReports:
    """Keeps what the API would be told; `errors` are raised first, one for each call."""

    def __init__(self) -> None:
        self.statuses: list[dict[str, Any]] = []
        self.removed = 0
        self.errors: list[KubeError] = []

    def report(self, pod: NodePod, status: dict[str, object]) -> None:
        del pod
        if self.errors:
            raise self.errors.pop(0)
        self.statuses.append(status)

    def remove(self, pod: NodePod) -> None:
        del pod
        if self.errors:
            raise self.errors.pop(0)
        self.removed += 1


class World:
    """
    One pod's run and everything around it; `turn` is one look at it at a time of the test's choice.
    """

    def __init__(self, *containers: Any, **fields: Any) -> None:
        self.starter = FakeStarter()
        self.reports = FakeReports()
        self.lines: list[str] = []
        self._containers, self._fields = containers, fields
        context = PodRunContext(
            ADDRESS,
            self.reports,
            lambda _: cast("Any", self.starter),
            RestartPauses(first_seconds=10),
            self.lines.append,
        )
        self.run = PodRun(pod(*containers, **fields), context, 0.0)

    def turn(self, now: float) -> None:
        self.starter.now = now
        self.run.advance(now)
        self.run.report(now)

    def update(self, now: float, **fields: Any) -> None:
        self.run.update(pod(*self._containers, **{**self._fields, **fields}), now)

    def delete(self, now: float, grace: int = 30) -> None:
        self.update(now, deletionTimestamp=DELETED, deletionGracePeriodSeconds=grace)

    @property
    def process(self) -> FakeProcess:
        return self.starter.processes[-1]

    def end(self, now: float, code: int = 0) -> None:
        self.process.code = code
        self.turn(now)

    @property
    def phases(self) -> list[str]:
        return [status["phase"] for status in self.reports.statuses]

    @property
    def state(self) -> Any:
        return self.reports.statuses[-1]["containerStatuses"][0]["state"]
