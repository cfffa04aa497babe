"""One pod's life on the node: started, reported, restarted, refused, ended."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kube import ConflictError, Failure, NotFoundError, UnreachableError
from simulator.node.lifecycle import RestartPauses
from simulator.node.pods import Inbox, Pods
from simulator.node.processes import ProcRoot
from simulator.node.run import PodRun, PodRunContext
from tests.unit.simulator.node.builders import (
    ADDRESS,
    FakeReports,
    FakeStarter,
    World,
    container,
    pod,
    pod_object,
)


def test_a_pod_is_started_and_reported_once() -> None:
    """
    The first look starts the pod and tells the API that it runs; while nothing changes, no other.
    """
    world = World()
    world.turn(1)
    world.turn(2)

    assert ["Running"] == world.phases


def test_an_end_is_reported_with_the_last_words() -> None:
    """A pod whose process ends with 0 has succeeded, and its cgroup line is gone."""
    world = World(restart="Never")
    world.turn(1)
    before = dict(world.run.lines)
    world.end(2)

    assert ({1000: "0::/1000\n"}, {}) == (before, world.run.lines)
    assert ["Running", "Succeeded"] == world.phases
    assert "bye" == world.state["terminated"]["message"]


@pytest.mark.parametrize("error", [NotFoundError, ConflictError])
def test_a_pod_that_was_replaced_is_ended(error: type[NotFoundError | ConflictError]) -> None:
    """A pod that was replaced under its name, which the API says by refusing, is ended."""
    world = World()
    world.reports.errors = [error(Failure("PATCH", 404, "NotFound", "gone"))]
    world.turn(1)
    world.turn(2)

    assert ["TERM"] == world.process.signals


def test_a_report_that_fails_is_made_later() -> None:
    """While the API server is away processes go on, and the report is made a second later."""
    world = World()
    world.reports.errors = [UnreachableError("refused")]
    world.turn(1)
    world.turn(1.5)
    early = list(world.phases)
    world.turn(2)

    assert ([], ["Running"]) == (early, world.phases)
    assert "team-a/trainer: not reported: refused" in world.lines


def test_what_cannot_run_here_is_refused_and_goes_when_deleted() -> None:
    """
    A pod that is not made of workloads fails at once, with the reason, and nothing is started.
    """
    world = World(container(image="busybox"))
    world.turn(1)
    (status,) = world.reports.statuses
    world.delete(2)
    world.turn(2)

    assert ("Failed", "Unsupported", []) == (
        status["phase"],
        status["reason"],
        world.starter.processes,
    )
    assert "no simulator workload" in status["message"]
    assert world.run.is_gone


def test_a_pod_that_was_over_before_is_left_alone() -> None:
    """A pod that had ended before the node came is neither started nor reported."""
    starter, reports = FakeStarter(), FakeReports()
    context = PodRunContext(
        ADDRESS, reports, lambda _: cast("Any", starter), RestartPauses(), print
    )
    run = PodRun(replace(pod(), phase="Failed"), context, 0.0)
    run.advance(1)
    run.report(1)

    assert (True, [], []) == (run.is_finished, starter.processes, reports.statuses)


def test_new_annotations_reach_the_volumes() -> None:
    """Each change of the pod is shown to its volumes."""
    world = World()
    world.turn(1)
    world.update(2, annotations={"a": "b"})

    assert {"a": "b"} == world.starter.refreshed[-1].annotations


def test_a_deleted_pod_is_asked_to_end_once_and_leaves_the_api() -> None:
    """Deletion sends SIGTERM; once all has ended the pod is reported a last time and removed."""
    world = World()
    world.turn(1)
    world.delete(2)
    world.turn(2)
    world.turn(3)
    signals = list(world.process.signals)
    world.end(4, code=143)

    assert (["TERM"], ["Running", "Failed"]) == (signals, world.phases)
    assert (1, True, True) == (world.reports.removed, world.run.is_gone, world.starter.cleared)


@pytest.mark.parametrize(("grace", "end"), [(10, 12.0), (0, 4.0)])
def test_who_ignores_the_grace_is_killed_after_it(grace: int, end: float) -> None:
    """SIGKILL comes when the grace of the deletion, two seconds at least, is over, not before."""
    world = World()
    world.turn(1)
    world.delete(2, grace=grace)
    for now in (2, end - 0.1):
        world.turn(now)
    before = list(world.process.signals)
    world.turn(end)
    world.turn(end + 0.1)

    assert (["TERM"], ["TERM", "KILL"]) == (before, world.process.signals)
    assert 137 == world.state["terminated"]["exitCode"]


def test_a_shorter_grace_later_changes_nothing() -> None:
    """The first deletion fixes the grace: a later, shorter one does not hurry the end."""
    world = World()
    world.turn(1)
    world.delete(2, grace=1000)
    world.turn(2)
    world.delete(3, grace=1)
    world.turn(100)

    assert ["TERM"] == world.process.signals


def test_a_removal_that_fails_is_made_later() -> None:
    """A deleted pod stays known until the API has let it go."""
    world = World(restart="Never")
    world.turn(1)
    world.end(2)
    world.delete(3)
    world.reports.errors = [UnreachableError("refused")]
    world.turn(3)
    kept = world.run.is_gone
    world.turn(4)

    assert (False, True, 1) == (kept, world.run.is_gone, world.reports.removed)


@pytest.mark.parametrize("grace", [None, 10**9])
def test_the_end_of_the_node_ends_its_pods(grace: int | None) -> None:
    """
    When the node stops, its pods are asked to end and killed at its deadline, whatever their grace.
    """
    world = World()
    world.turn(1)
    if grace is not None:
        world.delete(1.5, grace)
    world.run.shut_down(4)
    world.turn(2)
    world.turn(4)
    world.turn(4.1)
    status = world.reports.statuses[-1]

    assert ["TERM", "KILL"] == world.process.signals
    assert ("Failed", "Terminated") == (status["phase"], status["reason"])


@pytest.mark.parametrize("before", [True, False])
def test_a_pod_that_ends_well_has_succeeded_though_the_node_stops(*, before: bool) -> None:
    """A process that exits with 0 has succeeded, with no word about the node."""
    world = World(restart="Never")
    world.turn(1)
    if before:
        world.end(2)
    world.run.shut_down(5)
    world.turn(2.5)
    world.end(3)

    assert ("Succeeded", False) == (world.phases[-1], "reason" in world.reports.statuses[-1])


def test_lists_and_changes_let_pods_come_and_go(tmp_path: Path) -> None:
    """A pod that a new list lacks is let go; the end of an unknown one is passed over."""
    reports = FakeReports()
    machine: Any = type("Machine", (), {"address": ADDRESS, "whole_cards": (), "unit": "GiB"})
    context: Any = SimpleNamespace(machine=machine, folder=tmp_path / "pods", driver=None)
    pods, proc = Pods(context, reports, RestartPauses(), print), ProcRoot(tmp_path / "proc")
    inbox = Inbox()
    inbox.apply("DELETED", pod_object())
    inbox.apply("ADDED", pod_object(container(image="busybox")))
    inbox.replace([pod_object(container(image="busybox"))])
    inbox.replace([])
    seen = []
    while (change := inbox.next(0)) is not None:
        pods.take(change)
        pods.tick(proc)
        seen.append(pods.find("team-a/trainer") is not None)

    assert [False, True, True, False] == seen
    assert 1 == len(reports.statuses)
