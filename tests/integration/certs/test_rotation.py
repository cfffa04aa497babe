"""Rotations and crashes while pods are created all the time through the real webhook."""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from certs.bundle import normal
from certs.facts import der_of
from certs.renewal import Keep, decide
from gpufence.names import CA_SECRET, MODE, TLS_SECRET, WEBHOOK_CONFIGURATION
from kube import PatchType, core
from tests.integration.certs.load import Handshakes, Kubelet, Load
from tests.integration.certs.site import CONFIGURATION, LOOPBACK, CertsSite
from tests.support.objects import gpu_pod
from tests.support.observing import wait_until
from tests.support.webhook_site import Webhook

PATIENCE_SECONDS = 30.0
LEAST = 10
SCENES: dict[str, tuple[str, ...]] = {
    "leaf": (TLS_SECRET,),
    "ca": (CA_SECRET, WEBHOOK_CONFIGURATION, TLS_SECRET, WEBHOOK_CONFIGURATION),
}


class Stage:
    """Everything in motion: API server, webhook, kubelet and people who create pods."""

    def __init__(self, site: CertsSite, webhook: Webhook, team: str) -> None:
        self.site = site
        self.team = team
        self.port = webhook.port
        self.endpoints = ("--endpoints", f"{LOOPBACK}:{webhook.port}")

    def ensure(self) -> str:
        return self.site.run("ensure", *self.endpoints)

    def load(self) -> Load:
        return Load(self.site.admin, self.team)

    @contextmanager
    def losing_nothing(self, least: int) -> Iterator[None]:
        """
        Create pods and shake hands all the while: every creation succeeds, every pod is rewritten
        and every handshake is trusted; `-s` shows how many.
        """
        site = self.site
        with (
            Handshakes(site.admin, self.port, site.names.verified) as handshakes,
            self.load() as load,
        ):
            yield
            wait_until(lambda: der_of(site.leaf()) in handshakes.leaves)
            wait_until(lambda: min(load.count.made, handshakes.made) >= least, "nothing is made")
        count = load.count
        print(  # noqa: T201 - figures for whoever runs this with -s
            f"\n{count.made} pods made, {len(count.failed)} failed, {len(count.missed)} missed; "
            f"{handshakes.made} handshakes with {len(handshakes.leaves)} leaves, "
            f"{len(handshakes.failed)} failed"
        )

        assert [] == count.failed
        assert [] == count.missed
        assert [] == handshakes.failed

    def is_seen(self) -> bool:
        """Tell whether a pod that is only tried out comes back rewritten."""
        path = core("namespaces", self.team, "pods")
        tried = self.site.admin.post(path, gpu_pod("tried"), {"dryRun": "All"})
        return bool(tried["metadata"].get("annotations"))

    def assert_settled(self) -> None:
        """One CA, its leaf, and every hook trusting that CA alone."""
        site = self.site
        assert isinstance(decide(site.stored(), site.names.all, time.time()), Keep)
        assert {normal(site.authority().certificate)} == {item.ours for item in site.bundles()}


@contextmanager
def staged(site: CertsSite, folder: Path) -> Iterator[Stage]:
    """Install from nothing: the webhook waits for its certificate, which one run brings."""
    team = f"team-{site.system}"
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": team, "labels": {MODE: "cap"}},
    }
    site.admin.post(core("namespaces"), namespace)
    trust = ssl.create_default_context()
    with (
        Webhook(folder, trust, GPUFENCE_TLS_POLL_SECONDS="0.2") as webhook,
        Kubelet(site.admin, site.path(TLS_SECRET), folder),
    ):
        site.aim(LOOPBACK, webhook.port)
        made = Stage(site, webhook, team)
        made.ensure()
        wait_until(made.is_seen)
        yield made
    site.admin.delete(core("namespaces", team))


