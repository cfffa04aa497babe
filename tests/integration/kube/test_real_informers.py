"""Collections of a real API server: followed one by one, and together."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

import pytest

from gpufence.times import Backoff
from kube import Client, ClientSettings, JsonObject, connect, core, group
from kube.event_writer import EventWriter
from kube.events import EventText, Regarding, Reporter
from kube.informers import Informers, Probing, Store
from kube.informers.reflector import Reflector
from kube.watch import ChangeType, Source, WatchSettings
from simulator.controlplane import ControlPlane
from tests.integration.kube.builders import (
    config_map,
    config_maps,
    event,
    events,
    name_of,
)
from tests.support.etcd import compact
from tests.support.objects import CRDS, crd
from tests.support.observing import wait_until

DEFINITIONS = group(CRDS, "customresourcedefinitions")
OFTEN = Probing(absent_seconds=0.2, retry_seconds=0.2, lost_seconds=0.5)
PACE = WatchSettings(backoff=Backoff(0.1, 0.5))


def named(item: dict[str, object]) -> tuple[str, str]:
    return name_of(item), name_of(item)


@contextmanager
def following(client: Client, path: str, store: Store[str]) -> Iterator[Informers]:
    informers = Informers(client, PACE, probing=OFTEN)
    informers.follow("things", Source(path=path, keep=named), store, optional=True)
    informers.start()
    yield informers
    informers.stop()


def test_a_kind_comes_and_goes(client: Client, namespace: str) -> None:
    """Nothing waits for it; it is followed once it is there, and forgotten once it is gone."""
    word = f"k{uuid4().hex[:6]}"
    version = f"{word}.example.com/v1"
    store: Store[str] = Store()
    with following(client, group(version, "things"), store) as informers:
        wait_until(lambda: informers.settled("things"))
        before = str(informers.absent("things")), informers.health().fresh
        client.post(DEFINITIONS, crd(version, "Thing", "things"))
        wait_until(lambda: informers.state("things").synced)
        there = group(version, "namespaces", namespace, "things")
        client.post(there, {"apiVersion": version, "kind": "Thing", "metadata": {"name": "a"}})
        wait_until(lambda: "a" in store.items)
        client.delete(f"{DEFINITIONS}/things.{word}.example.com")
        wait_until(lambda: informers.absent("things"))

    assert ("404" in before[0], before[1]) == (True, True)
    assert {} == store.items


def test_what_is_not_ours_to_read_is_absent(control_plane: ControlPlane, namespace: str) -> None:
    """A right that is missing is no failure; once it is there, the collection is followed."""
    kubectl = control_plane.kubectl
    kubectl("create", "serviceaccount", "follower", "-n", namespace)
    token = control_plane.service_account_token(namespace, "follower")
    config = control_plane.token_kubeconfig(f"follower-{namespace}", token)
    store: Store[str] = Store()
    with (
        connect(ClientSettings(kubeconfig=str(config))) as client,
        following(client, config_maps(namespace), store) as informers,
    ):
        wait_until(lambda: informers.settled("things"))
        before = str(informers.absent("things"))
        kubectl(
            *("create", "role", "follower", "-n", namespace),
            *("--verb=list,watch", "--resource=configmaps"),
        )
        kubectl(
            *("create", "rolebinding", "follower", "-n", namespace, "--role=follower"),
            f"--serviceaccount={namespace}:follower",
        )
        wait_until(lambda: informers.state("things").synced)
        after = informers.absent("things")

    assert "403" in before
    assert after is None


def test_what_is_there_is_settled_only_when_it_is_read(client: Client, namespace: str) -> None:
    """All of it is known then."""
    client.post(config_maps(namespace), config_map("first"))
    store: Store[str] = Store()
    with following(client, config_maps(namespace), store) as informers:
        wait_until(lambda: informers.settled("things"))
        known = set(store.items)

    assert "first" in known


def test_an_event_is_counted_and_written_anew_when_it_has_expired(
    client: Client, namespace: str
) -> None:
    """What the API server shows is one Event with the last count, and the first time."""
    about = Regarding("v1", "Namespace", namespace, namespace, "")
    writer = EventWriter(Reporter("gpufence-agent", "n1"))
    writer.start(client)
    try:
        writer.count("a", about, EventText("Told", "once"))
        wait_until(lambda: 1 == writer.written)
        writer.count("a", about, EventText("Told", "twice"), 2)
        wait_until(lambda: 2 == writer.written)
        (twice,) = told(client, namespace)
        client.delete(f"{events(namespace)}/{twice['metadata']['name']}")
        writer.count("a", about, EventText("Told", "again"), 3)
        wait_until(lambda: 3 == writer.written)
    finally:
        writer.stop(10)
    (anew,) = told(client, namespace)

    assert (2, "twice", 3, "again") == (
        *(twice["count"], twice["message"]),
        *(anew["count"], anew["message"]),
    )
    assert twice["firstTimestamp"] == anew["firstTimestamp"]


def test_events_of_a_namespace_that_is_not_there_are_refused(client: Client) -> None:
    """That is no trouble, and what comes after them is written."""
    about = Regarding("v1", "Pod", f"none-{uuid4().hex[:6]}", "a", "uid")
    writer = EventWriter(Reporter("gpufence-agent", "n1"))
    writer.start(client)
    try:
        writer.say(about, EventText("Told", "nowhere"))
        writer.say(about._replace(namespace=""), EventText("Told", "of a node"))
        wait_until(lambda: (1, 1) == (writer.refused, writer.written))
    finally:
        writer.stop(10)

    assert 0 == writer.dropped


def told(client: Client, namespace: str) -> list[JsonObject]:
    listed = client.get(core("namespaces", namespace, "events"))
    return [each for each in listed["items"] if each["reason"] == "Told"]


PATIENCE_SECONDS = 60.0


class Picture:
    """The names that exist, as a handler sees them."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._changed = threading.Condition()

    def replace(self, objects: Sequence[str]) -> None:
        with self._changed:
            self.names = set(objects)
            self._changed.notify_all()

    def apply(self, change: ChangeType, item: str) -> None:
        with self._changed:
            (self.names.discard if change == "DELETED" else self.names.add)(item)
            self._changed.notify_all()

    def wait_for(self, names: set[str]) -> None:
        with self._changed:
            became = self._changed.wait_for(lambda: names == self.names, PATIENCE_SECONDS)
            assert became, f"{self.names} instead of {names}"


