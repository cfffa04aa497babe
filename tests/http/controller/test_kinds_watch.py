"""What is known of kinds of owners, one of which cannot be read."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controller.cluster.kinds_watch import KindsWatch
from controller.cluster.watches import OUTAGE_SECONDS
from kube import JsonObject
from kube.discovery import Kinds
from kube.informers.interning import Interner
from tests.http.kube.builders import WATCHING, client_of, status
from tests.support.api_server import ApiServer, reply, watch
from tests.support.observing import wait_until

FARM = ("example.com", "Farm")
FARMS = "/apis/example.com/v1/farms"
DEPLOYMENTS = "/apis/apps/v1/deployments"
BROKEN = reply(status(500, "InternalError", "nobody converts it"), 500)


def resources(kind: str, plural: str) -> JsonObject:
    scale = {"name": f"{plural}/scale", "kind": "Scale", "namespaced": True}
    return {"resources": [{"name": plural, "kind": kind, "namespaced": True}, scale]}


def listed(*names: str) -> JsonObject:
    items = [
        {"metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": "1"}}
        for name in names
    ]
    return {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server that has Deployments, and farms that nobody can list."""
    versions = [
        {"preferredVersion": {"groupVersion": each}} for each in ("example.com/v1", "apps/v1")
    ]
    with ApiServer() as running:
        running.on("GET /apis", reply({"groups": versions}))
        running.on("GET /api/v1", reply({"resources": []}))
        running.on("GET /apis/apps/v1", reply(resources("Deployment", "deployments")))
        running.on("GET /apis/example.com/v1", reply(resources("Farm", "farms")))
        running.on(f"GET {DEPLOYMENTS}", reply(listed("worker")))
        running.on(f"WATCH {DEPLOYMENTS}", watch(then="hang"))
        running.on(f"GET {FARMS}", BROKEN)
        yield running


@contextmanager
def following(server: ApiServer) -> Iterator[KindsWatch]:
    with client_of(server) as client:
        made = KindsWatch(client, Kinds(client), Interner(), WATCHING, 0.3)
        made.start()
        yield made
        made.stop()


def test_a_kind_that_fails_is_one_of_which_nothing_is_known(server: ApiServer) -> None:
    """Before it was read once, and after it could be; all others are as good as ever."""
    with following(server) as kinds:
        wait_until(lambda: kinds.known().complete and kinds.known().owners)
        first = kinds.known()
        server.on(f"WATCH {FARMS}", watch(then="cut"))
        server.on(f"GET {FARMS}", reply(listed("mine")))
        wait_until(lambda: not kinds.known().stale)
        between = kinds.known()
        server.on(f"GET {FARMS}", BROKEN)
        server.on(f"WATCH {FARMS}", BROKEN)
        wait_until(lambda: kinds.known().stale, seconds=4 * OUTAGE_SECONDS)
        last = kinds.known()

    assert {FARM} == first.stale.keys() == last.stale.keys()
    assert "farms.example.com cannot be read at the moment: " in first.stale[FARM]
    assert [{"worker"}, {"worker", "mine"}] == [set(first.owners), set(between.owners)]
    assert [(True, True), (True, True)] == [
        (each.complete, all(state.synced for state in each.states)) for each in (first, last)
    ]


def test_without_what_kubernetes_has_itself_nothing_is_known(server: ApiServer) -> None:
    """Through its ReplicaSets anybody's pods may be somebody's."""
    server.on(f"GET {DEPLOYMENTS}", BROKEN)
    with following(server) as kinds:
        server.wait_for(f"GET {DEPLOYMENTS}", 1)
        known = kinds.known()

    assert not known.complete
