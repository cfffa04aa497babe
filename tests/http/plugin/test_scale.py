"""`scale` against an API server: whose replicas, how many fit, and who says so."""

import json
from typing import Any

import pytest

from gpufence import names
from gpufence.errors import GpufenceError, InvalidError
from kubectl_gpufence.ask import MissingError
from tests.http.plugin.desk import ABSENT, DENIED, Desk, listed
from tests.support.api_server import reply

APPS = "/apis/apps/v1/namespaces/team-a"
CONTROLLER = "/api/v1/namespaces/gpufence-system/pods/gpufence-controller-x:8080/proxy"
ROOM = f"{CONTROLLER}/v1/room/team-a/deployments/quality"
BY_HAND = ("--max", "4")


def kinds(*resources: tuple[str, str, bool]) -> list[dict[str, Any]]:
    made = []
    for plural, kind, scalable in resources:
        made.append({"name": plural, "kind": kind, "namespaced": True, "shortNames": [plural[:6]]})
        if scalable:
            made.append({"name": f"{plural}/scale", "kind": "Scale", "namespaced": True})
    return made


def deployment(**limits: str) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": limits}}
    template = {"metadata": {}, "spec": {"containers": [container]}}
    return {"metadata": {"name": "quality"}, "spec": {"replicas": 2, "template": template}}


def controller_pod() -> dict[str, Any]:
    ready = [{"type": "Ready", "status": "True"}]
    ports = [{"name": "status", "containerPort": 8080}]
    return {
        "metadata": {"name": "gpufence-controller-x"},
        "spec": {"containers": [{"name": "controller", "ports": ports}]},
        "status": {"conditions": ready},
    }


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A cluster with a Deployment that asks for 3 units of a card."""
    group = {"name": "apps", "preferredVersion": {"groupVersion": "apps/v1"}}
    desk.get("/apis", reply({"groups": [group]}))
    desk.get("/apis/apps/v1", reply({"resources": kinds(("deployments", "Deployment", True))}))
    desk.get("/api/v1", reply({"resources": kinds(("pods", "Pod", False))}))
    desk.get(f"{APPS}/deployments/quality", reply(deployment(**{names.GPUSHARE_MEMORY: "3"})))
    return desk


def scale(desk: Desk, *words: str, owner: str = "deployments/quality") -> Any:
    usual = ("--queue", "quality", "--seconds-per-message", "0.5", "--target", "5s", "-o", "json")
    said = desk.run("scale", owner, "-n", "team-a", *usual, *words)
    return said, json.loads(said.out)["items"][-1]["spec"]


def test_the_controller_says_how_many_fit(desk: Desk) -> None:
    """What there is and what more fits, by whoever knows the cards, is the ceiling."""
    desk.get("/api/v1/namespaces/gpufence-system/pods", listed(controller_pod()))
    desk.get(ROOM, reply({"replicas": 2, "room": 4}))
    said, spec = scale(desk)

    assert (6, "") == (spec["maxReplicaCount"], said.err)


def test_without_a_controller_nodes_are_counted(desk: Desk) -> None:
    """
    A card of 15 units beside a pod of 3 has room for four more of 3, and a note says what that is
    worth.
    """
    said, spec = scale(desk)

    assert 2 + 4 == spec["maxReplicaCount"]
    assert "no controller answers" in said.err


SYSTEM = "/api/v1/namespaces/gpufence-system/pods"


def test_a_controller_that_says_nothing_is_passed_over(desk: Desk) -> None:
    """Where it is hidden, away, or answers with something else, nodes are counted."""
    notes = [scale(desk, "--controller", "http://127.0.0.1:1")[0].err]
    desk.get(SYSTEM, DENIED)
    notes.append(scale(desk)[0].err)
    desk.get(SYSTEM, listed(controller_pod()))
    desk.get(ROOM, DENIED)
    notes.append(scale(desk)[0].err)
    desk.get(ROOM, reply(b"[]"))
    notes.append(scale(desk)[0].err)
    desk.get(ROOM, reply({"replicas": None, "room": 4}))
    notes.append(scale(desk)[0].err)

    assert all("no controller answers" in note for note in notes)


def test_pods_that_cannot_be_read_take_nothing(desk: Desk) -> None:
    """One pod of odd shape among others is passed over."""
    desk.get("/api/v1/pods", listed({"metadata": {}, "spec": {"containers": "odd"}}))

    assert 2 + 5 == scale(desk)[1]["maxReplicaCount"]


def test_a_ceiling_that_is_said_holds(desk: Desk) -> None:
    """Nobody is asked where somebody says it."""
    desk.get("/api/v1/nodes", DENIED)

    assert 4 == scale(desk, *BY_HAND)[1]["maxReplicaCount"]


def test_yaml_is_what_people_get(desk: Desk) -> None:
    """Without further words it is text to read and to apply."""
    words = ("--queue", "q", "--seconds-per-message", "0.5", "--target", "5s", *BY_HAND)
    said = desk.run("scale", "deployments/quality", "-n", "team-a", *words)

    assert "  maxReplicaCount: 4  # as you said" in said.out.splitlines()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--seconds-per-message", "auto"), "add --queue-kind prometheus and --prometheus URL"),
        (("--queue-kind", "prometheus"), "--prometheus"),
        (("--target", "0"), "is no time to wait"),
        (("--min", "5", "--max", "4"), "is less than --min 5"),
    ],
)
def test_contradictions_are_refused(desk: Desk, words: tuple[str, ...], text: str) -> None:
    """What cannot be is said before the cluster is asked."""
    with pytest.raises(InvalidError, match=text):
        scale(desk, *words)


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        ("gadgets/quality", 'no kind is called "gadgets": write such as deploy/quality'),
        ("pods/quality", "pods have no replicas to scale"),
        ("deployments/other", "there is no Deployment other in namespace team-a"),
    ],
)
def test_owners_that_are_not_there_are_named(desk: Desk, owner: str, text: str) -> None:
    """A kind nobody knows, one without replicas, and a name that is not there."""
    desk.get(f"{APPS}/deployments/other", ABSENT)

    with pytest.raises(MissingError, match=text):
        scale(desk, *BY_HAND, owner=owner)


def test_an_owner_without_gpus_has_no_ceiling(desk: Desk) -> None:
    """Cards say nothing of what asks for none."""
    desk.get(f"{APPS}/deployments/quality", reply(deployment(cpu="1")))

    with pytest.raises(InvalidError, match="asks for no GPU"):
        scale(desk)


def test_a_full_cluster_is_said(desk: Desk) -> None:
    """Where nothing fits and nothing is there, no ScaledObject is made up."""
    full = deployment(**{names.GPUSHARE_MEMORY: "16"})
    full["spec"]["replicas"] = 0
    desk.get(f"{APPS}/deployments/quality", reply(full))

    with pytest.raises(InvalidError, match="make room, or write --max N"):
        scale(desk)


def test_who_may_not_look_says_how_many(desk: Desk) -> None:
    """Without the right to list nodes the ceiling has to be said."""
    desk.get("/api/v1/nodes", DENIED)

    with pytest.raises(GpufenceError, match="write --max N, or have somebody run this"):
        scale(desk)
