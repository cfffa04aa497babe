"""Acts that are cut short anywhere: nothing is scaled twice, and nothing that was noted is lost."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from gpufence import names
from kube import PatchType, core, group
from tests.support.controller.gate import Gate, Trouble, noting, scaling
from tests.support.controller.site import DEPLOYMENTS, ControllerProcess, ControllerSite
from tests.support.observing import eventually, wait_until


@pytest.fixture
def gate(site: ControllerSite) -> Iterator[Gate]:
    with Gate(site.plane) as opened:
        yield opened
        opened.let_go()


@pytest.fixture
def worker(site: ControllerSite, full_namespace: str) -> str:
    """Two idle workers in a namespace that lets them go."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker", 2)
    site.wait_for_pods(full_namespace, 2)
    return full_namespace


@pytest.fixture
def wanted(site: ControllerSite, worker: str) -> Iterator[list[int]]:
    """Return all numbers of replicas that anybody has wanted since."""
    with site.history(worker, "worker") as seen:
        yield seen


def behind(gate: Gate, site: ControllerSite, folder: Path, **settings: str) -> ControllerProcess:
    """Return a controller whose requests go through the gate."""
    token = site.plane.service_account_token(site.system, names.CONTROLLER)
    return site.controller(KUBECONFIG=str(gate.kubeconfig(folder, token)), **settings)


def settled(site: ControllerSite, namespace: str, name: str = "worker") -> bool:
    return site.phase(namespace, name) == "released"


def assert_released_once(
    site: ControllerSite, namespace: str, wanted: list[int], name: str = "worker"
) -> None:
    """Both replicas are noted, and were taken once."""
    note = site.note(namespace, name)
    wait_until(lambda: wanted[-1] == 0)

    assert note is not None
    assert ("released", 2) == (str(note.phase), note.replicas)
    assert [2, 0] == wanted


CUT = {
    "note-lost": (Trouble.LOSE, noting),
    "scale-lost": (Trouble.LOSE, scaling),
    "note-unanswered": (Trouble.LOSE_ANSWER, noting),
    "scale-unanswered": (Trouble.LOSE_ANSWER, scaling),
}


def test_what_is_lost_on_the_way_is_made_up_for(
    site: ControllerSite, full_namespace: str, gate: Gate, tmp_path: Path
) -> None:
    """
    What never arrived is undone, and done anew; what arrived all the same is seen, and finished.
    """
    site.fence(full_namespace)
    for name, (what, chosen) in CUT.items():
        gate.trouble(what, chosen(name))
        site.deploy(full_namespace, name, 2)
    site.wait_for_pods(full_namespace, 2 * len(CUT))
    with ExitStack() as following, behind(gate, site, tmp_path) as controller:
        wanted = {name: following.enter_context(site.history(full_namespace, name)) for name in CUT}
        wait_until(lambda: gate.over_with, controller.lines)
        wait_until(
            lambda: all(settled(site, full_namespace, name) for name in CUT), controller.lines
        )
        for name in CUT:
            assert_released_once(site, full_namespace, wanted[name], name)


def test_an_api_server_that_goes_in_mid_act_changes_nothing(
    site: ControllerSite, worker: str, wanted: list[int], gate: Gate, tmp_path: Path
) -> None:
    """
    Between the note and the scaling it is stopped; when it is back, the release ends as it should.
    """
    gate.trouble(Trouble.HOLD, scaling("worker"))
    with behind(gate, site, tmp_path, GPUFENCE_REQUEST_SECONDS="1.4") as controller:
        wait_until(gate.held.is_set, controller.lines)
        site.plane.stop_api_server()
        gate.let_go()
        stale = eventually(lambda: not controller.metrics()["gpufence_controller_fresh"])
        site.plane.start_api_server()
        wait_until(lambda: settled(site, worker), controller.lines)

    assert stale
    assert_released_once(site, worker, wanted)


