"""
One pod's life on the node: started, reported, restarted, refused.
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
from tests.unit.simulator.node.fakes import FakeLaunch, FakeReports
from tests.unit.simulator.node.world import World


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
