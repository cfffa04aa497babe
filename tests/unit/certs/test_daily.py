"""What runs do whose account may not write whom the API server trusts."""

from contextlib import suppress

import pytest
import trustme
from cryptography import x509

from certs.ensure import Report, TrustMode
from certs.issue import issue_ca
from certs.material import DAY
from certs.ports import NeedsInstallError
from tests.support.certs.builders import HOOKS, NOW
from tests.support.certs.fakes import CA, CONFIGURATION, LEAF, FakeApi, FakeClock, installed
from tests.unit.certs.test_ensure import assert_in_order, ready, run

FOREIGN = trustme.CA().cert_pem.bytes()


def without_the_right(api: FakeApi) -> list[str]:
    """Return what was written of those that take the right on the webhook configuration."""
    return [path for path in api.writes if path == CONFIGURATION]


def test_the_daily_run_renews_a_due_leaf() -> None:
    """Without the right on the webhook configuration the leaf is renewed by the CA there is."""
    api, at = ready(), NOW + 60 * DAY
    report = run(api, at, trust=TrustMode.CHECK)

    assert ("new leaf: two thirds of its life are over",) == report.done
    assert [LEAF] == api.writes
    assert_in_order(api, at)


def test_the_daily_run_renews_leaves_under_a_ca_that_is_due() -> None:
    """A CA that is due signs on, and the run says who replaces it."""
    api, at, said = ready(), NOW + 2500 * DAY, list[str]()
    before = api.authority()
    run(api, at, trust=TrustMode.CHECK, say=said.append)

    assert before == api.authority()
    assert [LEAF] == api.writes
    assert any("the CA is due, and the install job replaces it" in text for text in said)


@pytest.mark.parametrize("trust", [TrustMode.CHECK, TrustMode.LATER])
def test_the_daily_run_replaces_no_ca(trust: TrustMode) -> None:
    """A CA that has to be replaced is left to the install, and nothing is written."""
    api = ready()
    api.put_data(CA, tls_key=b"")

    with pytest.raises(NeedsInstallError, match="the CA has to be replaced: it cannot be read"):
        run(api, trust=trust)
    assert [] == api.writes


@pytest.mark.parametrize("bundle", [b"", FOREIGN, issue_ca(NOW).certificate])
def test_the_daily_run_serves_no_leaf_that_is_not_trusted(bundle: bytes) -> None:
    """Where a hook does not trust the CA the leaf stays, and the run names hook and remedy."""
    api, at = ready(), NOW + 60 * DAY
    api.put_bundle(bundle)

    with pytest.raises(NeedsInstallError, match=f"{HOOKS[0]} .* does not trust the CA.*apply the"):
        run(api, at, trust=TrustMode.CHECK)
    assert [] == api.writes


def test_the_daily_run_gives_the_api_servers_time_where_the_ca_is_new() -> None:
    """A rotation that died before its leaf was made is finished but for the old CA."""
    api, clock = ready(), FakeClock(NOW)
    old, new = api.authority(), issue_ca(NOW)
    api.put_data(CA, tls_crt=new.certificate, tls_key=new.key)
    for number in range(len(HOOKS)):
        api.put_bundle(old.certificate + new.certificate, number)
    report = run(api, clock=clock, trust=TrustMode.CHECK)

    assert ("new leaf: another CA has signed it",) == report.done
    assert 1 == len(report.pending)
    assert [5.0] == clock.slept
    assert [LEAF] == api.writes


def test_certificates_are_issued_before_anything_trusts_them() -> None:
    """Where no hook trusts a CA of ours, CA and leaf are made, and an install has them trusted."""
    api = installed()
    run(api, trust=TrustMode.LATER)
    leaf = api.leaf()

    assert [CA, LEAF] == api.writes
    assert Report((), ()) == run(api, trust=TrustMode.LATER)

    run(api)
    assert leaf == api.leaf()
    assert_in_order(api)


def test_only_an_install_writes_whom_to_trust() -> None:
    """Neither of the two runs without that right ever tries."""
    for trust in (TrustMode.CHECK, TrustMode.LATER):
        for api in (ready(), installed()):
            for at in (NOW, NOW + 61 * DAY, NOW + 4000 * DAY):
                with suppress(NeedsInstallError):
                    run(api, at, trust=trust)
            assert [] == without_the_right(api)


def test_a_ca_of_a_shorter_life_signs_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves of a CA that was made for a year end with it, and an install replaces it when due."""
    monkeypatch.setattr("certs.issue.CA_DAYS", 365)
    api = ready()
    before = api.authority()
    for day in range(1, 360, 20):
        run(api, NOW + day * DAY, trust=TrustMode.CHECK)
    leaf, ca = (
        x509.load_pem_x509_certificate(pair.certificate) for pair in (api.leaf(), api.authority())
    )

    assert before == api.authority()
    assert leaf.not_valid_after_utc == ca.not_valid_after_utc

    run(api, NOW + 350 * DAY)
    assert before != api.authority()
    assert_in_order(api, NOW + 350 * DAY)
