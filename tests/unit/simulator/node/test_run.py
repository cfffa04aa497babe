"""
One pod's life on the node, with fake processes and a clock of the test's own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from kube import ConflictError, Failure, NotFoundError, UnreachableError
from simulator.node.errors import NotYetError
from simulator.node.lifecycle import Pauses
from simulator.node.run import Parts, PodRun
from tests.unit.simulator.node.builders import NODE, container, pod
from tests.unit.simulator.node.fakes import FakeLaunch, FakeProcess, FakeReports

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


def test_a_pod_is_started_and_reported() -> None:
    """
    The first look starts the pod and tells the API that it runs.
    """
    world = World()
    world.turn(1)

    assert ["Running"] == world.phases


def test_nothing_is_told_twice() -> None:
    """
    While nothing changes the API hears nothing.
    """
    world = World()
    world.turn(1)
    world.turn(2)

    assert 1 == len(world.reports.told)


def test_running_containers_have_their_cgroup_lines() -> None:
    """
    The lines are there while the process lives, and gone with it.
    """
    world = World(restart="Never")
    world.turn(1)
    before = dict(world.run.lines)
    world.end(2)

    assert ({1000: f"0::/pod/{1000:064x}\n"}, {}) == (before, world.run.lines)


def test_an_end_is_reported_with_the_last_words() -> None:
    """
    A pod whose process ends with 0 has succeeded.
    """
    world = World(restart="Never")
    world.turn(1)
    world.end(2)

    assert ["Running", "Succeeded"] == world.phases
    assert "bye" == world.state["terminated"]["message"]


def test_a_crash_is_answered_by_a_restart_and_then_by_pauses() -> None:
    """
    The first crash restarts at once, the second after the first pause.
    """
    world = World()
    world.turn(1)
    world.end(2, code=1)
    world.end(3, code=1)
    shown = world.state
    world.turn(12)
    waited = len(world.launch.processes["main"])
    world.turn(13)

    assert "CrashLoopBackOff" == shown["waiting"]["reason"]
    assert (2, 3) == (waited, len(world.launch.processes["main"]))
    assert 2 == world.reports.told[-1]["containerStatuses"][0]["restartCount"]


def test_a_container_that_cannot_start_yet_waits_and_tries_again() -> None:
    """
    A missing ConfigMap shows as CreateContainerConfigError until it is there.
    """
    world = World()
    world.launch.refusals = [NotYetError('configmap "c" not found')]
    world.turn(1)
    shown = world.state
    world.turn(1.5)
    world.turn(2)

    assert {
        "waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}
    } == shown
    assert ["Pending", "Running"] == world.phases


def test_a_deleted_pod_is_asked_to_end() -> None:
    """
    Deletion sends SIGTERM, once.
    """
    world = World()
    world.turn(1)
    world.delete(2)
    world.turn(2)
    world.turn(3)

    assert ["TERM"] == world.process().signals


def test_a_deleted_pod_that_has_ended_leaves_the_api() -> None:
    """
    Once all processes have ended the pod is reported a last time and removed.
    """
    world = World()
    world.turn(1)
    world.delete(2)
    world.turn(2)
    world.end(3, code=143)

    assert ["Running", "Failed"] == world.phases
    assert (1, True, True) == (world.reports.removed, world.run.is_gone, world.launch.cleared)


def test_who_ignores_the_grace_is_killed_after_it() -> None:
    """
    SIGKILL comes when the grace of the deletion is over, not before.
    """
    world = World()
    world.turn(1)
    world.delete(2, grace=10)
    for now in (2, 11.9):
        world.turn(now)
    before = list(world.process().signals)
    world.turn(12)
    world.turn(12.1)

    assert (["TERM"], ["TERM", "KILL"]) == (before, world.process().signals)
    assert 137 == world.state["terminated"]["exitCode"]


def test_a_shorter_grace_later_changes_nothing() -> None:
    """
    The first deletion fixes the grace: a later, shorter one does not hurry the end.
    """
    world = World()
    world.turn(1)
    world.delete(2, grace=1000)
    world.turn(2)
    world.delete(3, grace=1)
    world.turn(100)

    assert ["TERM"] == world.process().signals


def test_even_a_grace_of_nothing_is_a_moment() -> None:
    """
    A grace of 0 or 1 still leaves two seconds, as in the kubelet.
    """
    world = World()
    world.turn(1)
    world.delete(2, grace=0)
    world.turn(2)
    world.turn(3.9)
    before = list(world.process().signals)
    world.turn(4)

    assert (["TERM"], ["TERM", "KILL"]) == (before, world.process().signals)


def test_sidecars_end_after_all_others() -> None:
    """
    A sidecar is asked to end when the main container has ended, and has a moment at least.
    """
    world = World(inits=(SIDECAR,))
    world.turn(1)
    world.turn(2)
    world.delete(3, grace=10)
    world.turn(3)
    before = list(world.process("s").signals)
    world.turn(13)
    world.turn(13.1)
    world.turn(14)
    asked = list(world.process("s").signals)
    world.turn(15.2)

    assert ([], ["TERM"], ["TERM", "KILL"]) == (before, asked, world.process("s").signals)


def test_sidecars_have_the_pods_grace_when_the_work_is_done() -> None:
    """
    After the last main container the sidecar is stopped within the pod's own grace.
    """
    world = World(inits=(SIDECAR,), restart="Never")
    world.turn(1)
    world.turn(2)
    world.end(3)
    world.turn(32.9)
    before = list(world.process("s").signals)
    world.turn(33)
    world.turn(33.1)

    assert (["TERM"], ["TERM", "KILL"]) == (before, world.process("s").signals)
    assert "Succeeded" == world.phases[-1]


def test_a_pod_that_was_forced_out_of_the_api_is_ended_silently() -> None:
    """
    A pod that the API no longer has is ended with its own grace and not reported.
    """
    world = World()
    world.turn(1)
    world.run.vanish(2)
    world.turn(2)
    world.end(3, code=143)

    assert (["TERM"], ["Running"], 0) == (
        world.process().signals,
        world.phases,
        world.reports.removed,
    )
    assert world.run.is_gone


@pytest.mark.parametrize("error", [NotFoundError, ConflictError])
def test_a_report_about_a_pod_that_is_not_there_any_more_ends_it(
    error: type[NotFoundError | ConflictError],
) -> None:
    """
    A pod that was replaced under its name, which the API says by refusing, is ended.
    """
    world = World()
    world.reports.errors = [error(Failure("PATCH", 404, "NotFound", "gone"))]
    world.turn(1)
    world.turn(2)

    assert ["TERM"] == world.process().signals


def test_a_report_that_fails_is_made_later() -> None:
    """
    While the API server is away processes go on, and the news are told a second later.
    """
    world = World()
    world.reports.errors = [UnreachableError("refused")]
    world.turn(1)
    world.turn(1.5)
    early = list(world.phases)
    world.turn(2)

    assert ([], ["Running"]) == (early, world.phases)
    assert "team-a/trainer: not reported: refused" in world.said


def test_a_removal_that_fails_is_made_later() -> None:
    """
    A deleted pod stays known until the API has let it go.
    """
    world = World(restart="Never")
    world.turn(1)
    world.end(2)
    world.delete(3)
    world.reports.errors = [UnreachableError("refused")]
    world.turn(3)
    kept = world.run.is_gone
    world.turn(4)

    assert (False, True, 1) == (kept, world.run.is_gone, world.reports.removed)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inits": (container("i", image="busybox"),)}, "no simulator workload"),
        ({"volumes": ({"name": "v", "hostPath": {}},)}, "hostPath is not simulated"),
    ],
)
def test_what_cannot_run_here_is_refused(fields: dict[str, Any], message: str) -> None:
    """
    A pod that is not made of workloads fails at once, with the reason, and nothing is started.
    """
    world = World(**fields)
    world.turn(1)
    (told,) = world.reports.told

    assert ("Failed", "Unsupported", {}) == (
        told["phase"],
        told["reason"],
        world.launch.processes,
    )
    assert message in told["message"]


def test_a_refused_pod_can_be_deleted() -> None:
    """
    A pod that was refused goes as soon as it is deleted.
    """
    world = World(container(image="busybox"))
    world.turn(1)
    world.delete(2)
    world.turn(2)

    assert world.run.is_gone


def test_a_pod_that_was_over_before_is_left_alone() -> None:
    """
    A pod that had ended before the node came is neither started nor reported.
    """
    over = replace(pod(), phase="Failed")
    launch, reports = FakeLaunch(), FakeReports()
    parts = Parts(NODE, reports, lambda _: cast("Any", launch), Pauses(), print)
    run = PodRun(over, parts, 0.0)
    run.advance(1)
    run.tell(1)

    assert (True, {}, []) == (run.is_finished, launch.processes, reports.told)


def test_new_annotations_reach_the_volumes() -> None:
    """
    Each change of the pod is shown to its volumes.
    """
    world = World()
    world.turn(1)
    world.update(2, annotations={"a": "b"})

    assert {"a": "b"} == world.launch.refreshed[-1].annotations


def test_the_end_of_the_node_ends_its_pods() -> None:
    """
    When the node stops, its pods are asked to end, killed at the deadline, and say why they failed.
    """
    world = World()
    world.turn(1)
    world.run.shut_down(4)
    world.turn(2)
    world.turn(4)
    world.turn(4.1)

    assert ["TERM", "KILL"] == world.process().signals
    assert ("Failed", "Terminated") == (
        world.reports.told[-1]["phase"],
        world.reports.told[-1]["reason"],
    )


def test_the_end_of_the_node_shortens_any_grace() -> None:
    """
    A pod that is being deleted with an endless grace is not waited for by a node that stops.
    """
    world = World(inits=(SIDECAR,))
    world.turn(1)
    world.turn(2)
    world.delete(3, grace=10**9)
    world.turn(3)
    world.run.shut_down(5)
    for now in (5, 5.1, 5.2, 5.3):
        world.turn(now)

    assert (["TERM", "KILL"], ["TERM", "KILL"]) == (
        world.process().signals,
        world.process("s").signals,
    )
    assert world.run.is_finished


def test_a_pod_that_succeeded_keeps_that_when_the_node_stops() -> None:
    """
    Stopping the node changes nothing about pods that are over.
    """
    world = World(restart="Never")
    world.turn(1)
    world.end(2)
    world.run.shut_down(5)
    world.turn(3)

    assert ["Running", "Succeeded"] == world.phases


def test_a_pod_that_ends_well_while_the_node_stops_has_succeeded() -> None:
    """
    A process that still exits with 0 has succeeded, with no word about the node.
    """
    world = World(restart="Never")
    world.turn(1)
    world.run.shut_down(5)
    world.turn(2)
    world.end(3, code=0)

    assert ("Succeeded", False) == (world.phases[-1], "reason" in world.reports.told[-1])