def test_an_api_server_that_stores_nothing_ends_the_acting(
    site: ControllerSite, worker: str, wanted: list[int], gate: Gate, tmp_path: Path
) -> None:
    """
    As with a full disk under etcd, from the note on: nothing is scaled and nobody leads; once it
    stores again, the release ends as it should.
    """
    gate.trouble(Trouble.HOLD_ANSWER, noting("worker"))
    with behind(gate, site, tmp_path, GPUFENCE_REQUEST_SECONDS="1.4") as controller:
        wait_until(gate.held.is_set, controller.lines)
        gate.refuse(lambda method, _: method != "GET")
        gate.let_go()
        wait_until(lambda: not controller.metrics()["gpufence_controller_leader"])
        scaled = site.replicas(worker, "worker")
        gate.let_in()
        wait_until(lambda: settled(site, worker), controller.lines)

    assert 2 == scaled
    assert_released_once(site, worker, wanted)


@pytest.mark.parametrize(
    "where",
    [pytest.param("before the scaling", marks=pytest.mark.nightly), "in the scaling"],
)
def test_a_leader_that_sleeps_in_mid_act_does_not_act_when_it_wakes(
    site: ControllerSite, worker: str, wanted: list[int], gate: Gate, tmp_path: Path, where: str
) -> None:
    """
    Another one has taken over, and finished or undone what was begun: the first one's request comes
    too late, or is not made.
    """
    long = {"GPUFENCE_REQUEST_SECONDS": "1.4"}
    if where == "in the scaling":
        gate.trouble(Trouble.HOLD, scaling("worker"))
    else:
        gate.trouble(Trouble.HOLD_ANSWER, noting("worker"))
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
                again = eventually(lambda: not settled(site, worker), 1.0)
                scaled = scaling("worker")
                late = [status for method, path, status in gate.statuses if scaled(method, path)]
        finally:
            first.process.send_signal(signal.SIGCONT)

    assert not again
    assert ([409] if where == "in the scaling" else []) == late
    assert_released_once(site, worker, wanted)


def test_of_two_one_acts(site: ControllerSite, worker: str, wanted: list[int]) -> None:
    """Both know the same, one releases; when that one ends, the other acts within seconds."""
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
    """Somebody who takes the Lease by force is believed: nothing is released any more."""
    site.played.busy.add("worker")
    path = group("coordination.k8s.io/v1", "namespaces", site.system, "leases", names.CONTROLLER)
    with site.controller() as controller:
        controller.wait_until_leading()
        taken = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}}
        site.admin.patch(path, taken, PatchType.MERGE)
        wait_until(lambda: not controller.metrics()["gpufence_controller_leader"])
        site.played.busy.clear()
        released = eventually(lambda: site.replicas(worker, "worker") == 0, 2.5)
        site.admin.patch(path, {"spec": {"holderIdentity": ""}}, PatchType.MERGE)
        wait_until(lambda: settled(site, worker), controller.lines)

    assert not released


def test_agents_that_do_not_tell_stop_a_release(site: ControllerSite, full_namespace: str) -> None:
    """Pods say that they are idle, but their agents do not answer, or tell of long ago."""
    site.agents.silent.add(site.one)
    site.agents.stale.add(site.two)

    assert_called_off(site, full_namespace, {"silent": site.one, "stale": site.two})


def test_agents_that_say_something_else_stop_a_release(
    site: ControllerSite, full_namespace: str
) -> None:
    """By now a pod works, or is unknown; or there is no agent on its node to be asked."""
    site.played.contradictions |= {"working": "busy", "veiled": "Unknown"}
    placed = {"working": site.one, "veiled": site.one, "alone": site.two}

    assert_called_off(
        site, full_namespace, placed, GPUFENCE_AGENTS=site.agents.setting_of(site.one)
    )


def assert_called_off(
    site: ControllerSite, namespace: str, placed: dict[str, str], **settings: str
) -> None:
    """None of these owners is released, and it is said why."""
    site.fence(namespace)
    for name, node in placed.items():
        site.deploy(namespace, name, 2, nodeSelector={"pool": node})
    site.wait_for_pods(namespace, 2 * len(placed))
    with site.controller(**settings) as controller:
        wait_until(
            lambda: controller.acts("release", "called-off") >= len(placed), controller.lines
        )
        released = eventually(lambda: any(site.replicas(namespace, n) == 0 for n in placed), 1.0)
        why = [controller.owner(namespace, name)["why"] for name in placed]
        released_at_all = controller.acts("release")

    assert not released
    assert 0 == released_at_all
    assert [None] * len(placed) == [site.note(namespace, name) for name in placed]
    assert all(why)


