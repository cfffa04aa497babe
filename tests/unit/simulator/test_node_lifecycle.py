"""What happens next in a pod's life, and the status that says so."""

from dataclasses import replace
from typing import Any

import pytest

from simulator.node.lifecycle import (
    ContainerRecord,
    RestartPauses,
    Running,
    Steps,
    Terminated,
    Waiting,
    crashed,
    fresh,
    next_steps,
    not_started,
    started,
)
from simulator.node.pod import NodePod
from simulator.node.status import PodFailure, failed_status, phase, pod_status
from tests.unit.simulator.builders import ADDRESS, container, ended, pod, running, waiting

NOW = 100.0
ID = "c" * 64
ENDING = Terminated(ID, "T1", "T2", 1)


def steps(read: NodePod, *, ending: bool = False, **records: ContainerRecord) -> Steps:
    return next_steps(read, {**fresh(read), **records}, NOW, ending=ending)


def crashing() -> ContainerRecord:
    return ContainerRecord(Waiting("CrashLoopBackOff", "back-off"), last=ENDING, restarts=2)


def status(read: NodePod, *, terminal: bool = False, **records: ContainerRecord) -> Any:
    every = {**fresh(read), **records}
    return pod_status(read, every, ADDRESS, ("T0", "T9"), terminal=terminal)


def shown(record: ContainerRecord, *, terminal: bool = False) -> Any:
    return status(pod(), terminal=terminal, main=record)["containerStatuses"][0]


def test_all_containers_start_at_once() -> None:
    """The containers of a pod start together."""
    assert Steps(start=("a", "b")) == steps(pod(container("a"), container("b")))


@pytest.mark.parametrize(("due", "start"), [(NOW + 1, ()), (NOW, ("main",))])
def test_back_off_delays_a_start(due: float, start: tuple[str, ...]) -> None:
    """A container is started again when its pause is over, not before."""
    assert Steps(start=start) == steps(pod(), main=ended(1, due=due))


@pytest.mark.parametrize(
    ("restart", "exit_code", "expected"),
    [
        ("Always", 0, Steps(start=("main",))),
        ("Always", 1, Steps(start=("main",))),
        ("OnFailure", 0, Steps(finished=True)),
        ("OnFailure", 1, Steps(start=("main",))),
        ("Never", 0, Steps(finished=True)),
        ("Never", 1, Steps(finished=True)),
    ],
)
def test_the_restart_policy_decides(restart: str, exit_code: int, expected: Steps) -> None:
    """What has ended starts again, or is over, as the restart policy says."""
    assert expected == steps(pod(restart=restart), main=ended(exit_code))


def test_a_pod_is_not_over_while_one_container_runs() -> None:
    """One running container keeps the pod going, whatever the others did."""
    read = pod(container("a"), container("b"), restart="Never")

    assert Steps() == steps(read, a=ended(1), b=running())


def test_an_ending_pod_stops_what_runs_and_is_finished_without() -> None:
    """A pod that is to end starts nothing any more; with nothing running it is finished."""
    both = pod(container("a"), container("b"))

    assert Steps(stop=("a",)) == steps(both, ending=True, a=running())
    assert Steps(finished=True) == steps(both, ending=True)


@pytest.mark.parametrize(
    ("failures", "ran", "expected"),
    [
        (0, 5, ContainerRecord(ENDING, ENDING, failures=1, due=NOW)),
        (
            2,
            5,
            ContainerRecord(
                Waiting("CrashLoopBackOff", "back-off 20s restarting container=main"),
                ENDING,
                failures=3,
                due=NOW + 20,
            ),
        ),
        (6, 600, ContainerRecord(ENDING, ENDING, failures=1, due=NOW)),
    ],
    ids=["first", "third", "forgiven"],
)
def test_crashes_wait_longer_each_time(
    failures: int, ran: float, expected: ContainerRecord
) -> None:
    """The first restart is at once, later ones after growing pauses; ten good minutes forgive."""
    record = running(failures=failures)

    assert expected == crashed("main", record, ENDING, RestartPauses(), ran=ran, now=NOW)


@pytest.mark.parametrize(
    ("restart", "failures", "state", "restarts"),
    [
        ("Never", 0, ENDING, 0),
        ("Always", 0, Waiting("RunContainerError", "words"), 0),
        ("Always", 1, Waiting("CrashLoopBackOff", "back-off 10s restarting container=main"), 1),
    ],
)
def test_what_the_runtime_cannot_start_waits_or_has_ended(
    restart: str, failures: int, state: Any, restarts: int
) -> None:
    """It waits as RunContainerError, later in back-off; without restarts it has ended."""
    ending = replace(ENDING, message="words")
    before = ended(1, failures=failures) if failures else waiting()
    read = pod(restart=restart)
    now = not_started(read, "main", before, ending, RestartPauses(), now=NOW)
    expected = ending if restart == "Never" else state

    assert (expected, restarts, ending) == (now.state, now.restarts, now.last)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 0), (2, 10), (3, 20), (6, 160), (7, 300), (5000, 300)]
)
def test_pauses_grow_up_to_a_limit(failures: int, seconds: float) -> None:
    """Pauses are none, 10 s, 20 s and so on up to five minutes."""
    assert seconds == RestartPauses().after(failures)


