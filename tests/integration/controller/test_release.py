"""An idle owner goes, and comes back: on a real API server, with the controller's own rights."""

import json

import pytest

from gpufence import names
from kube import PatchType
from tests.support.controller.site import DEPLOYMENTS, ControllerSite, worker
from tests.support.observing import eventually, wait_until

pytestmark = pytest.mark.usefixtures("followed")


def test_an_idle_owner_is_announced_released_and_noted(
    site: ControllerSite, full_namespace: str
) -> None:
    """Its replicas are gone, its note says how many there were, and Events say what happened."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker", 2)
    with site.controller() as controller:
        wait_until(lambda: site.phase(full_namespace, "worker") == "released", controller.lines)
        note = site.note(full_namespace, "worker")
        site.wait_for_pods(full_namespace, 0)
        wait_until(lambda: site.events(full_namespace, names.IDLE_RELEASED))
        wait_until(lambda: controller.owner(full_namespace, "worker")["state"] == "released")

    assert note is not None
    assert (2, 0) == (note.replicas, site.replicas(full_namespace, "worker"))
    assert 1 == len(site.events(full_namespace, names.IDLE_WARNING))
    assert 2 == len(site.events(full_namespace, names.IDLE_WARNING, "Pod"))


def test_a_busy_owner_stays(site: ControllerSite, full_namespace: str) -> None:
    """One pod that works is enough."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "idler", 1)
    site.played.busy.add("worker")
    site.deploy(full_namespace, "worker", 2)
    with site.controller() as controller:
        wait_until(lambda: site.phase(full_namespace, "idler") == "released", controller.lines)
        shown = controller.owner(full_namespace, "worker")

    assert "busy" == shown["state"]
    assert 2 == site.replicas(full_namespace, "worker")
    assert site.note(full_namespace, "worker") is None


@pytest.mark.parametrize("rung", ["report", "warn", None])
def test_nothing_is_released_where_the_namespace_does_not_say_so(
    site: ControllerSite, full_namespace: str, rung: str | None
) -> None:
    """Below release, nothing is changed."""
    site.fence(full_namespace, rung)
    site.deploy(full_namespace, "worker")
    with site.controller() as controller:
        wait_until(
            lambda: controller.owner(full_namespace, "worker").get("state") == "idle",
            controller.lines,
        )
        if rung == "warn":
            wait_until(lambda: site.events(full_namespace, names.IDLE_WARNING))

    assert 1 == site.replicas(full_namespace, "worker")
    assert site.note(full_namespace, "worker") is None


def apps(site: ControllerSite, namespace: str) -> list[str]:
    return [item["metadata"]["labels"]["app"] for item in site.pods(namespace)]


def test_the_place_of_an_idle_owner_goes_to_who_waits_and_comes_back(
    site: ControllerSite, full_namespace: str
) -> None:
    """
    Where somebody waits for that very GPU, an idle owner goes by its shorter time, and comes back
    when the other one is done.
    """
    site.fence(full_namespace, idle_after="1h", idle_after_contended="1s", wake="when-free")
    where = {"nodeSelector": {"pool": site.one}}
    site.deploy(full_namespace, "idler", 2, units=15, **where)
    site.wait_for_pods(full_namespace, 2)
    site.played.busy.add("job")
    with site.controller() as controller:
        wait_until(lambda: controller.owner(full_namespace, "idler").get("state") == "idle")
        site.deploy(full_namespace, "job", 1, units=15, **where)
        wait_until(lambda: site.phase(full_namespace, "idler") == "released", controller.lines)
        wait_until(lambda: ["job"] == apps(site, full_namespace), "the other one did not run alone")
        site.admin.delete(DEPLOYMENTS.path(full_namespace, "job"))
        wait_until(lambda: site.phase(full_namespace, "idler") == "woken", controller.lines)
        site.wait_for_pods(full_namespace, 2)
        wait_until(lambda: site.events(full_namespace, names.IDLE_WOKEN))
        note = site.note(full_namespace, "idler")

    assert note is not None
    assert ("when-free", ()) == (note.woken_by, note.contested)
    assert 2 == site.replicas(full_namespace, "idler")


