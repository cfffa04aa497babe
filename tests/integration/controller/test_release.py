"""An idle owner goes, and comes back: on a real API server, with the controller's own rights."""

import json

import pytest

from gpufence import names
from kube import PatchType, core, group
from tests.support.controller.site import DEPLOYMENTS, ControllerProcess, ControllerSite, worker
from tests.support.observing import eventually, wait_until

pytestmark = pytest.mark.usefixtures("followed")


def test_an_idle_owner_is_announced_released_and_noted(
    site: ControllerSite, full_namespace: str
) -> None:
    """Its replicas are gone, its note says how many there were, and Events say what happened."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker", 2)
    with site.controller() as controller:
        wait_for(site, controller, full_namespace, "worker")
        note = site.note(full_namespace, "worker")
        site.wait_for_pods(full_namespace, 0)
        wait_until(lambda: site.events(full_namespace, names.IDLE_RELEASED))
        wait_until(lambda: controller.owner(full_namespace, "worker")["state"] == "released")

    assert note is not None
    assert (2, 0) == (note.replicas, site.replicas(full_namespace, "worker"))
    assert 1 == len(site.events(full_namespace, names.IDLE_WARNING))
    assert 2 == len(site.events(full_namespace, names.IDLE_WARNING, "Pod"))


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "one"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "budgeted"}}},
}
SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "by-load"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
        "maxReplicas": 3,
        "metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 80},
                },
            }
        ],
    },
}
WHY = {
    "busy": "uses its GPU",
    "kept": "it is to be kept until 2999-01-01T00:00:00Z",
    "budgeted": "PodDisruptionBudget lets 1 go",
    "scaled": "HorizontalPodAutoscaler by-load scales it",
    "pod": "a bare pod would not be made again",
    "job": "a Job ends by itself",
    "set": "a DaemonSet has a pod on each of its nodes",
}
HELD = ("busy", "kept", "budgeted", "scaled")


def keep(site: ControllerSite, namespace: str, until: str | None) -> None:
    said = {"metadata": {"annotations": {names.KEEP_UNTIL: until}}}
    site.admin.patch(DEPLOYMENTS.path(namespace, "kept"), said, PatchType.MERGE)


def make_unowned(site: ControllerSite, namespace: str) -> None:
    """Make a bare pod, a Job and a DaemonSet, which do not come back."""
    templates = {name: worker(name, units=1)["spec"]["template"] for name in ("pod", "job", "set")}
    pod = {"apiVersion": "v1", "kind": "Pod", **templates["pod"], "metadata": {"name": "pod"}}
    site.admin.post(core("namespaces", namespace, "pods"), pod)
    labels = templates["set"]["metadata"]["labels"]
    templates["job"]["spec"]["restartPolicy"] = "Never"
    templates["job"]["metadata"] = {}
    for api_version, kind, plural, spec in (
        ("batch/v1", "Job", "jobs", {}),
        ("apps/v1", "DaemonSet", "daemonsets", {"selector": {"matchLabels": labels}}),
    ):
        name = "job" if kind == "Job" else "set"
        item = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
        item["spec"] = {**spec, "template": templates[name]}
        site.admin.post(group(api_version, "namespaces", namespace, plural), item)


def test_what_is_held_stays_until_nothing_holds_it(
    site: ControllerSite, full_namespace: str
) -> None:
    """By work, a person's word, a budget or an autoscaler; what cannot come back never goes."""
    site.fence(full_namespace)
    site.played.busy.add("busy")
    for name in HELD:
        site.deploy(full_namespace, name, 2 if name == "budgeted" else 1, units=1)
    keep(site, full_namespace, "2999-01-01T00:00:00Z")
    make_unowned(site, full_namespace)
    site.wait_for_pods(full_namespace, 9)
    budgets = group("policy/v1", "namespaces", full_namespace, "poddisruptionbudgets")
    scalers = group("autoscaling/v2", "namespaces", full_namespace, "horizontalpodautoscalers")
    site.admin.post(budgets, BUDGET)
    site.admin.post(scalers, SCALER)
    wait_until(
        lambda: site.admin.get(f"{budgets}/one").get("status", {}).get("disruptionsAllowed") == 1
    )
    with site.controller() as controller:
        site.outlast(full_namespace)
        why = {name: controller.owner(full_namespace, name)["why"] for name in WHY}
        wanted = [site.replicas(full_namespace, name) for name in HELD]
        left = len(site.pods(full_namespace))
        site.played.busy.clear()
        keep(site, full_namespace, None)
        site.admin.delete(f"{budgets}/one")
        site.admin.delete(f"{scalers}/by-load")
        for name in HELD:
            wait_for(site, controller, full_namespace, name)
        site.admin.delete(DEPLOYMENTS.path(full_namespace, "kept"))
        wait_until(lambda: not controller.owner(full_namespace, "kept"))

    assert [] == [name for name, text in WHY.items() if text not in why[name]], why
    assert ([1, 1, 2, 1], 9) == (wanted, left)