def test_a_restart_is_counted_and_remembers_the_ending() -> None:
    """Only a start after an ending counts as a restart, and the ending stays known."""
    now = Running("d", "T3")
    again = started(ended(), now)

    assert (0, 1) == (started(waiting(), now).restarts, again.restarts)
    assert ended().state == again.last


@pytest.mark.parametrize(
    ("restart", "records", "expected"),
    [
        ("Always", {}, "Pending"),
        ("Always", {"a": running()}, "Pending"),
        ("Always", {"a": running(), "b": running()}, "Running"),
        ("Always", {"a": crashing(), "b": ended()}, "Running"),
        ("OnFailure", {"a": crashing(), "b": ended()}, "Running"),
        ("OnFailure", {"a": ended(), "b": ended()}, "Succeeded"),
        ("Never", {"a": ended(1), "b": running()}, "Running"),
        ("Never", {"a": ended(1), "b": ended()}, "Failed"),
    ],
)
def test_the_phase_sums_up(
    restart: str, records: dict[str, ContainerRecord], expected: str
) -> None:
    """The phase follows from the containers and the restart policy as in the kubelet."""
    read = pod(container("a"), container("b"), restart=restart)

    assert expected == phase(read, {**fresh(read), **records})


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (ended(), "Succeeded"),
        (ended(143), "Failed"),
        (crashing(), "Failed"),
        (waiting(), "Failed"),
        (running(), "Running"),
    ],
)
def test_a_terminal_pod_has_an_end(record: ContainerRecord, expected: str) -> None:
    """A pod that is over for good has succeeded only if all its containers have."""
    assert expected == phase(pod(), {"main": record}, terminal=True)


def test_a_running_container_is_shown() -> None:
    """A running container is ready, with its id, the time of its start and how it ended before."""
    last = Terminated("d" * 64, "T1", "T2", 1)

    assert {
        "name": "main",
        "image": "gpufence/workload",
        "imageID": "",
        "containerID": f"containerd://{ID}",
        "ready": True,
        "started": True,
        "restartCount": 3,
        "state": {"running": {"startedAt": "T1"}},
        "lastState": {
            "terminated": {
                "exitCode": 1,
                "reason": "Error",
                "startedAt": "T1",
                "finishedAt": "T2",
                "containerID": f"containerd://{'d' * 64}",
            }
        },
    } == shown(running(restarts=3, last=last))


@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (137, "Error")])
def test_an_ended_container_shows_how(code: int, reason: str) -> None:
    """An ended container has its exit code, a reason and its last words."""
    ending = shown(ended(code))["state"]["terminated"]

    assert (code, reason, "last words") == (ending["exitCode"], ending["reason"], ending["message"])


def test_a_crashing_container_shows_both_states() -> None:
    """During back-off the container waits, and its last state says how it ended."""
    container_status = shown(crashing())

    assert {"reason": "CrashLoopBackOff", "message": "back-off"} == (
        container_status["state"]["waiting"]
    )
    assert 1 == container_status["lastState"]["terminated"]["exitCode"]
    assert f"containerd://{ID}" == container_status["containerID"]


def test_nothing_waits_in_a_pod_that_is_over_for_good() -> None:
    """A deleted pod's crashing container shows how it ended."""
    container_status = shown(crashing(), terminal=True)

    assert (1, {}) == (
        container_status["state"]["terminated"]["exitCode"],
        container_status["lastState"],
    )


def test_a_container_that_was_never_started_has_no_id() -> None:
    """Before its first start a container waits and has no id."""
    container_status = shown(waiting())

    assert ("", {"waiting": {"reason": "ContainerCreating"}}) == (
        container_status["containerID"],
        container_status["state"],
    )


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (running(), ("True", "")),
        (waiting(), ("False", "ContainersNotReady")),
        (ended(0), ("False", "PodCompleted")),
        (ended(1), ("False", "PodFailed")),
    ],
)
def test_readiness_has_its_reason(record: ContainerRecord, expected: tuple[str, str]) -> None:
    """A pod is ready while all its containers run; else the condition says why not."""
    conditions = status(pod(restart="Never"), main=record)["conditions"]
    ready = next(one for one in conditions if one["type"] == "Ready")

    assert expected == (ready["status"], ready.get("reason", ""))


def test_a_condition_that_did_not_change_keeps_its_time() -> None:
    """Only a condition whose status changes has a new time."""
    old = (
        {"type": "Initialized", "status": "True", "lastTransitionTime": "T1"},
        {"type": "Ready", "status": "False", "lastTransitionTime": "T1"},
    )
    conditions = status(replace(pod(), conditions=old), main=running())["conditions"]
    times = {one["type"]: one["lastTransitionTime"] for one in conditions}

    assert ("T1", "T9") == (times["Initialized"], times["Ready"])


def test_a_refused_pod_has_failed() -> None:
    """A pod that cannot run here has failed, with reason and message."""
    assert {
        "phase": "Failed",
        "reason": "Unsupported",
        "message": "why",
        "startTime": "T0",
    } == failed_status(PodFailure("Unsupported", "why"), "T0")
