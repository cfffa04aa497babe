"""A reflector on a real API server, through expired versions and an outage."""

import threading
import time
from collections.abc import Sequence

import pytest

from kube import ChangeType, Client, Reflector, Source, WatchSettings
from simulator.controlplane import ControlPlane
from tests.integration.kube.builders import (
    config_map,
    config_maps,
    event,
    events,
    name_of,
)
from tests.support.etcd import compact
from tests.support.observing import wait_until

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
    """
    Over a minute and a half without a change, contact is kept and nothing counts as a failure.
    """
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