def wait_for(
    site: ControllerSite, controller: ControllerProcess, namespace: str, name: str
) -> None:
    wait_until(lambda: site.phase(namespace, name) == "released", controller.lines)


def test_nothing_is_released_where_the_namespace_does_not_say_so(
    site: ControllerSite, full_namespace: str
) -> None:
    """Without a label, at report and at warn, which says so, nothing is changed."""
    site.fence(full_namespace, None)
    site.deploy(full_namespace, "worker")
    with site.controller() as controller:

        def why(text: str) -> bool:
            return text in controller.owner(full_namespace, "worker").get("why", "")

        wait_until(lambda: why("its namespace has no label"), controller.lines)
        site.fence(full_namespace, "report")
        wait_until(lambda: why("is only report here"), controller.lines)
        site.fence(full_namespace, "warn")
        wait_until(lambda: site.events(full_namespace, names.IDLE_WARNING), controller.lines)
        wait_until(lambda: why("since gpufence.io/idle is warn"), controller.lines)

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


MILLION = {"v": 1, "phase": "released", "at": "2026-01-01T00:00:00Z", "replicas": 10**6, "why": ""}


def test_forged_notes_move_nothing(site: ControllerSite, full_namespace: str) -> None:
    """
    Owners whose note cannot be read are left alone, with replicas and without; one that can be is
    obeyed on the very owner that the tenant may scale himself, and never beyond what fits.
    """
    site.fence(full_namespace, wake="when-free")
    noted = {f"{kind}-{n}": text for n, text in enumerate(FORGED) for kind in ("there", "gone")}
    for name, text in noted.items():
        made = worker(name, int(name.startswith("there")))
        made["metadata"]["annotations"] = {names.RELEASED: text}
        site.admin.post(DEPLOYMENTS.path(full_namespace), made)
    greedy = worker("greedy", 0)
    greedy["metadata"]["annotations"] = {names.RELEASED: json.dumps(MILLION)}
    site.admin.post(DEPLOYMENTS.path(full_namespace), greedy)
    with site.controller() as controller:
        wait_until(lambda: controller.owner(full_namespace, "greedy").get("state") == "released")
        site.outlast(full_namespace)
        why = {name: controller.owner(full_namespace, name).get("why", "") for name in noted}
        wanted = {name: site.replicas(full_namespace, name) for name in noted}

    assert [] == [name for name, text in why.items() if "left alone" not in text]
    assert {name: int(name.startswith("there")) for name in noted} == wanted
    assert 0 == site.replicas(full_namespace, "greedy")
    assert noted == {
        name: site.owner(full_namespace, name).annotations[names.RELEASED] for name in noted
    }


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
            kept = not eventually(lambda: site.replicas(full_namespace, "worker") == 0, 1.2)
            site.set_policy(None)
            gone = eventually(lambda: site.replicas(full_namespace, "worker") == 0, 1.2)
            said = site.events(full_namespace, names.IDLE_WARNING)
            site.allow("release")
            wait_until(lambda: site.phase(full_namespace, "worker") == "released")
    finally:
        site.allow("release")

    assert kept
    assert not gone
    assert [] == said
