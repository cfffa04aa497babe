"""Which profiles are written again, by what the API server shows of them."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

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
from kube.informers import Informers
from tests.http.kube.builders import WATCHING, client_of
from tests.support.builders import T4, need_day, node_need
from tests.support.observing import wait_until
from tests.support.servers import ApiServer, reply, watch

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
def server() -> Iterator[ApiServer]:
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
def keeper(server: ApiServer) -> Iterator[ProfileKeeper]:
    """A keeper whose passes are the test's."""
    with client_of(server) as client:
        informers = Informers(client, WATCHING)
        writes = ProfileWrites(client, Kinds(client), lease_left, 1.0, names.SYSTEM_NAMESPACE)
        sources = ProfileSources(lease_left, dict, tuple)
        settings = ProfileSettings(pass_seconds=NEVER)
        made = ProfileKeeper(informers, writes, sources, settings, names.SYSTEM_NAMESPACE)
        informers.start()
        yield made
        informers.stop()


def test_a_profile_that_was_deleted_before_it_was_seen_is_made_again(
    server: ApiServer, keeper: ProfileKeeper
) -> None:
    """
    Not at once, since what was just made may be on its way; but as soon as it should be in view.
    """

    def passes(now: float) -> int:
        keeper.turn(now)
        return len(server.seen(MADE))

    wait_until(lambda: passes(0.0))

    assert [1, 1, 2] == [passes(now) for now in (0.0, SEEN_SECONDS - 1.0, SEEN_SECONDS)]
