"""A collection that a real API server has, or not, or not for us."""

from uuid import uuid4

import pytest

from kube import Client, ClientSettings, Source, connect, core, group, optional
from kube.informers import Store
from kube.optional import OptionalWatch
from simulator.controlplane import ControlPlane
from tests.integration.kube.builders import config_map, config_maps, name_of
from tests.support.observing import wait_until
from tests.support.owners import CRDS, crd

DEFINITIONS = group(CRDS, "customresourcedefinitions")


def named(item: dict[str, object]) -> tuple[str, str]:
    return name_of(item), name_of(item)


def test_a_kind_comes_and_goes(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it; it is followed once it is there, and forgotten once it is gone."""
    monkeypatch.setattr(optional, "GIVEN_UP_SECONDS", 0.5)
    word = f"k{uuid4().hex[:6]}"
    version = f"{word}.example.com/v1"
    cache: Store[str] = Store()
    watch = OptionalWatch(
        client, Source(path=group(version, "things"), keep=named), cache, ask_seconds=0.2
    )
    watch.start()
    try:
        wait_until(lambda: watch.settled)
        before = watch.absent, watch.synced
        client.post(DEFINITIONS, crd(version, "Thing", "things"))
        wait_until(lambda: watch.synced)
        there = group(version, "namespaces", namespace, "things")
        client.post(there, {"apiVersion": version, "kind": "Thing", "metadata": {"name": "a"}})
        wait_until(lambda: "a" in cache.items)
        client.delete(f"{DEFINITIONS}/things.{word}.example.com")
        wait_until(lambda: watch.absent)
    finally:
        watch.stop()

    assert ("404" in before[0], before[1]) == (True, False)
    assert {} == cache.items


def test_what_is_not_ours_to_read_is_absent(control_plane: ControlPlane, namespace: str) -> None:
    """A right that is missing is no failure; once it is there, the collection is followed."""
    kubectl = control_plane.kubectl
    kubectl("create", "serviceaccount", "reader", "-n", namespace)
    token = control_plane.service_account_token(namespace, "reader")
    config = control_plane.token_kubeconfig(f"reader-{namespace}", token)
    cache: Store[str] = Store()
    path = config_maps(namespace)
    with connect(ClientSettings(kubeconfig=str(config))) as client:
        watch = OptionalWatch(client, Source(path=path, keep=named), cache, ask_seconds=0.2)
        watch.start()
        try:
            wait_until(lambda: watch.settled)
            before = watch.absent
            kubectl(
                "create",
                "role",
                "reader",
                "-n",
                namespace,
                "--verb=list,watch",
                "--resource=configmaps",
            )
            kubectl(
                *("create", "rolebinding", "reader", "-n", namespace, "--role=reader"),
                f"--serviceaccount={namespace}:reader",
            )
            wait_until(lambda: watch.synced)
        finally:
            watch.stop()

    assert "403" in before
    assert "" == watch.absent


def test_what_is_there_is_settled_only_when_it_is_read(client: Client, namespace: str) -> None:
    """Whoever waits for it has all of it then."""
    client.post(config_maps(namespace), config_map("first"))
    cache: Store[str] = Store()
    watch = OptionalWatch(
        client, Source(path=core("namespaces", namespace, "configmaps"), keep=named), cache
    )
    watch.start()
    try:
        wait_until(lambda: watch.settled)
        known = set(cache.items)
    finally:
        watch.stop()

    assert "first" in known
