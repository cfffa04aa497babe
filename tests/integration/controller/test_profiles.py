"""
From what nodes remember to one profile for each owner: on a real API server, with the controller's
own rights.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpufence import names
from gpufence.need import CardNeed, NeedDay, NeedKey, NodeNeed, OwnerNeed, need_configmap
from gpufence.quantity import GIB, MIB, read_bytes
from gpufence.times import write_moment
from kube import ClientSettings, ForbiddenError, InvalidRequestError, connect, core
from tests.support.builders import T4
from tests.support.controller.site import DEPLOYMENTS, PROFILE, PROFILES, ControllerSite
from tests.support.observing import wait_until

pytestmark = pytest.mark.usefixtures("followed")

DAY = 86_400


@pytest.fixture(scope="module")
def profiled_site(shared_site: ControllerSite) -> ControllerSite:
    shared_site.install_profiles()
    return shared_site


@pytest.fixture
def profiled(profiled_site: ControllerSite, full_namespace: str) -> Iterator[ControllerSite]:
    """The cluster with profiles, and nothing remembered."""
    yield profiled_site
    configmaps = core("namespaces", profiled_site.system, "configmaps")
    label = {"labelSelector": f"app.kubernetes.io/name={names.NEED_LABEL}"}
    for item in profiled_site.admin.list(configmaps, label).items:
        profiled_site.admin.delete(f"{configmaps}/{item['metadata']['name']}")
    for item in profiled_site.admin.list(PROFILES).items:
        about = item["metadata"]
        profiled_site.admin.delete(PROFILE.path(about["namespace"], about["name"]))
    profiled_site.remove(full_namespace)


def day(ago: int) -> str:
    return write_moment(time.time() - ago * DAY)[:10]


def need(
    namespace: str, node: str = "gpu-1", days: int = 9, until: int = 0, **changes: Any
) -> NodeNeed:
    """Remember full days of one model, the last of them `until` days ago."""
    row = NeedDay("", 4 * GIB, pods=3, held_seconds=DAY, started=1, process_bytes=4 * GIB)
    rows = tuple(row._replace(day=day(until + ago), **changes) for ago in reversed(range(days)))
    key = NeedKey(namespace, "Deployment", "worker", "pause", T4.model)
    return NodeNeed(node, (OwnerNeed(key, rows),), (T4,))


def conditions(profile: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["type"]: item for item in profile["status"]["conditions"]}


def figures(site: ControllerSite, namespace: str) -> tuple[str, str, str] | None:
    """Return what `kubectl get gmp` shows: peak, target, confidence."""
    status = site.profile(namespace, "deployment-worker").get("status")
    if not status:
        return None
    return status["peak"], status.get("target", ""), status["confidence"]


def test_what_nodes_remember_becomes_the_profile_of_its_owner(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """
    It has a target of the largest, says whose it is, goes with that one, and says so about the spec
    it has read. A node that is gone counts for fourteen days, and is then cleared away.
    """
    made = profiled.deploy(full_namespace, "worker", 0)
    profiled.remember(need(full_namespace))
    profiled.remember(need(full_namespace, "gone", days=2, until=12, peak_bytes=5 * GIB))
    profiled.remember(need(full_namespace, "long-gone", days=2, until=14, peak_bytes=9 * GIB))
    gone, old = (
        core("namespaces", profiled.system, "configmaps", need_configmap(node))
        for node in ("gone", "long-gone")
    )
    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
        wait_until(lambda: not profiled.exists(old), controller.lines)
    profile = profiled.profile(full_namespace, "deployment-worker")

    assert ("5120Mi", "high") == (figures(profiled, full_namespace) or ("", "", ""))[::2]
    assert profiled.exists(gone)
    assert [("Deployment", "worker", made["metadata"]["uid"])] == [
        (item["kind"], item["name"], item["uid"]) for item in profile["metadata"]["ownerReferences"]
    ]
    assert {"Ready": "True", "AtCap": "False", "LowConfidence": "False"} == {
        name: item["status"] for name, item in conditions(profile).items()
    }
    assert profile["metadata"]["generation"] == profile["status"]["observedGeneration"]
    assert "applied" not in profile["status"]


def test_conditions_change_when_they_do_and_only_then(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """
    A second word about the same leaves the times alone; another one turns only what it is about.
    """
    profiled.deploy(full_namespace, "worker", 0)
    profiled.remember(need(full_namespace, days=1, held_seconds=3600.0))
    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
        before = conditions(profiled.profile(full_namespace, "deployment-worker"))
        time.sleep(1.1)
        profiled.remember(need(full_namespace))
        wait_until(lambda: ("4096Mi", "6528Mi", "high") == figures(profiled, full_namespace))
        after = conditions(profiled.profile(full_namespace, "deployment-worker"))

    assert ("False", "True", "True", "False") == (
        *(before[name]["status"] for name in ("Ready", "LowConfidence")),
        *(after[name]["status"] for name in ("Ready", "LowConfidence")),
    )
    assert before["AtCap"]["lastTransitionTime"] == after["AtCap"]["lastTransitionTime"]
    assert before["Ready"]["lastTransitionTime"] < after["Ready"]["lastTransitionTime"]


def test_what_is_applied_follows_the_spec_and_is_never_above_it(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """
    Whoever says AtCreate gets the target as an amount, within his own maximum and the namespace's.
    """
    name = "deployment-worker"
    profiled.fence(full_namespace, None, max_memory="6Gi")
    profiled.deploy(full_namespace, "worker", 0)
    profiled.remember(need(full_namespace))

    def applied() -> list[dict[str, str]]:
        found: list[dict[str, str]]
        found = profiled.profile(full_namespace, name).get("status", {}).get("applied", [])
        return found

    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
        profiled.say(full_namespace, name, apply="AtCreate")
        wait_until(applied, controller.lines)
        by_namespace = applied()
        profiled.say(full_namespace, name, max="5Gi")
        wait_until(lambda: applied() != by_namespace, controller.lines)
        by_owner = applied()
        profiled.say(full_namespace, name, apply="Never")
        wait_until(lambda: not applied(), controller.lines)

    assert [{"name": "pause", "memory": "6144Mi"}] == by_namespace
    assert [{"name": "pause", "memory": "5120Mi"}] == by_owner


def test_another_controller_goes_on_and_writes_nothing_again(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """What is said already is not said anew by whoever comes next."""
    profiled.deploy(full_namespace, "worker", 0)
    profiled.remember(need(full_namespace))
    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
    before = profiled.profile(full_namespace, "deployment-worker")
    with profiled.controller() as controller:
        wait_until(lambda: controller.metrics().get("gpufence_controller_profiles") == 1)
        profiled.deploy(full_namespace, "other", 0)
        other = need(full_namespace, "gpu-2")
        key = other.owners[0].key._replace(name="other")
        profiled.remember(other._replace(owners=(other.owners[0]._replace(key=key),)))
        wait_until(lambda: profiled.profile(full_namespace, "deployment-other").get("status"))

    assert before == profiled.profile(full_namespace, "deployment-worker")


def test_a_damaged_need_costs_a_line_of_the_log(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """Whatever stands in some ConfigMaps, the others count, and it is said once which are wrong."""
    owners = '"owners":[]}'
    for place, text in enumerate(
        ("{", '{"v":2}', '{"v":1,"owners":7}', f'{{"v":1,"node":"other",{owners}', "", "[" * 9999)
    ):
        profiled.remember_text(need_configmap(f"bad-{place}"), text)
    profiled.deploy(full_namespace, "worker", 0)
    profiled.remember(need(full_namespace, "gpu-2"))
    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
        wait_until(lambda: controller.metrics().get("gpufence_controller_needs") == 7)
        told = [str(line) for line in controller.lines if "counts for nothing" in str(line)]

    assert [1] * 6 == [sum(need_configmap(f"bad-{n}") in line for line in told) for n in range(6)]


def test_one_node_alone_brings_no_target_down(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """A node that lies about cards and needs can make a target larger, never smaller."""
    profiled.deploy(full_namespace, "worker", 0)
    profiled.remember(need(full_namespace))
    liar = need(full_namespace, "liar", peak_bytes=1, process_bytes=1)
    profiled.remember(liar._replace(cards=(CardNeed(T4.model, 1, 0),)))
    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)

    peak, target, confidence = figures(profiled, full_namespace) or ("", "", "")
    assert ("4096Mi", "high") == (peak, confidence)
    assert 6528 * MIB <= read_bytes(target, "target")


def test_who_is_not_there_gets_no_profile(profiled: ControllerSite, full_namespace: str) -> None:
    """An owner that is remembered and gone, in a name that cannot be one, or in no namespace."""
    profiled.deploy(full_namespace, "worker", 0)
    real = need(full_namespace)
    strange = [
        real.owners[0]._replace(key=real.owners[0].key._replace(**change))
        for change in ({"name": "gone"}, {"name": "a/b"}, {"namespace": "nowhere"}, {"kind": "Odd"})
    ]
    profiled.remember(
        real._replace(owners=(*sorted(strange, key=lambda each: each.key), *real.owners))
    )
    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
        wait_until(lambda: controller.metrics().get(_writes("create", "gone")) == 2)
    there = {item["metadata"]["name"] for item in profiled.admin.list(PROFILES).items}

    assert {"deployment-worker", "odd-worker"} == there


@pytest.mark.nightly
def test_an_owner_that_is_made_anew_has_its_profile_again(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """Of what is remembered of the one before, and with the new one above it."""
    name = "deployment-worker"
    first = profiled.deploy(full_namespace, "worker", 0)
    profiled.remember(need(full_namespace))
    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
        profiled.admin.delete(DEPLOYMENTS.path(full_namespace, "worker"))
        wait_until(lambda: not profiled.profile(full_namespace, name), controller.lines)
        wait_until(lambda: controller.metrics().get(_writes("create", "gone")), controller.lines)
        second = profiled.deploy(full_namespace, "worker", 0)
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
    (above,) = profiled.profile(full_namespace, name)["metadata"]["ownerReferences"]

    assert first["metadata"]["uid"] != second["metadata"]["uid"] == above["uid"]


def test_what_people_said_stays_when_nothing_is_remembered(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """A profile that nobody touched goes with the last day; one that says something stays."""
    profiled.deploy(full_namespace, "worker", 0)
    profiled.deploy(full_namespace, "other", 0)
    worker = need(full_namespace)
    key = worker.owners[0].key._replace(name="other")
    other = worker.owners[0]._replace(key=key)
    both = worker._replace(owners=(other, *worker.owners))
    profiled.remember(both)
    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
        profiled.say(full_namespace, "deployment-worker", margin="20%")
        profiled.remember(both._replace(owners=()))
        wait_until(lambda: not profiled.profile(full_namespace, "deployment-other"))

    assert ("4096Mi", "high") == (figures(profiled, full_namespace) or ("", "", ""))[::2]


def test_the_controller_may_do_no_more_than_that(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """
    With its token: no spec, no kill switch, no profile that applies itself or that others made.
    """
    spec = {"targetRef": {"kind": "Deployment", "name": "worker"}}
    body = {
        "apiVersion": names.PROFILE_GROUP,
        "kind": PROFILE.kind,
        "metadata": {"name": "deployment-worker"},
        "spec": spec,
    }
    marked = {
        "name": "deployment-worker",
        "labels": {"app.kubernetes.io/managed-by": names.CONTROLLER},
    }
    profiled.admin.post(PROFILE.path(full_namespace), body)
    config = profiled.kubeconfig_of(names.CONTROLLER)
    path = PROFILE.path(full_namespace, "deployment-worker")
    switch = core("namespaces", profiled.system, "configmaps", names.POLICY_CONFIGMAP)
    applying = {**body, "metadata": marked, "spec": {**spec, "apply": "AtCreate"}}
    with connect(ClientSettings(kubeconfig=str(config))) as client:
        acts: list[Callable[[], object]] = [
            lambda: client.patch(path, [{"op": "add", "path": "/spec/apply", "value": "AtCreate"}]),
            lambda: client.delete(path),
            lambda: client.delete(switch),
            lambda: client.get(switch),
            lambda: client.post(PROFILE.path(full_namespace), applying),
        ]
        for act in acts:
            with pytest.raises((ForbiddenError, InvalidRequestError)):
                act()

    assert profiled.exists(switch)


def test_profiles_are_named_after_their_owner(
    profiled: ControllerSite, full_namespace: str
) -> None:
    """So there is one for each, which the API server sees to."""
    body = {
        "apiVersion": names.PROFILE_GROUP,
        "kind": PROFILE.kind,
        "metadata": {"name": "mine"},
        "spec": {"targetRef": {"kind": "Deployment", "name": "worker"}},
    }
    with pytest.raises(InvalidRequestError, match="deployment-web"):
        profiled.admin.post(PROFILE.path(full_namespace), body)

    assert [] == profiled.admin.list(PROFILE.path(full_namespace)).items


def _writes(step: str, outcome: str) -> str:
    return f'gpufence_controller_profile_writes_total{{step="{step}",outcome="{outcome}"}}'


def test_what_is_written_fits_the_schema(profiled: ControllerSite, full_namespace: str) -> None:
    """The API server drops nothing of it, so that the same is not written again."""
    profiled.deploy(full_namespace, "worker", 0)
    profiled.remember(need(full_namespace, limit_bytes=8 * GIB, told_bytes=5 * GIB))
    with profiled.controller() as controller:
        wait_until(lambda: figures(profiled, full_namespace), controller.lines)
        profiled.say(full_namespace, "deployment-worker", apply="AtCreate")
        wait_until(
            lambda: profiled.profile(full_namespace, "deployment-worker")["status"].get("applied")
        )
        time.sleep(1.0)
        writes = controller.metrics()

    assert (1.0, 1.0) == (writes[_writes("create", "done")], writes[_writes("status", "done")])
    assert json.dumps(profiled.profile(full_namespace, "deployment-worker"))