@pytest.mark.parametrize("from_cache", [False, True])
def test_the_picture_follows_the_collection(
    client: Client, namespace: str, *, from_cache: bool
) -> None:
    """Objects that were there, come, change and go are seen within the watch."""
    path = config_maps(namespace)
    client.post(path, config_map("first"))
    picture = Picture()
    source = Source(path=path, keep=name_of, from_cache=from_cache)
    reflector = Reflector(client, source, picture)
    reflector.start()
    try:
        picture.wait_for({"first"})
        client.post(path, config_map("second"))
        picture.wait_for({"first", "second"})
        client.delete(f"{path}/first")
        picture.wait_for({"second"})
    finally:
        reflector.stop()

    assert reflector.state.lists == 1


def test_a_compacted_version_leads_to_a_new_list(
    client: Client, namespace: str, control_plane: ControlPlane
) -> None:
    """A watch that would resume at a forgotten version is replaced by a list."""
    # Events are not cached by the API server: their watches end at etcd, and so does its memory.
    path = events(namespace)
    client.post(path, event(namespace, "before"))
    picture = Picture()
    settings = WatchSettings(window_seconds=1)
    reflector = Reflector(client, Source(path=path, keep=name_of), picture, settings)
    reflector.start()
    try:
        picture.wait_for({"before"})
        for name in ("time", "passes"):
            client.post(config_maps(namespace), config_map(name))
        compact(control_plane.folder)
        wait_until(lambda: reflector.state.lists >= 2)
        client.post(path, event(namespace, "after"))
        picture.wait_for({"before", "after"})
    finally:
        reflector.stop()


def test_an_outage_is_survived(client: Client, namespace: str, control_plane: ControlPlane) -> None:
    """After the API server was away, changes arrive again."""
    path = config_maps(namespace)
    picture = Picture()
    reflector = Reflector(client, Source(path=path, keep=name_of), picture)
    reflector.start()
    try:
        assert reflector.wait_until_synced(PATIENCE_SECONDS)
        control_plane.stop_api_server()
        wait_until(lambda: reflector.state.failures_in_a_row >= 2)
        control_plane.start_api_server()
        client.post(path, config_map("after"))
        wait_until(lambda: "after" in picture.names)
    finally:
        reflector.stop()


@pytest.mark.soak
def test_quiet_is_not_trouble(client: Client, namespace: str) -> None:
    """Over ninety seconds without a change, contact is kept and nothing counts as a failure."""
    path = config_maps(namespace)
    picture = Picture()
    reflector = Reflector(client, Source(path=path, keep=name_of), picture)
    reflector.start()
    oldest = 0.0
    try:
        assert reflector.wait_until_synced(PATIENCE_SECONDS)
        end = time.monotonic() + 90
        while time.monotonic() < end:
            contact = reflector.state.last_contact
            assert contact is not None
            oldest = max(oldest, time.monotonic() - contact)
            time.sleep(0.1)
        client.post(path, config_map("after"))
        picture.wait_for({"after"})
        state = reflector.state
    finally:
        reflector.stop()

    assert oldest < 77
    assert (1, 0, None) == (state.lists, state.failures_in_a_row, state.last_error)
