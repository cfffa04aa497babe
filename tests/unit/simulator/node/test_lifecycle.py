"""
What happens next in a pod's life.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from simulator.node.lifecycle import (
    Pauses,
    Record,
    Run,
    Running,
    Steps,
    Terminated,
    Waiting,
    comes_again,
    ended,
    fresh,
    init_failed,
    is_final,
    is_initialized,
    is_over,
    next_steps,
    started,
)
from tests.unit.simulator.node import builders
from tests.unit.simulator.node.builders import container, pod, running, waiting

if TYPE_CHECKING:
    from simulator.node.pod import Pod

NOW = 100.0
SIDECAR = container("s", restartPolicy="Always")
INITS = (container("i"), SIDECAR, container("j"))


def steps(found: Pod, *, ending: bool = False, **records: Record) -> Steps:
    return next_steps(found, {**fresh(found), **records}, NOW, ending=ending)


def done(exit_code: int = 0, **fields: Any) -> Record:
    return builders.ended(exit_code, **fields)


def test_all_containers_start_at_once() -> None:
    """
    Without init containers all others start together.
    """
    assert Steps(start=("a", "b")) == steps(pod(container("a"), container("b")))


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ({}, ("i",)),
        ({"i": running()}, ()),
        ({"i": done()}, ("s",)),
        ({"i": done(), "s": running()}, ("j",)),
        ({"i": done(), "s": running(), "j": running()}, ()),
        ({"i": done(), "s": running(), "j": done()}, ("main",)),
    ],
)
def test_init_containers_start_one_after_the_other(
    records: dict[str, Record], expected: tuple[str, ...]
) -> None:
    """
    Each init container waits for the end, each sidecar only for the start, of the one before.
    """
    assert Steps(start=expected) == next_steps(
        pod(inits=INITS), {**fresh(pod(inits=INITS)), **records}, NOW, ending=False
    )


def test_a_sidecar_that_died_is_started_before_anything_else() -> None:
    """
    During initialization a sidecar that ended comes again before the next container's turn.
    """
    assert Steps(start=("s",)) == steps(pod(inits=INITS), i=done(), s=done(1))


def test_a_sidecar_comes_again_beside_running_containers() -> None:
    """
    After initialization a sidecar that ended is started again without disturbing the rest.
    """
    found = steps(pod(inits=INITS), i=done(), s=done(1), j=done(), main=running())

    assert Steps(start=("s",)) == found


def test_back_off_delays_a_start() -> None:
    """
    A container whose pause is not over is not started yet.
    """
    assert Steps() == steps(pod(), main=done(1, due=NOW + 1))


def test_the_end_of_back_off_starts() -> None:
    """
    A container whose pause is over is started.
    """
    assert Steps(start=("main",)) == steps(pod(), main=done(1, due=NOW))


def test_a_delayed_init_container_holds_everything_up() -> None:
    """
    While an init container waits for its next try nothing behind it starts.
    """
    assert Steps() == steps(pod(inits=INITS), i=done(1, due=NOW + 1))


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
    """
    What has ended starts again, or is over, as the restart policy says.
    """
    assert expected == steps(pod(restart=restart), main=done(exit_code))


def test_a_pod_is_not_over_while_one_container_runs() -> None:
    """
    One running container keeps the pod going, whatever the others did.
    """
    found = steps(pod(container("a"), container("b"), restart="Never"), a=done(1), b=running())

    assert Steps() == found


def test_a_failed_init_container_of_a_pod_that_never_restarts_ends_it() -> None:
    """
    With Never a failed init container is the end: sidecars are stopped, nothing else starts.
    """
    found = steps(pod(inits=(SIDECAR, container("i")), restart="Never"), s=running(), i=done(1))

    assert Steps(stop=("s",)) == found


def test_sidecars_stop_when_the_work_is_done() -> None:
    """
    When all other containers are done, sidecars stop one by one, the last one first.
    """
    second = container("t", restartPolicy="Always")
    found = pod(inits=(SIDECAR, second), restart="Never")

    assert Steps(stop=("t",)) == steps(found, s=running(), t=running(), main=done())


def test_deletion_stops_everything_but_sidecars_first() -> None:
    """
    A deleted pod's containers stop together, before its sidecars.
    """
    found = steps(
        pod(container("a"), container("b"), inits=(SIDECAR,)),
        ending=True,
        s=running(),
        a=running(),
        b=running(),
    )

    assert Steps(stop=("a", "b")) == found


def test_deletion_of_a_pod_that_was_never_started_is_done_at_once() -> None:
    """
    A deleted pod of which nothing runs is finished, and nothing of it starts any more.
    """
    assert Steps(finished=True) == steps(pod(), ending=True)


def test_a_first_crash_is_answered_at_once() -> None:
    """
    The first restart comes without a pause, and the container shows how it ended.
    """
    ending = Terminated("c", "T1", "T2", 1)
    found = ended(pod().mains[0], running(), ending, Run(NOW, 5), Pauses())

    assert Record(ending, last=ending, failures=1, due=NOW) == found


def test_later_crashes_wait_twice_as_long_each_time() -> None:
    """
    The second restart waits for the first pause, and the container shows that it waits.
    """
    ending = Terminated("c", "T1", "T2", 1)
    found = ended(pod().mains[0], running(failures=2), ending, Run(NOW, 5), Pauses())
    state = Waiting("CrashLoopBackOff", "back-off 20s restarting container=main")

    assert Record(state, last=ending, failures=3, due=NOW + 20) == found


def test_a_long_run_forgives() -> None:
    """
    After a run of ten minutes the next crash counts as the first.
    """
    ending = Terminated("c", "T1", "T2", 1)
    found = ended(pod().mains[0], running(failures=6), ending, Run(NOW, 600), Pauses())

    assert (1, NOW) == (found.failures, found.due)


def test_an_ending_for_good_has_no_pause() -> None:
    """
    A container that does not come again keeps how it ended.
    """
    ending = Terminated("c", "T1", "T2", 1)

    assert Record(ending, last=ending) == ended(
        pod().mains[0], running(), ending, Run(NOW, 5), None
    )


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 0), (2, 10), (3, 20), (6, 160), (7, 300), (5000, 300)]
)
def test_pauses_grow_up_to_a_limit(failures: int, seconds: float) -> None:
    """
    Pauses are none, 10 s, 20 s and so on up to five minutes.
    """
    assert seconds == Pauses().after(failures)


def test_a_first_start_is_no_restart() -> None:
    """
    Only a start after an ending counts as a restart.
    """
    now = Running("d", "T3")

    assert (0, 1) == (started(waiting(), now).restarts, started(done(), now).restarts)


def test_a_start_remembers_how_the_container_ended_before() -> None:
    """
    The last ending stays known while the container runs again.
    """
    assert done().state == started(done(), Running("d", "T3")).last


@pytest.mark.parametrize(("main", "again"), [(running(), True), (done(), False)])
def test_a_sidecar_comes_again_while_there_is_work(main: Record, *, again: bool) -> None:
    """
    A sidecar is started again unless all other containers are done.
    """
    found = pod(inits=(SIDECAR,), restart="Never")

    assert again == comes_again(found, {"s": running(), "main": main}, found.inits[0], 0)


@pytest.mark.parametrize(("exit_code", "again"), [(0, False), (1, True)])
def test_a_container_comes_again_by_its_policy(exit_code: int, *, again: bool) -> None:
    """
    Any other container comes again as its restart policy says.
    """
    found = pod(restart="OnFailure")

    assert again == comes_again(found, fresh(found), found.mains[0], exit_code)


def test_what_runs_is_not_final() -> None:
    """
    A running container has not ended for good, however it ended before.
    """
    found = pod(restart="Never")

    assert not is_final(found.mains[0], started(done(), Running("d", "T3")))


def test_what_waits_for_its_first_start_is_not_final() -> None:
    """
    A container that was never started has not ended.
    """
    assert not is_final(pod(restart="Never").mains[0], waiting())


def test_initialized_stays_initialized() -> None:
    """
    Once another container was started a dead sidecar does not undo initialization.
    """
    found = pod(inits=(SIDECAR,))

    assert is_initialized(found, {"s": done(1), "main": running()})


def test_a_pod_of_running_sidecars_and_finished_inits_is_initialized() -> None:
    """
    Initialization is complete when init containers have succeeded and sidecars run.
    """
    found = pod(inits=INITS)

    assert is_initialized(found, {**fresh(found), "i": done(), "s": running(), "j": done()})


def test_a_pod_whose_init_container_failed_for_good_is_over() -> None:
    """
    An init container that failed under Never ends the pod's work.
    """
    found = pod(inits=(container("i"),), restart="Never")
    records = {**fresh(found), "i": done(1)}

    assert init_failed(found, records)
    assert is_over(found, records)


def test_containers_of_a_pod_with_init_containers_say_what_they_wait_for() -> None:
    """
    Before anything is started, containers wait for creation or, with init containers, for those.
    """
    assert (Waiting("ContainerCreating"), Waiting("PodInitializing")) == (
        fresh(pod())["main"].state,
        fresh(pod(inits=INITS))["main"].state,
    )
