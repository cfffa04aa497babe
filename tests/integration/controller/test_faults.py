"""
Acts that are cut short anywhere: nothing is scaled twice, and nothing that was noted is lost.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufence import names
from kube import PatchType, group
from tests.support.controller.gate import Gate, noting, scaling
from tests.support.controller.process import ControllerProcess
from tests.support.controller.site import ControllerSite
from tests.support.observing import eventually, wait_until


@pytest.fixture
def gate(site: ControllerSite) -> Iterator[Gate]:
    with Gate(site.plane) as opened:
        yield opened
        opened.let_go()


@pytest.fixture
def worker(site: ControllerSite, full_namespace: str) -> str:
    """
    Two idle workers in a namespace that lets them go.
    """
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker", 2)
    site.wait_for_pods(full_namespace, 2)
    return full_namespace


@pytest.fixture
def wanted(site: ControllerSite, worker: str) -> Iterator[list[int]]:
    """
    Return all numbers of replicas that anybody has wanted since.
    """
    with site.history(worker, "worker") as seen:
        yield seen


def behind(gate: Gate, site: ControllerSite, folder: Path, **settings: str) -> ControllerProcess:
    """
    Return a controller whose requests go through the gate.
    """
    token = site.plane.service_account_token(site.system, names.CONTROLLER)
    return site.controller(KUBECONFIG=str(gate.kubeconfig(folder, token)), **settings)


def settled(site: ControllerSite, namespace: str) -> bool:
    return site.phase(namespace, "worker") == "released"


def assert_released_once(site: ControllerSite, namespace: str, wanted: list[int]) -> None:
    """
    Both replicas are noted, and were taken once.
    """
    note = site.note(namespace, "worker")
    wait_until(lambda: wanted[-1] == 0)

    assert note is not None
    assert ("released", 2) == (str(note.phase), note.replicas)
    assert [2, 0] == wanted


@pytest.mark.parametrize("chosen", [noting, scaling], ids=["note", "scale"])
def test_a_request_that_is_lost_is_made_up_for(
    site: ControllerSite, worker: str, wanted: list[int], gate: Gate, tmp_path: Path, chosen: object
) -> None:
    """
    What never arrived is undone, and done anew.
    """
    gate.lose(noting if chosen is noting else scaling)
    with behind(gate, site, tmp_path) as controller:
        wait_until(gate.lost.is_set, controller.lines)
        wait_until(lambda: settled(site, worker), controller.lines)

    assert_released_once(site, worker, wanted)


@pytest.mark.parametrize("chosen", [noting, scaling], ids=["note", "scale"])
def test_an_answer_that_is_lost_is_made_up_for(
    site: ControllerSite, worker: str, wanted: list[int], gate: Gate, tmp_path: Path, chosen: object
) -> None:
    """
    What arrived all the same is seen, and finished.
    """
    gate.lose_answer(noting if chosen is noting else scaling)
    with behind(gate, site, tmp_path) as controller:
        wait_until(gate.lost.is_set, controller.lines)
        wait_until(lambda: settled(site, worker), controller.lines)

    assert_released_once(site, worker, wanted)


def test_an_api_server_that_goes_in_mid_act_changes_nothing(
    site: ControllerSite, worker: str, wanted: list[int], gate: Gate, tmp_path: Path
) -> None:
    """
    Between the note and the scaling it is stopped; when it is back, the release ends as it should.
    """
    gate.hold(scaling)
    with behind(gate, site, tmp_path, GPUFENCE_REQUEST_SECONDS="1.4") as controller:
        wait_until(gate.held.is_set, controller.lines)
        site.plane.stop_api_server()
        gate.let_go()
        stale = eventually(lambda: not controller.metrics()["gpufence_controller_fresh"])
        site.plane.start_api_server()
        wait_until(lambda: settled(site, worker), controller.lines)

    assert stale
    assert_released_once(site, worker, wanted)


@pytest.mark.parametrize("where", ["before the scaling", "in the scaling"])
def test_a_leader_that_sleeps_in_mid_act_does_not_act_when_it_wakes(
    site: ControllerSite, worker: str, wanted: list[int], gate: Gate, tmp_path: Path, where: str
) -> None:
    """
    Another one has taken over, and finished or undone what was begun: the first one's request comes
    too late, or is not made.
    """
    long = {"GPUFENCE_REQUEST_SECONDS": "1.4"}
    if where == "in the scaling":
        gate.hold(scaling)
    else:
        gate.hold_answer(noting)
    with behind(gate, site, tmp_path, **long) as first:
        wait_until(gate.held.is_set, first.lines)
        first.process.send_signal(signal.SIGSTOP)
        try:
            with site.controller() as second:
                second.wait_until_leading()
                wait_until(lambda: settled(site, worker), second.lines)
                gate.let_go()
                first.process.send_signal(signal.SIGCONT)
                wait_until(lambda: not first.metrics()["gpufence_controller_leader"])
                again = eventually(lambda: not settled(site, worker), 2.0)
                late = [status for method, path, status in gate.statuses if scaling(method, path)]
        finally:
            first.process.send_signal(signal.SIGCONT)

    assert not again
    assert ([409] if where == "in the scaling" else []) == late
    assert_released_once(site, worker, wanted)


def test_of_two_one_acts(site: ControllerSite, worker: str, wanted: list[int]) -> None:
    """
    Both know the same, one releases; when that one ends, the other acts within seconds.
    """
    with site.controller() as first:
        first.wait_until_leading()
        with site.controller() as second:
            wait_until(lambda: settled(site, worker))
            wait_until(lambda: second.owner(worker, "worker").get("state") == "released")
            led = [each.owners()["leader"] for each in (first, second)]
            acted = [each.acts("release") for each in (first, second)]
            first.process.terminate()
            second.wait_until_leading()

    assert [True, False] == led
    assert [1, 0] == acted
    assert_released_once(site, worker, wanted)


def test_who_loses_the_lease_stops_acting(site: ControllerSite, worker: str) -> None:
    """
    Somebody who takes the Lease by force is believed: nothing is released any more.
    """
    site.played.busy.add("worker")
    path = group("coordination.k8s.io/v1", "namespaces", site.system, "leases", names.CONTROLLER)
    with site.controller() as controller:
        controller.wait_until_leading()
        taken = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}}
        site.admin.patch(path, taken, PatchType.MERGE)
        wait_until(lambda: not controller.metrics()["gpufence_controller_leader"])
        site.played.busy.clear()
        released = eventually(lambda: site.replicas(worker, "worker") == 0, 5.0)
        site.admin.patch(path, {"spec": {"holderIdentity": ""}}, PatchType.MERGE)
        wait_until(lambda: settled(site, worker), controller.lines)

    assert not released


@pytest.mark.parametrize("fault", ["silent", "stale", "busy by now", "unknown", "nowhere"])
def test_the_last_look_stops_a_release(site: ControllerSite, worker: str, fault: str) -> None:
    """
    Pods say that they are idle, but their agents do not, say something else, or do not answer.
    """
    settings = {}
    if fault == "silent":
        site.agents.silent.update(site.played.nodes)
    elif fault == "stale":
        site.agents.stale.update(site.played.nodes)
    elif fault == "nowhere":
        settings["GPUFENCE_AGENTS"] = "elsewhere=http://127.0.0.1:1"
    else:
        site.played.contradict(fault)
    try:
        with site.controller(**settings) as controller:
            wait_until(lambda: controller.acts("release", "called-off"), controller.lines)
            released = eventually(lambda: site.replicas(worker, "worker") == 0, 3.0)
            why = controller.owner(worker, "worker")["why"]
    finally:
        site.played.contradict("")

    assert not released
    assert site.note(worker, "worker") is None
    assert why