def test_who_scales_up_again_twice_is_left_alone(site: ControllerSite, full_namespace: str) -> None:
    """A loop that wants its replicas back, as GitOps does, is fought no more than twice."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker", 2)
    with site.controller() as controller:
        for _ in range(2):
            wait_until(lambda: site.replicas(full_namespace, "worker") == 0, controller.lines)
            wait_until(lambda: site.phase(full_namespace, "worker") == "released")
            site.scale(full_namespace, "worker", 2)
            wait_until(lambda: site.phase(full_namespace, "worker") == "woken", controller.lines)
        wait_until(lambda: site.events(full_namespace, names.IDLE_CONTESTED), controller.lines)
        site.outlast(full_namespace)
        wanted = site.replicas(full_namespace, "worker")
        shown = controller.owner(full_namespace, "worker")
        releases = controller.acts("release")  # the witness's among them

    note = site.note(full_namespace, "worker")
    assert note is not None
    assert (2, True) == (len(note.contested), note.left_alone_until is not None)
    assert 2 == wanted
    assert 3 == releases
    assert "kept" == shown["state"], shown


FORGED = (
    "{",
    json.dumps(
        {"v": 1, "phase": "released", "at": "2026-01-01T00:00:00Z", "replicas": -3, "why": ""}
    ),
    json.dumps(
        {"v": 1, "phase": "released", "at": "2026-01-01T00:00:00Z", "replicas": 2**40, "why": ""}
    ),
    json.dumps({"v": 99}),
    "[]",
    "[" * 10_000,
)


def test_forged_notes_move_nobody(site: ControllerSite, full_namespace: str) -> None:
    """Owners whose note nobody can read are left alone, with replicas and without."""
    site.fence(full_namespace, wake="when-free")
    noted = {f"{kind}-{n}": text for n, text in enumerate(FORGED) for kind in ("there", "gone")}
    for name, text in noted.items():
        made = worker(name, int(name.startswith("there")))
        made["metadata"]["annotations"] = {names.RELEASED: text}
        site.admin.post(DEPLOYMENTS.path(full_namespace), made)
    with site.controller() as controller:
        site.outlast(full_namespace)
        why = {name: controller.owner(full_namespace, name).get("why", "") for name in noted}
        wanted = {name: site.replicas(full_namespace, name) for name in noted}

    assert [] == [name for name, text in why.items() if "left alone" not in text]
    assert {name: int(name.startswith("there")) for name in noted} == wanted
    assert noted == {
        name: site.owner(full_namespace, name).annotations[names.RELEASED] for name in noted
    }


def test_a_forged_note_gives_a_tenant_what_he_could_have_himself(
    site: ControllerSite, full_namespace: str
) -> None:
    """
    A note that can be read is obeyed on the very owner alone that the tenant may scale himself, and
    never beyond what fits.
    """
    site.fence(full_namespace, wake="when-free")
    text = json.dumps(
        {
            "v": 1,
            "phase": "released",
            "at": "2026-01-01T00:00:00Z",
            "replicas": 1_000_000,
            "why": "I say so",
        }
    )
    made = worker("greedy", 0)
    made["metadata"]["annotations"] = {names.RELEASED: text}
    site.admin.post(DEPLOYMENTS.path(full_namespace), made)
    with site.controller() as controller:
        wait_until(lambda: controller.owner(full_namespace, "greedy").get("state") == "released")
        site.outlast(full_namespace)

    assert 0 == site.replicas(full_namespace, "greedy")


def test_the_kill_switch_stops_releases_at_once(site: ControllerSite, full_namespace: str) -> None:
    """
    With max-idle at report, or without any ConfigMap, nothing is announced or released; turned
    back, it is.
    """
    site.fence(full_namespace)
    site.allow("report")
    try:
        site.deploy(full_namespace, "worker")
        with site.controller() as controller:
            wait_until(lambda: controller.owner(full_namespace, "worker").get("state") == "idle")
            kept = not eventually(lambda: site.replicas(full_namespace, "worker") == 0, 2.0)
            site.set_policy(None)
            gone = eventually(lambda: site.replicas(full_namespace, "worker") == 0, 2.0)
            said = site.events(full_namespace, names.IDLE_WARNING)
            site.allow("release")
            wait_until(lambda: site.phase(full_namespace, "worker") == "released")
    finally:
        site.allow("release")

    assert kept
    assert not gone
    assert [] == said


def test_words_on_an_owner_hold(site: ControllerSite, full_namespace: str) -> None:
    """An owner that is to be kept stays, until somebody takes the word away."""
    site.fence(full_namespace)
    made = worker("worker")
    made["metadata"]["annotations"] = {names.KEEP_UNTIL: "2999-01-01T00:00:00Z"}
    site.admin.post(DEPLOYMENTS.path(full_namespace), made)
    with site.controller() as controller:
        wait_until(lambda: controller.owner(full_namespace, "worker").get("state") == "kept")
        site.outlast(full_namespace)
        wanted = site.replicas(full_namespace, "worker")
        nothing = {"metadata": {"annotations": {names.KEEP_UNTIL: None}}}
        path = DEPLOYMENTS.path(full_namespace, "worker")
        site.admin.patch(path, nothing, PatchType.MERGE)
        wait_until(lambda: site.phase(full_namespace, "worker") == "released", controller.lines)

    assert 1 == wanted
