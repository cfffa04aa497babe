"""The program on a real API server, with exactly the rights of its manifests."""

import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from certs.bundle import normal
from certs.issue import issue_ca
from certs.material import ServiceNames
from certs.renewal import Keep, decide
from gpufence.names import CA_SECRET, TLS_SECRET
from kube import ClientSettings, ForbiddenError, connect, core, group
from tests.integration.certs.site import CONFIGURATION, CertsSite
from tests.support.site import PATIENCE_SECONDS


def assert_in_order(site: CertsSite) -> None:
    """One CA, one leaf, one bundle."""
    assert isinstance(decide(site.stored(), site.names.all, time.time()), Keep)
    assert {normal(site.authority().certificate)} == {bundle.ours for bundle in site.bundles()}


def test_ensure_installs_from_nothing(site: CertsSite) -> None:
    """With no more rights than the manifests grant, one run makes CA, bundle and leaf."""
    said = site.run("ensure")

    assert_in_order(site)
    assert "new CA: it is missing" in said
    assert "new leaf: it is missing" in said


def test_a_second_run_writes_nothing(site: CertsSite) -> None:
    """A run where all is well leaves every object's version as it was."""
    site.run("ensure")
    before = site.versions()
    said = site.run("ensure")

    assert before == site.versions()
    assert "gpufence-certs: nothing to do\n" == said


def test_applying_the_manifests_again_keeps_everything(site: CertsSite) -> None:
    """An upgrade that applies the same manifests empties neither Secrets nor bundles."""
    site.run("ensure")
    site.install()

    assert_in_order(site)


def test_ten_runs_at_once_agree(site: CertsSite) -> None:
    """Ten runs that start together from nothing end in one CA, one leaf and one bundle."""
    processes = [site.start("ensure") for _ in range(10)]
    said = [process.communicate(timeout=PATIENCE_SECONDS)[0] for process in processes]

    assert [0] * 10 == [process.returncode for process in processes], said
    assert 1 == sum("new CA:" in text for text in said)
    assert 1 == sum("new leaf:" in text for text in said)
    assert_in_order(site)


@pytest.mark.soak
def test_ten_rotations_at_once_agree(site: CertsSite) -> None:
    """Ten rotations of the CA that start together replace it, and end in one that is trusted."""
    site.run("ensure")
    before = site.authority()
    processes = [site.start("rotate", "--ca", GPUFENCE_CERTS_WAIT_SECONDS="0") for _ in range(10)]
    said = [process.communicate(timeout=PATIENCE_SECONDS)[0] for process in processes]

    assert [0] * 10 == [process.returncode for process in processes], said
    assert before != site.authority()
    assert isinstance(decide(site.stored(), site.names.all, time.time()), Keep)
    assert all(bundle.trusts(site.authority().certificate) for bundle in site.bundles())


def test_the_program_reads_no_other_secret(site: CertsSite) -> None:
    """The account of the manifests cannot read, list or create any Secret but its two."""
    secrets = core("namespaces", site.system, "secrets")
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}}
    site.admin.post(secrets, other)
    with connect(ClientSettings(kubeconfig=str(site.kubeconfig_of_install))) as client:
        client.get(f"{secrets}/{CA_SECRET}")
        attempts = (
            partial(client.get, f"{secrets}/other"),
            partial(client.get, secrets),
            partial(client.post, secrets, {**other, "metadata": {"name": "another"}}),
            partial(client.delete, f"{secrets}/{CA_SECRET}"),
            partial(client.delete, CONFIGURATION),
        )
        for attempt in attempts:
            with pytest.raises(ForbiddenError):
                attempt()


def test_a_deleted_secret_is_asked_for(site: CertsSite) -> None:
    """Where a Secret is gone the run ends with its name and the remedy, as it may not create it."""
    site.admin.delete(site.path(CA_SECRET))
    said = site.run("ensure", code=1)

    assert f"secret {site.system}/{CA_SECRET} does not exist; apply the manifests" in said


DAMAGES: dict[str, tuple[str, dict[str, bytes | None], str]] = {
    "mixed": (TLS_SECRET, {"tls_key": issue_ca(0).key}, "new leaf: its key does not match"),
    "lost CA": (CA_SECRET, {"tls_crt": None, "tls_key": None}, "new CA: it is missing"),
}


def test_damage_heals_and_is_reported(site: CertsSite) -> None:
    """A damaged Secret is whole again after the next run, which says what was wrong."""
    site.run("ensure")
    for name, data, word in DAMAGES.values():
        site.put(name, **data)
        said = site.run("ensure", GPUFENCE_CERTS_WAIT_SECONDS="0")

        assert word in said
        assert isinstance(decide(site.stored(), site.names.all, time.time()), Keep)
        assert all(bundle.trusts(site.authority().certificate) for bundle in site.bundles())


def test_a_lost_ca_key_keeps_the_old_ca_trusted(site: CertsSite) -> None:
    """After the CA's key was lost both CAs are trusted until the replicas serve the new leaf."""
    site.run("ensure")
    old = site.authority().certificate
    site.put(CA_SECRET, tls_key=None)
    said = site.run("ensure", GPUFENCE_CERTS_WAIT_SECONDS="0")

    assert "the old CA stays trusted until a later run" in said
    assert all(bundle.trusts(old) for bundle in site.bundles())
    assert all(bundle.trusts(site.authority().certificate) for bundle in site.bundles())


def test_replicas_are_found_by_endpoint_slices(site: CertsSite) -> None:
    """The replicas to be asked are those of the Service's slices; one that is silent is named."""
    site.run("ensure")
    # An address for documentation: nobody answers there.
    body = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "x", "labels": {"kubernetes.io/service-name": site.names.service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.7"]}],
        "ports": [{"name": "status", "port": 8080}, {"name": "https", "port": 8443}],
    }
    slices = group("discovery.k8s.io/v1", "namespaces", site.system, "endpointslices")
    site.admin.post(slices, body)
    said = site.run("rotate", "--ca", GPUFENCE_CERTS_WAIT_SECONDS="0")

    assert "192.0.2.7:8443 does not answer" in said
    assert "8080" not in said


def test_status_shows_a_table(site: CertsSite) -> None:
    """Status says of every part how it stands, and ends with 0 where all is well."""
    assert "missing" in site.run("status", code=1)
    site.run("ensure")
    said = site.run("status")

    assert ["WHAT", "CA", "leaf"] == [line.split()[0] for line in said.splitlines()[:3]]
    assert "cap.pods.gpufence.io      trusts the CA" in said


def test_mistakes_in_the_call_end_with_2(site: CertsSite) -> None:
    """Unreadable settings are named, and end the program before it asks anybody."""
    said = site.run("ensure", code=2, GPUFENCE_CERTS_ADDRESSES="here")

    assert 'GPUFENCE_CERTS_ADDRESSES: "here" is no IP address' in said


def test_openssl_accepts_the_chain(site: CertsSite, tmp_path: Path) -> None:
    """OpenSSL's own command verifies the stored leaf strictly, for the Service's name alone."""
    site.run("ensure")
    for name, text in site.secret(TLS_SECRET).items():
        (tmp_path / name).write_bytes(text)
    verify = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", "ca.crt"]
    results = [
        subprocess.run(
            [*verify, "-verify_hostname", name, "tls.crt"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        ).returncode
        for name in (site.names.verified, ServiceNames("other", site.system).verified)
    ]

    assert [0, 2] == results
