"""
The status of a pod.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from simulator.node.lifecycle import Record, Running, Terminated, Waiting, fresh
from simulator.node.status import Verdict, failed_status, phase, pod_status
from tests.unit.simulator.node.builders import NODE, container, ended, pod, running, waiting

if TYPE_CHECKING:
    from simulator.node.pod import Pod

SIDECAR = container("s", restartPolicy="Always")
ID = "c" * 64


def crashing() -> Record:
    last = Terminated(ID, "T1", "T2", 1)
    return Record(Waiting("CrashLoopBackOff", "back-off"), last=last, restarts=2)


def status(found: Pod, *, terminal: bool = False, **records: Record) -> Any:
    every = {**fresh(found), **records}
    return pod_status(found, every, NODE, ("T0", "T9"), terminal=terminal)


@pytest.mark.parametrize(
    ("restart", "records", "expected"),
    [
        ("Always", {}, "Pending"),
        ("Always", {"i": running()}, "Pending"),
        ("Always", {"i": ended(1)}, "Pending"),
        ("Never", {"i": ended(1)}, "Failed"),
        ("Always", {"i": ended()}, "Pending"),
        ("Always", {"i": ended(), "s": running()}, "Pending"),
        ("Always", {"i": ended(), "s": running(), "a": running()}, "Pending"),
        ("Always", {"i": ended(), "s": running(), "a": running(), "b": running()}, "Running"),
        ("Always", {"i": ended(), "s": ended(1), "a": running(), "b": running()}, "Running"),
        ("Always", {"i": ended(), "s": running(), "a": crashing(), "b": running()}, "Running"),
        ("Always", {"i": ended(), "a": crashing(), "b": ended()}, "Running"),
        ("OnFailure", {"i": ended(), "a": crashing(), "b": ended()}, "Running"),
        ("OnFailure", {"i": ended(), "a": ended(), "b": ended()}, "Succeeded"),
        ("Never", {"i": ended(), "a": ended(1), "b": running()}, "Running"),
        ("Never", {"i": ended(), "a": ended(1), "b": ended()}, "Failed"),
        ("Never", {"i": ended(), "a": ended(), "b": ended()}, "Succeeded"),
        ("Never", {"i": ended(), "s": running(), "a": ended(), "b": ended()}, "Running"),
    ],
)
def test_the_phase_sums_up(restart: str, records: dict[str, Record], expected: str) -> None:
    """
    The phase follows from the containers and the restart policy as in the kubelet.
    """
    found = pod(container("a"), container("b"), inits=(container("i"), SIDECAR), restart=restart)

    assert expected == phase(found, {**fresh(found), **records})


@pytest.mark.parametrize(
    ("record", "expected"),
    [(ended(), "Succeeded"), (ended(143), "Failed"), (crashing(), "Failed"), (waiting(), "Failed")],
)
def test_a_terminal_pod_has_an_end(record: Record, expected: str) -> None:
    """
    A pod that is over for good has succeeded only if all its containers have.
    """
    assert expected == phase(pod(), {"main": record}, terminal=True)


def test_a_terminal_pod_that_still_runs_is_running() -> None:
    """
    As long as a process lives, the pod is not over.
    """
    assert "Running" == phase(pod(), {"main": running()}, terminal=True)


def test_addresses_are_those_of_the_node() -> None:
    """
    Pods run in their node's network, and their status says so.
    """
    found = status(pod())

    assert ("10.1.2.3", [{"ip": "10.1.2.3"}], "10.1.2.3", [{"ip": "10.1.2.3"}], "T0") == (
        found["podIP"],
        found["podIPs"],
        found["hostIP"],
        found["hostIPs"],
        found["startTime"],
    )


def test_a_running_container_is_shown() -> None:
    """
    A running container is ready, with its id and the time of its start.
    """
    (found,) = status(pod(), main=running(restarts=3))["containerStatuses"]

    assert {
        "name": "main",
        "image": "gpufence/workload",
        "imageID": "",
        "containerID": f"containerd://{ID}",
        "ready": True,
        "started": True,
        "restartCount": 3,
        "state": {"running": {"startedAt": "T1"}},
        "lastState": {},
    } == found


def test_a_container_that_failed_shows_why() -> None:
    """
    An ended container has its exit code and its last words.
    """
    (found,) = status(pod(restart="Never"), main=ended(137))["containerStatuses"]

    assert {
        "terminated": {
            "exitCode": 137,
            "reason": "Error",
            "message": "last words",
            "startedAt": "T1",
            "finishedAt": "T2",
            "containerID": f"containerd://{ID}",
        }
    } == found["state"]


def test_a_container_that_succeeded_is_completed() -> None:
    """
    The reason of an exit code of 0 is Completed.
    """
    (found,) = status(pod(restart="Never"), main=ended())["containerStatuses"]

    assert "Completed" == found["state"]["terminated"]["reason"]


def test_a_crashing_container_shows_both_states() -> None:
    """
    During back-off the container waits, and its last state says how it ended.
    """
    (found,) = status(pod(), main=crashing())["containerStatuses"]

    assert {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}} == found["state"]
    assert 1 == found["lastState"]["terminated"]["exitCode"]
    assert f"containerd://{ID}" == found["containerID"]


def test_a_deleted_pod_shows_how_its_crashing_container_ended() -> None:
    """
    In a pod that is over for good nothing waits any more.
    """
    (found,) = status(pod(), terminal=True, main=crashing())["containerStatuses"]

    assert 1 == found["state"]["terminated"]["exitCode"]
    assert {} == found["lastState"]


def test_a_container_that_was_never_started_has_no_id() -> None:
    """
    Before its first start a container waits and has no id.
    """
    (found,) = status(pod())["containerStatuses"]

    assert ("", {"waiting": {"reason": "ContainerCreating"}}) == (
        found["containerID"],
        found["state"],
    )


@pytest.mark.parametrize(("record", "ready"), [(running(), False), (ended(), True)])
def test_an_init_container_is_ready_once_it_has_succeeded(record: Record, *, ready: bool) -> None:
    """
    An init container counts as ready after its end, not before.
    """
    (found,) = status(pod(inits=(container("i"),)), i=record)["initContainerStatuses"]

    assert ready == found["ready"]


def test_a_sidecar_is_ready_while_it_runs() -> None:
    """
    A sidecar counts as ready like any container.
    """
    (found,) = status(pod(inits=(SIDECAR,)), s=running())["initContainerStatuses"]

    assert found["ready"]


def told(found: Any) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one.get("reason", "")) for one in found["conditions"]}


def test_a_pod_that_runs_is_ready() -> None:
    """
    All conditions of a running pod are true.
    """
    assert {("True", "")} == set(told(status(pod(), main=running())).values())


def test_a_pod_that_initializes_says_so() -> None:
    """
    Before its containers start a pod is neither initialized nor ready, each with its reason.
    """
    found = told(status(pod(inits=(container("i"),))))

    assert ("False", "ContainersNotInitialized") == found["Initialized"]
    assert ("False", "ContainersNotReady") == found["Ready"]


@pytest.mark.parametrize(("exit_code", "reason"), [(0, "PodCompleted"), (1, "PodFailed")])
def test_a_pod_that_is_over_is_not_ready(exit_code: int, reason: str) -> None:
    """
    A pod that has ended is not ready any more, and the reason tells how it ended.
    """
    found = told(status(pod(restart="Never"), main=ended(exit_code)))

    assert ("False", reason) == found["ContainersReady"]


def test_a_condition_that_did_not_change_keeps_its_time() -> None:
    """
    Only a condition whose status changes has a new time.
    """
    old = (
        {"type": "Initialized", "status": "True", "lastTransitionTime": "T1"},
        {"type": "Ready", "status": "False", "lastTransitionTime": "T1"},
    )
    found = status(replace(pod(), conditions=old), main=running())
    times = {one["type"]: one["lastTransitionTime"] for one in found["conditions"]}

    assert ("T1", "T9") == (times["Initialized"], times["Ready"])


def test_a_refused_pod_has_failed() -> None:
    """
    A pod that cannot run here has failed, with reason and message.
    """
    assert {
        "phase": "Failed",
        "reason": "Unsupported",
        "message": "why",
        "startTime": "T0",
    } == failed_status(Verdict("Unsupported", "why"), "T0")


def test_a_container_that_ended_quietly_has_no_message() -> None:
    """
    Where nothing was logged there is no message.
    """
    quiet = Terminated(ID, "T1", "T2", 0)
    (found,) = status(pod(restart="Never"), main=Record(quiet, last=quiet))["containerStatuses"]

    assert "message" not in found["state"]["terminated"]


def test_a_running_container_remembers_its_last_end() -> None:
    """
    After a restart the last state tells how the container ended before.
    """
    again = Record(Running("d" * 64, "T3"), last=Terminated(ID, "T1", "T2", 1), restarts=1)
    (found,) = status(pod(), main=again)["containerStatuses"]

    assert f"containerd://{ID}" == found["lastState"]["terminated"]["containerID"]
