"""What is known of kinds of owners, one of which cannot be read, and profiles written again."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import uuid4

import pytest

from controller.agents import AgentClient
from controller.cluster.cluster import FollowedKinds
from controller.keepers.profiles.keeper import (
    SEEN_SECONDS,
    ProfileKeeper,
    ProfileSettings,
    ProfileSources,
    today,
)
from controller.keepers.profiles.writes import PROFILE, ProfileWrites
from gpufence import names
from gpufence.need import NeedKey, OwnerNeed, need_configmap, write_need
from kube import JsonObject, core
from kube.discovery import Kinds
from kube.informers import OUTAGE_SECONDS, Informers, Interner, Probing
from tests.http.kube.builders import WATCHING, Dripping, client_of, status
from tests.support.builders import T4, need_day, node_need
from tests.support.observing import wait_until
from tests.support.servers import ApiServer, reply, watch

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


PROBING = Probing(absent_seconds=0.05, retry_seconds=0.05, lost_seconds=0.2)


class Seen(NamedTuple):
    kinds: FollowedKinds
    informers: Informers


@contextmanager
def following(server: ApiServer) -> Iterator[Seen]:
    with client_of(server) as client:
        informers = Informers(client, WATCHING, probing=PROBING)
        kinds = FollowedKinds(informers, Kinds(client, remembered_seconds=0.1), Interner(), 0.3)
        informers.start()
        kinds.start()
        yield Seen(kinds, informers)
        kinds.stop()
        informers.stop()


def test_a_kind_that_fails_is_one_of_which_nothing_is_known(server: ApiServer) -> None:
    """Before it was read once, and after it could be; all others are as good as ever."""
    with following(server) as (kinds, informers):
        wait_until(lambda: kinds.complete and kinds.known().owners and kinds.known().stale)
        first = kinds.known(), informers.health().synced
        server.on(f"WATCH {FARMS}", watch(then="cut"))
        server.on(f"GET {FARMS}", reply(listed("mine")))
        wait_until(lambda: not kinds.known().stale)
        between = kinds.known()
        server.on(f"GET {FARMS}", BROKEN)
        server.on(f"WATCH {FARMS}", BROKEN)
        wait_until(lambda: kinds.known().stale, seconds=4 * OUTAGE_SECONDS)
        last = kinds.known(), informers.health().synced

    assert {FARM} == first[0].stale.keys() == last[0].stale.keys()
    assert "farms.example.com cannot be read at the moment: " in first[0].stale[FARM]
    assert [{"worker"}, {"worker", "mine"}] == [set(first[0].owners), set(between.owners)]
    assert (True, True) == (first[1], last[1])


def test_without_what_kubernetes_has_itself_nothing_is_known(server: ApiServer) -> None:
    """Through its ReplicaSets anybody's pods may be somebody's."""
    server.on(f"GET {DEPLOYMENTS}", BROKEN)
    with following(server) as (kinds, informers):
        wait_until(lambda: kinds.complete and "deployments.apps" in informers.health().trouble)
        health = informers.health()

    assert (False, False) == (health.synced, health.fresh)


def test_a_kind_that_is_gone_is_followed_no_longer(server: ApiServer) -> None:
    """As soon as discovery tells of it no more; nothing is known of its owners then."""
    server.on(f"WATCH {FARMS}", watch(then="hang"))
    server.on(f"GET {FARMS}", reply(listed("mine")))
    with following(server) as (kinds, _):
        wait_until(lambda: {"worker", "mine"} == set(kinds.known().owners))
        server.on("GET /apis/example.com/v1", reply({"resources": []}))
        wait_until(lambda: {"worker"} == set(kinds.known().owners))
        known = kinds.known()

    assert ({}, {}) == (known.stale, known.unread)


def test_a_kind_that_may_not_be_read_says_what_helps(server: ApiServer) -> None:
    """Once it may be read, its owners are known."""
    server.on(f"WATCH {FARMS}", watch(then="hang"))
    server.on(f"GET {FARMS}", reply(status(403, "Forbidden", "farms are not yours"), 403))
    with following(server) as (kinds, _):
        wait_until(lambda: kinds.known().unread)
        unread = kinds.known().unread
        server.on(f"GET {FARMS}", reply(listed("mine")))
        wait_until(lambda: "mine" in kinds.known().owners)

    assert "farms are not yours; a ClusterRole labelled" in unread[FARM]


_LONG_SECONDS = 1.0


def test_agents_that_never_end_hold_up_nobody_else() -> None:
    """As many of them as are asked at the same time are given up together."""
    with Dripping({}, head=True) as server:
        agents = AgentClient(
            lambda: {f"n{place}": server.url for place in range(16)}, _LONG_SECONDS
        )
        began = time.monotonic()
        said = agents.snapshots([f"n{place}" for place in range(16)], now=True)
        took = time.monotonic() - began
        agents.close()

    assert {None} == set(said.values())
    assert 16 * _LONG_SECONDS / 2 > took


NEEDS = core("namespaces", names.SYSTEM_NAMESPACE, "configmaps")
MADE = f"POST {PROFILE.path('vision')}"
MINUTE = 60.0
NEVER = 3600.0


def objects(*items: JsonObject) -> JsonObject:
    return {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": list(items)}


def remembered() -> JsonObject:
    """Build what a node remembers of a pod, which is above itself."""
    key = NeedKey("vision", "Pod", "classifier", "server", T4.model)
    need = node_need(OwnerNeed(key, (need_day(1)._replace(day=today()),)))
    about = {"name": need_configmap(need.node), "uid": str(uuid4()), "resourceVersion": "1"}
    return {"metadata": about, "data": {names.NEED_KEY: write_need(need)}}


def lease_left() -> float:
    return MINUTE


@pytest.fixture
def forgetful() -> Iterator[ApiServer]:
    """A server that makes profiles and never shows them."""
    about = {"uid": "profile", "resourceVersion": "2"}
    with ApiServer() as running:
        running.on(f"GET {NEEDS}", reply(objects(remembered())))
        running.on(f"GET {PROFILE.everywhere}", reply(objects()))
        running.on(f"WATCH {NEEDS}", watch(then="hang"))
        running.on(f"WATCH {PROFILE.everywhere}", watch(then="hang"))
        running.on(MADE, reply({"metadata": about}, 201))
        running.on(f"PUT {PROFILE.path('vision', 'pod-classifier')}/status", reply({}))
        yield running


@pytest.fixture
def keeper(forgetful: ApiServer) -> Iterator[ProfileKeeper]:
    """A keeper whose passes are the test's."""
    with client_of(forgetful) as client:
        informers = Informers(client, WATCHING)
        writes = ProfileWrites(client, Kinds(client), lease_left, 1.0, names.SYSTEM_NAMESPACE)
        sources = ProfileSources(lease_left, dict, tuple)
        settings = ProfileSettings(pass_seconds=NEVER)
        made = ProfileKeeper(informers, writes, sources, settings, names.SYSTEM_NAMESPACE)
        informers.start()
        yield made
        informers.stop()


def test_a_profile_that_was_deleted_before_it_was_seen_is_made_again(
    forgetful: ApiServer, keeper: ProfileKeeper
) -> None:
    """
    Not at once, since what was just made may be on its way; but as soon as it should be in view.
    """

    def passes(now: float) -> int:
        keeper.turn(now)
        return len(forgetful.seen(MADE))

    wait_until(lambda: passes(0.0))

    assert [1, 1, 2] == [passes(now) for now in (0.0, SEEN_SECONDS - 1.0, SEEN_SECONDS)]
