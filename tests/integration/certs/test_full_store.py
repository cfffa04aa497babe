"""Runs whose API server can store nothing, since etcd's disk is full."""

import time

import pytest

from certs.issue import issue_leaf
from certs.material import DAY
from certs.renewal import Keep, decide
from gpufence.names import CA_SECRET, CERTS_INSTALL, TLS_SECRET, WEBHOOK_CONFIGURATION
from tests.integration.certs.site import CertsSite
from tests.integration.certs.test_account import there
from tests.integration.certs.test_program import assert_in_order
from tests.support.etcd import full
from tests.support.tree import found, moved

FULL = "database space exceeded"
INSTALLED = [CA_SECRET, WEBHOOK_CONFIGURATION, TLS_SECRET]


@pytest.mark.parametrize("number", range(len(INSTALLED)))
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
