"""Runs on a node whose clock is days off, and while the API server can store nothing."""

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from cryptography import x509

from certs.issue import BACKDATED_SECONDS, LEAF_DAYS, issue_ca, issue_leaf
from certs.material import DAY
from certs.renewal import Keep, decide
from gpufence.names import CA_SECRET, CERTS_INSTALL, TLS_SECRET, WEBHOOK_CONFIGURATION
from tests.integration.certs.site import CertsSite
from tests.integration.certs.test_account import there
from tests.integration.certs.test_program import assert_in_order
from tests.integration.certs.test_rotation import LEAST, Stage, staged
from tests.support.etcd import full
from tests.support.tree import found, moved

OFF = [-400 * DAY, -3 * DAY, 3 * DAY, 70 * DAY, 9 * 365 * DAY]
USUAL = "3 days behind"
IDS = ["400 days behind", USUAL, "3 days ahead", "70 days ahead", "9 years ahead"]
NEAR = (USUAL, "3 days ahead")
far_nightly = pytest.mark.parametrize(
    "off",
    [
        pytest.param(off, id=name, marks=() if name in NEAR else pytest.mark.nightly)
        for name, off in zip(IDS, OFF, strict=True)
    ],
)
OTHER = [3 * DAY, -3 * DAY, -400 * DAY, -3 * DAY, 0.0]


