"""What a person is shown, and when it alarms."""

import trustme

from certs.bundle import Injector
from certs.facts import look_at
from certs.issue import issue_ca
from certs.material import DAY, ServiceNames
from certs.status import Status, status_of
from tests.support.certs import CA, LEAF, NAMES, NOW, FakeApi, installed
from tests.unit.certs.test_ensure import ready


def status(api: FakeApi, at: float = NOW, names: ServiceNames = NAMES) -> Status:
    ca = api.authority()
    beside = api.data(LEAF).get("ca.crt", b"")
    return status_of(
        look_at(ca, api.leaf(), beside), Injector(api).read(), ca.certificate, names.all, at
    )


def test_a_ready_cluster_is_shown_whole() -> None:
    """Where all is well the table says so line by line, and nothing alarms."""
    lines = [
        "WHAT                      STATE          EXPIRES               LEFT",
        "CA                        ok             2036-09-18 14:08 UTC  3650 days",
        "leaf                      ok             2026-12-20 14:08 UTC  90 days",
        "observe.pods.gpufence.io  trusts the CA  -                     -",
        "cap.pods.gpufence.io      trusts the CA  -                     -",
        "next renewal due: 2026-11-20 14:08 UTC",
    ]
    shown = status(ready())

    assert lines == shown.table.splitlines()
    assert not shown.alarming


def test_a_due_leaf_alarms_nobody() -> None:
    """A leaf that the next run renews is shown as due and is no alarm."""
    shown = status(ready(), NOW + 61 * DAY)

    assert "the next `ensure` renews: two thirds of its life are over" in shown.table
    assert not shown.alarming


def test_fourteen_days_before_the_end_it_alarms() -> None:
    """A leaf that ends within fourteen days alarms: the daily runs have failed for weeks."""
    api = ready()

    assert not status(api, NOW + 75 * DAY).alarming
    assert status(api, NOW + 76 * DAY).alarming


def test_an_expired_leaf_alarms() -> None:
    """A leaf that has expired says so and alarms."""
    shown = status(ready(), NOW + 91 * DAY)

    assert "it has expired" in shown.table
    assert "-1 days" in shown.table
    assert shown.alarming


def test_empty_secrets_alarm() -> None:
    """Before the first run everything is missing."""
    shown = status(installed())

    assert "CA                        missing" in shown.table
    assert "does NOT trust the CA" in shown.table
    assert shown.alarming


def test_damage_alarms() -> None:
    """An unreadable key is named and alarms."""
    api = ready()
    api.put_data(LEAF, tls_key=b"junk")
    shown = status(api)

    assert "unreadable: tls.key is no key, or needs a password" in shown.table
    assert shown.alarming


def test_a_hook_without_the_ca_alarms() -> None:
    """One hook that does not trust the CA is named and alarms."""
    api = ready()
    api.put_bundle(b"", 1)
    shown = status(api)

    assert "cap.pods.gpufence.io      does NOT trust the CA" in shown.table
    assert shown.alarming


def test_older_cas_are_counted() -> None:
    """During an overlap the table says how many older CAs are still trusted."""
    api = ready()
    api.put_bundle(api.bundles()[0] + issue_ca(NOW).certificate)
    shown = status(api)

    assert "trusts the CA (and 1 older)" in shown.table
    assert not shown.alarming


def test_foreign_cas_are_mentioned() -> None:
    """A CA of somebody else in a bundle is mentioned."""
    api = ready()
    api.put_bundle(api.bundles()[0] + trustme.CA().cert_pem.bytes())

    assert "caBundle also trusts 1 CA(s) not of gpufence" in status(api).table


def test_wrong_names_alarm() -> None:
    """A leaf that does not answer to the wanted names alarms: the API server refuses it."""
    assert status(ready(), names=ServiceNames("another", NAMES.namespace)).alarming


def test_a_foreign_ca_secret_is_told() -> None:
    """A CA that is not of our making is shown as such."""
    api = ready()
    other = trustme.CA(key_type=trustme.KeyType.ECDSA)
    api.put_data(CA, tls_crt=other.cert_pem.bytes(), tls_key=other.private_key_pem.bytes())

    assert "it is not of the kind that gpufence issues" in status(api).table
