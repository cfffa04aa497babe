"""When old CAs stop being trusted, and when not yet."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from certs.bundle import normal, read_bundle
from certs.ensure import Run, RunOptions
from certs.issue import issue_ca, issue_leaf
from certs.material import KeyPair, WaitSettings
from certs.overlap import Overlap, call_each, endpoints_of
from certs.ports import OvertakenError, Replica, Served, World
from kube import JsonObject, group
from tests.support.certs import (
    CA,
    CONFIGURATION,
    LEAF,
    NAMES,
    NOW,
    FakeApi,
    FakeClock,
    FakeFleet,
    installed,
    unheard,
    world,
)

SLICES = group("discovery.k8s.io/v1", "namespaces", NAMES.namespace, "endpointslices")
PATIENCE = WaitSettings(settle_seconds=0.5, wait_seconds=3.0)


@dataclass
class Scene:
    """A CA was rotated and the new leaf stored, while replicas still serve the old one."""

    api: FakeApi
    fleet: FakeFleet
    old: bytes
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))
    said: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls) -> Scene:
        api = installed()
        fleet = FakeFleet(api, eager=False)
        options = RunOptions(endpoints=fleet.endpoints)
        Run(world(api, FakeClock(NOW), fleet), NAMES, options, unheard).ensure()
        fleet.pull_all()
        old = api.authority().certificate
        rotate = RunOptions(force_ca=True, endpoints=fleet.endpoints)
        Run(world(api, FakeClock(NOW), fleet), NAMES, rotate, unheard).ensure()
        api.writes.clear()
        return cls(api, fleet, old)

    def end(self, ask: World | None = None) -> tuple[str, ...] | None:
        given = ask or world(self.api, self.clock, self.fleet)
        overlap = Overlap(given, NAMES, PATIENCE, self.fleet.endpoints, self.said.append)
        return overlap.end(self.api.leaf(), self.api.authority().certificate)

    @property
    def trusted(self) -> tuple[bytes, ...]:
        return read_bundle(self.api.bundles()[0]).ours


def test_an_old_ca_goes_once_all_replicas_serve_the_new_leaf() -> None:
    """Where every replica serves the new leaf only its CA remains."""
    scene = Scene.begin()
    scene.fleet.pull_all()

    assert scene.end() is None
    assert normal(scene.api.authority().certificate) == scene.trusted


def test_one_replica_behind_keeps_the_old_ca() -> None:
    """One replica that still serves the old leaf keeps the old CA trusted, and is named."""
    scene = Scene.begin()
    scene.fleet.pull(0)

    assert ("10.1.0.7:8444 still serves another certificate",) == scene.end()
    assert normal(scene.old)[0] in scene.trusted
    assert [] == scene.api.writes


def test_a_replica_that_does_not_answer_keeps_the_old_ca() -> None:
    """A replica that cannot be reached may serve anything, so the old CA stays."""
    scene = Scene.begin()
    scene.fleet.pull_all()
    scene.fleet.serving[1] = None

    assert ("10.1.0.7:8444 does not answer (refused)",) == scene.end()


def test_waiting_is_said_once() -> None:
    """The same obstacle is told once, however often it is looked at."""
    scene = Scene.begin()
    scene.end()

    assert 1 == len(scene.said)
    assert [1.0, 1.0, 1.0] == scene.clock.slept


def test_the_replicas_are_asked_twice() -> None:
    """A replica that appears with the old leaf between two looks keeps the old CA trusted."""
    scene = Scene.begin()
    scene.fleet.pull_all()
    answers = iter([(), (Replica("10.1.0.9", 8443),), (), ()])

    def ask(endpoints: Sequence[Replica], name: str) -> tuple[Served, ...]:
        newcomers = tuple(Served(item, b"old") for item in next(answers, ()))
        return (*scene.fleet.ask(endpoints, name), *newcomers)

    assert scene.end(World(scene.api, scene.clock, ask)) is None
    assert ["waiting up to 3 s: 10.1.0.9:8443 still serves another certificate"] == scene.said
    assert [0.5, 1.0, 0.5] == scene.clock.slept


def test_no_replicas_keep_the_old_ca() -> None:
    """Where there is nobody to ask the old CA stays for a later run."""
    scene = Scene.begin()
    nobody = Overlap(
        world(scene.api, scene.clock, scene.fleet), NAMES, PATIENCE, (), scene.said.append
    )
    pending = nobody.end(scene.api.leaf(), scene.api.authority().certificate)

    assert ("no replica of the webhook is there to be asked what it serves",) == pending


def test_without_an_old_ca_nobody_is_asked() -> None:
    """Where only the present CA is trusted nothing is asked or written."""
    scene = Scene.begin()
    scene.fleet.pull_all()
    scene.end()
    scene.api.writes.clear()
    scene.fleet.serving = [None, None]

    assert () == scene.end()
    assert [] == scene.api.writes


def test_a_newer_ca_stops_the_end() -> None:
    """Where another run has stored a newer CA, nothing is dropped on the word of the older one."""
    scene = Scene.begin()
    scene.fleet.pull_all()
    leaf: KeyPair = scene.api.leaf()
    authority = scene.api.authority().certificate
    newer = issue_ca(NOW)
    scene.api.put_data(CA, tls_crt=newer.certificate, tls_key=newer.key)
    overlap = Overlap(
        world(scene.api, scene.clock, scene.fleet), NAMES, PATIENCE, scene.fleet.endpoints, unheard
    )

    with pytest.raises(OvertakenError):
        overlap.end(leaf, authority)
    assert [] == scene.api.writes


def test_a_newer_leaf_ends_the_wait() -> None:
    """Where another run has stored a newer leaf, nobody who serves the older one is waited for."""
    scene = Scene.begin()
    leaf, authority = scene.api.leaf(), scene.api.authority()
    newer = issue_leaf(authority, NAMES, NOW)
    scene.api.put_data(LEAF, tls_crt=newer.certificate, tls_key=newer.key)
    overlap = Overlap(
        world(scene.api, scene.clock, scene.fleet), NAMES, PATIENCE, scene.fleet.endpoints, unheard
    )

    with pytest.raises(OvertakenError):
        overlap.end(leaf, authority.certificate)
    assert [] == scene.clock.slept


def test_an_end_that_somebody_else_brought_is_no_deed() -> None:
    """Where another run ended the overlap in between, this one has nothing to report."""
    scene = Scene.begin()
    scene.fleet.pull_all()

    def ask(endpoints: Sequence[Replica], name: str) -> tuple[Served, ...]:
        scene.api.put_bundle(scene.api.authority().certificate, 0)
        scene.api.put_bundle(scene.api.authority().certificate, 1)
        return scene.fleet.ask(endpoints, name)

    assert () == scene.end(World(scene.api, scene.clock, ask))


def endpoint_slice(service: str, *addresses: str, **ports: int) -> JsonObject:
    return {
        "metadata": {"name": "x", "labels": {"kubernetes.io/service-name": service}},
        "ports": [{"name": name, "port": port} for name, port in ports.items()],
        "endpoints": [{"addresses": [address]} for address in addresses],
    }


def test_replicas_are_found_by_their_endpoint_slices() -> None:
    """Each address of the Service's slices counts once, with the port that speaks TLS."""
    api = FakeApi(
        {
            f"{SLICES}/a": endpoint_slice(NAMES.service, "10.1.0.7", "fd00::7", https=8443),
            f"{SLICES}/b": endpoint_slice(NAMES.service, "10.1.0.7", https=8443, status=8080),
            f"{SLICES}/c": endpoint_slice("another", "10.1.0.9", https=8443),
            f"{SLICES}/d": {**endpoint_slice(NAMES.service), "ports": None, "endpoints": None},
            CONFIGURATION: {},
        }
    )
    found = endpoints_of(api, NAMES)

    assert ("10.1.0.7:8443", "[fd00::7]:8443") == tuple(map(str, found))


def test_a_closed_port_is_trouble() -> None:
    """Calling where nobody listens tells why, and raises nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (served,) = call_each((Replica("127.0.0.1", port),), NAMES.verified)

    assert served.certificate is None
    assert "refused" in served.trouble