def test_a_clock_that_is_behind_releases_nobody_too_soon(
    site: ControllerSite, full_namespace: str
) -> None:
    """
    By the conditions from such a node everybody has been idle for longer; its agent counts seconds.
    """
    site.played.clock_ahead_seconds = -600.0
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker")
    site.wait_for_pods(full_namespace, 1)
    with site.controller(GPUFENCE_RELEASE_AFTER_SECONDS="120") as controller:
        wait_until(lambda: controller.acts("release", "called-off"), controller.lines)
        released = eventually(lambda: site.replicas(full_namespace, "worker") == 0, 2.0)

    assert not released


def test_a_controller_whose_clock_is_wrong_releases_nobody(
    site: ControllerSite, worker: str, gate: Gate, tmp_path: Path
) -> None:
    """
    By a clock that is ahead everybody has been idle for longer, and is kept no more; once it is as
    the API server's again, all goes on.
    """
    kinds = {"GPUFENCE_KINDS_SECONDS": "0.5"}
    gate.clock_ahead_seconds = 3600.0
    with behind(gate, site, tmp_path, **kinds) as controller:
        for ahead in (-3600.0, 3600.0):
            gate.clock_ahead_seconds = -ahead
            word = "ahead" if ahead > 0 else "behind"
            wait_until(partial(_says, controller, "this machine's clock is", word))
            released = eventually(lambda: site.replicas(worker, "worker") == 0, 1.5)
            fresh = controller.metrics()["gpufence_controller_fresh"]

            assert (False, 0) == (released, fresh)
        gate.clock_ahead_seconds = 0.0
        wait_until(lambda: settled(site, worker), controller.lines)


def _says(controller: ControllerProcess, *parts: str) -> bool:
    page = controller.get("/readyz")[1]
    return all(part in page for part in parts)


@pytest.mark.nightly
def test_who_is_made_anew_in_mid_announcement_is_told_anew(
    site: ControllerSite, worker: str
) -> None:
    """An owner of the same name that has taken over the idle pods is another one."""
    slow = {"GPUFENCE_RELEASE_AFTER_SECONDS": "6", "GPUFENCE_RELEASE_NOTICE_SECONDS": "3"}
    before = site.owner(worker, "worker").uid
    with site.controller(**slow) as controller:
        wait_until(lambda: site.events(worker, names.IDLE_WARNING), controller.lines)
        path = DEPLOYMENTS.path(worker, "worker")
        site.admin.delete(path, {"propagationPolicy": "Orphan"})
        wait_until(lambda: not site.exists(path))
        after = site.deploy(worker, "worker", 2)["metadata"]["uid"]
        wait_until(lambda: settled(site, worker), controller.lines)

    listed = site.admin.list(core("namespaces", worker, "events")).items
    told = {
        item["involvedObject"]["uid"]
        for item in listed
        if item["reason"] == names.IDLE_WARNING and item["involvedObject"]["kind"] == "Deployment"
    }
    assert {before, after} == told


def test_a_label_taken_away_in_mid_announcement_calls_it_off(
    site: ControllerSite, worker: str
) -> None:
    """When it is back, everybody is told again."""
    slow = {"GPUFENCE_RELEASE_AFTER_SECONDS": "4", "GPUFENCE_RELEASE_NOTICE_SECONDS": "2"}
    with site.controller(**slow) as controller:
        wait_until(lambda: site.events(worker, names.IDLE_WARNING), controller.lines)
        site.fence(worker, None)
        released = eventually(lambda: site.replicas(worker, "worker") == 0, 2.5)
        site.fence(worker)
        wait_until(lambda: settled(site, worker), controller.lines)
        announced = controller.acts("announce")

    assert (False, 2) == (released, announced)