@pytest.fixture
def stage(site: CertsSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(site, tmp_path_factory.mktemp("tls")) as made:
        yield made


@pytest.mark.parametrize("kind", ["leaf", "ca"])
def test_a_rotation_loses_no_pod(stage: Stage, kind: str) -> None:
    """A rotation under load fails no creation and hides no pod from the webhook."""
    before = stage.site.leaf()
    with stage.losing_nothing(LEAST):
        stage.site.run("rotate", f"--{kind}", *stage.endpoints)

    assert before != stage.site.leaf()
    stage.assert_settled()


@pytest.mark.parametrize("kind", ["leaf", pytest.param("ca", marks=pytest.mark.nightly)])
def test_a_crash_after_any_write_loses_no_pod(stage: Stage, kind: str) -> None:
    """
    A rotation that is killed after its first, second, ... last write loses nothing, and the next
    run finishes what was begun.
    """
    with stage.losing_nothing(LEAST):
        for number in range(1, len(SCENES[kind]) + 1):
            done = stage.site.run_and_kill(number, "rotate", f"--{kind}", *stage.endpoints)

            assert SCENES[kind][:number] == tuple(done)
            stage.ensure()
            stage.assert_settled()


@pytest.mark.soak
def test_crashes_of_the_runs_that_recover_lose_no_pod(stage: Stage) -> None:
    """After a CA rotation died, runs that die after each of their own writes still lose nothing."""
    with stage.losing_nothing(LEAST):
        stage.site.run_and_kill(1, "rotate", "--ca", *stage.endpoints)
        while stage.site.run_and_kill(1, "ensure", *stage.endpoints):
            continue
        stage.assert_settled()


@pytest.mark.soak
def test_rotations_at_once_lose_no_pod(stage: Stage) -> None:
    """Five rotations of the CA at the same time lose nothing, and end in one CA."""
    with stage.losing_nothing(LEAST):
        runs = [stage.site.start("rotate", "--ca", *stage.endpoints) for _ in range(5)]
        said = [run.communicate(timeout=PATIENCE_SECONDS * 2)[0] for run in runs]
        stage.ensure()

    assert [0] * 5 == [run.returncode for run in runs], said
    stage.assert_settled()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_install_that_died_is_finished_by_the_next(site: CertsSite, number: int) -> None:
    """An install that is killed after its first, second or third write is completed by the next."""
    expected = [CA_SECRET, WEBHOOK_CONFIGURATION, TLS_SECRET][:number]

    assert expected == site.run_and_kill(number, "ensure")
    site.run("ensure")
    assert isinstance(decide(site.stored(), site.names.all, time.time()), Keep)
    assert {normal(site.authority().certificate)} == {item.ours for item in site.bundles()}


DAMAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "lost CA key": (CA_SECRET, {"tls_key": None}),
    "lost CA": (CA_SECRET, {"tls_crt": None, "tls_key": None}),
    "junk leaf": (TLS_SECRET, {"tls_crt": b"junk"}),
    "half a leaf": (TLS_SECRET, {"tls_key": None}),
    "all of the leaf": (TLS_SECRET, {"tls_crt": None, "tls_key": None, "ca_crt": None}),
}


@pytest.mark.soak
def test_damage_and_healing_lose_no_pod(stage: Stage) -> None:
    """Secrets that are damaged under load, and healed by a run, lose no pod."""
    with stage.losing_nothing(LEAST):
        for name, data in DAMAGES.values():
            stage.site.put(name, **data)
            stage.ensure()
            stage.assert_settled()


def test_a_leaf_for_another_name_is_refused(stage: Stage) -> None:
    """The API server refuses the leaf under a name that it lacks, and so the webhook."""
    with stage.load() as load:
        stage.site.aim("localhost", stage.port)
        wait_until(lambda: load.count.missed)
        stage.site.aim(LOOPBACK, stage.port)
        wait_until(stage.is_seen)

    assert [] == load.count.failed


def test_losses_would_show(stage: Stage) -> None:
    """Without the CA in the bundles pods do miss the webhook, until a run restores it."""
    empty = [
        {"op": "remove", "path": f"/webhooks/{number}/clientConfig/caBundle"}
        for number in range(len(stage.site.bundles()))
    ]
    with stage.load() as load:
        stage.site.admin.patch(CONFIGURATION, empty, PatchType.JSON)
        wait_until(lambda: load.count.missed)
        stage.ensure()
        wait_until(stage.is_seen)

    assert [] == load.count.failed
    stage.assert_settled()