@pytest.fixture
def stage(site: CertsSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """An install that is not over: its Job is there, so that the daily run leaves its account."""
    site.apply(moved(found("Job", CERTS_INSTALL), site.system))
    with staged(site, tmp_path_factory.mktemp("tls")) as made:
        yield made


def assert_valid_now(site: CertsSite) -> None:
    """The leaf is valid by the right clock, from some minutes ago and for its whole life."""
    leaf = x509.load_pem_x509_certificate(site.leaf().certificate)
    age = time.time() - leaf.not_valid_before_utc.timestamp()

    assert BACKDATED_SECONDS - 5 <= age <= BACKDATED_SECONDS + 120
    assert timedelta(days=LEAF_DAYS) == leaf.not_valid_after_utc - leaf.not_valid_before_utc


@far_nightly
def test_a_clock_that_is_off_counts_for_nothing(site: CertsSite, off: float) -> None:
    """
    Whatever its node takes for the time, a run issues by the API server's, replaces nothing that is
    well because its own finds it old or too new, and renews what is due.
    """
    said = site.run("ensure", off=off)
    before = site.versions()

    assert_in_order(site)
    assert_valid_now(site)
    assert ("ahead of" if off > 0 else "behind") in said
    for command in ("ensure", "renew"):  # the daily run takes the account of the install away
        assert "nothing to do" in site.run(command, off=off)
    assert before == site.versions()

    ca = site.authority()
    old = issue_leaf(ca, site.names, time.time() - 61 * DAY)
    site.put(TLS_SECRET, tls_crt=old.certificate, tls_key=old.key, ca_crt=ca.certificate)
    assert "new leaf: two thirds of its life are over" in site.run("renew", off=off)
    assert ca == site.authority()
    assert_valid_now(site)


@pytest.mark.parametrize(
    ("off", "other"),
    [
        pytest.param(*both, id=name, marks=() if name == USUAL else pytest.mark.nightly)
        for name, *both in zip(IDS, OFF, OTHER, strict=True)
    ],
)
def test_installs_killed_under_wrong_clocks_are_finished(
    site: CertsSite, off: float, other: float
) -> None:
    """Killed after any write by one clock, an install is finished by another, with the same CA."""
    expected = [CA_SECRET, WEBHOOK_CONFIGURATION, TLS_SECRET]
    for number in range(1, len(expected) + 1):
        for name in (CA_SECRET, TLS_SECRET):
            site.put(name, tls_crt=None, tls_key=None, ca_crt=None)
        site.wipe_bundles()

        assert expected[:number] == site.run_and_kill(number, "ensure", off=off)
        ca = site.authority()
        site.run("ensure", off=other)
        assert ca == site.authority()
        assert_in_order(site)
        assert_valid_now(site)


@pytest.mark.parametrize(
    "off",
    [
        pytest.param(-3 * DAY, id=USUAL, marks=pytest.mark.nightly),
        pytest.param(70 * DAY, id="70 days ahead", marks=pytest.mark.soak),
    ],
)
def test_rotations_killed_under_wrong_clocks_lose_no_pod(stage: Stage, off: float) -> None:
    """
    A rotation that is killed after each of its writes, on a node whose clock is off, loses no
    request; the daily run on another such node does what it may, and the next install the rest.
    """
    site = stage.site
    with stage.losing_nothing(LEAST):
        for number in range(1, 5):
            before = site.authority()
            site.run_and_kill(number, "rotate", "--ca", *stage.endpoints, off=off)
            rotated = site.authority()
            site.run("renew", code=int(number == 1), off=-off)
            site.run("ensure", *stage.endpoints, off=-off)

            assert before != rotated == site.authority()
            stage.assert_settled()
            assert_valid_now(site)


def test_what_a_wrong_clock_has_left_heals(site: CertsSite) -> None:
    """A CA and a leaf from the future, as older versions made them, are replaced by an install."""
    ca = issue_ca(time.time() + 3 * DAY)
    leaf = issue_leaf(ca, site.names, time.time() + 3 * DAY)
    site.put(CA_SECRET, tls_crt=ca.certificate, tls_key=ca.key)
    site.put(TLS_SECRET, tls_crt=leaf.certificate, tls_key=leaf.key, ca_crt=ca.certificate)
    said = site.run("ensure", GPUFENCE_CERTS_WAIT_SECONDS="0")

    assert "new CA: it is not valid yet: a clock was or is wrong" in said
    assert_valid_now(site)


FULL = "database space exceeded"
INSTALLED = [CA_SECRET, WEBHOOK_CONFIGURATION, TLS_SECRET]


@pytest.mark.parametrize(
    "number",
    [pytest.param(at, marks=() if at == 1 else pytest.mark.nightly) for at in range(3)],
)
def test_an_install_ends_with_the_reason(site: CertsSite, number: int) -> None:
    """An install that can store no more says why, and the next one goes on from there."""
    writes, said = site.run_and_fill(number, "ensure")
    ca = site.authority()

    assert FULL in said
    assert "Traceback" not in said
    assert INSTALLED[:number] == writes
    site.run("ensure")
    assert ca.certificate in (b"", site.authority().certificate)
    assert_in_order(site)


def test_an_install_removes_its_account_all_the_same(site: CertsSite) -> None:
    """A full store takes what is deleted, so that the right on the hooks does not stay."""
    site.apply(moved(found("Job", CERTS_INSTALL), site.system))
    site.run_and_fill(len(INSTALLED), "ensure", "--remove-install-account", code=0)

    assert set() == there(site)
    assert_in_order(site)


def test_the_daily_run_ends_with_the_reason(site: CertsSite) -> None:
    """A leaf that is due is not replaced by half, and is renewed by the next daily run."""
    site.run("ensure")
    ca = site.authority()
    old = issue_leaf(ca, site.names, time.time() - 61 * DAY)
    site.put(TLS_SECRET, tls_crt=old.certificate, tls_key=old.key, ca_crt=ca.certificate)
    before = site.versions()
    writes, said = site.run_and_fill(0, "renew")

    assert FULL in said
    assert TLS_SECRET not in writes
    assert before == site.versions()
    assert "new leaf: two thirds of its life are over" in site.run("renew")
    assert_in_order(site)


def test_the_daily_run_needs_no_room_where_all_is_well(site: CertsSite) -> None:
    """A daily run that has nothing to do reads, and is content."""
    site.run("ensure")
    with full(site.plane.folder):
        assert "nothing to do" in site.run("renew")


@pytest.mark.parametrize(
    "number",
    [pytest.param(at, marks=() if at == 1 else pytest.mark.nightly) for at in range(3)],
)
def test_a_rotation_ends_with_the_reason(site: CertsSite, number: int) -> None:
    """What a rotation could not store the next run does, and every leaf is trusted meanwhile."""
    site.run("ensure")
    writes, said = site.run_and_fill(number, "rotate", "--ca")

    assert FULL in said
    assert INSTALLED[:number] == writes
    assert all(bundle.trusts(site.secret(TLS_SECRET)["ca.crt"]) for bundle in site.bundles())
    site.run("ensure", GPUFENCE_CERTS_WAIT_SECONDS="0")
    assert isinstance(decide(site.stored(), site.names.all, time.time()), Keep)
    assert all(bundle.trusts(site.authority().certificate) for bundle in site.bundles())
