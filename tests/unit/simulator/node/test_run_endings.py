"""
How pods end: by deletion, by force, and with their node.
"""

from __future__ import annotations

from kube import UnreachableError
from tests.unit.simulator.node.builders import container
from tests.unit.simulator.node.world import SIDECAR, World


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


def test_a_refused_pod_can_be_deleted() -> None:
    """
    A pod that was refused goes as soon as it is deleted.
    """
    world = World(container(image="busybox"))
    world.turn(1)
    world.delete(2)
    world.turn(2)

    assert world.run.is_gone


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
