"""What stored text is found to be, what of it is renewed and why, and what a person is shown."""

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from certs.bundle import Injector
from certs.facts import look_at, signers_of
from certs.issue import issue_ca
from certs.material import DAY, BadMaterial, Facts, KeyPair, ServiceNames, Stored
from certs.renewal import Keep, Reason, RenewCA, RenewLeaf, days_left, decide, decide_leaf, due_at
from certs.status import Status, status_of
from tests.support.certs import CA, LEAF, NAMES, NOW, FakeApi, ca_and_leaf, facts, installed
from tests.unit.certs.test_ensure import ready

AUTHORITY, PAIR = ca_and_leaf()


def stored(
    ca: KeyPair | None = AUTHORITY, leaf: KeyPair | None = PAIR, beside: bytes = b""
) -> Stored:
    return look_at(ca, leaf, beside or (ca.certificate if ca else b""))


def leaf_facts(**given: Any) -> Facts:
    found = stored(**given).leaf
    assert isinstance(found, Facts)
    return found


def foreign(names: tuple[str, ...] = ("other.example",)) -> KeyPair:
    leaf = trustme.CA(key_type=trustme.KeyType.ECDSA).issue_cert(
        *names, key_type=trustme.KeyType.ECDSA
    )
    return KeyPair(leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes())


def plain(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> KeyPair:
    """A certificate without any extension, as old tools make them."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "plain")])
    start = dt.datetime.fromtimestamp(NOW, dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7).not_valid_before(start)
    made = builder.not_valid_after(start + dt.timedelta(days=9)).sign(key, hashes.SHA256())
    return KeyPair(
        made.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def locked(pair: KeyPair) -> KeyPair:
    key = load_pem_private_key(pair.key, None)
    encryption = BestAvailableEncryption(b"secret")
    return replace(pair, key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))


def test_our_own_pairs_are_well() -> None:
    """What we issue is found to be exactly that."""
    found = stored()

    assert isinstance(found.ca, Facts)
    assert isinstance(found.leaf, Facts)
    for each in (found.ca, found.leaf):
        assert each.key_matches
        assert each.signed
        assert each.complete
        assert each.fit
    assert NAMES.all == found.leaf.names


def test_addresses_are_among_the_names() -> None:
    """IP addresses of a leaf are read back as text."""
    names = ServiceNames("hook", "fence", ("fd00::7",))
    ca, leaf = ca_and_leaf(names=names)

    assert names.all == leaf_facts(ca=ca, leaf=leaf).names


@pytest.mark.parametrize("nothing", [None, KeyPair(b"", b""), KeyPair(b" \n", b"")])
def test_nothing_is_nothing(nothing: KeyPair | None) -> None:
    """An absent pair and an empty one are the same."""
    assert Stored(None, None) == look_at(nothing, nothing, b"")


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (KeyPair(b"junk", PAIR.key), "tls.crt is no certificate"),
        (KeyPair(PAIR.certificate[:200], PAIR.key), "tls.crt is no certificate"),
        (KeyPair(b"", PAIR.key), "tls.crt is no certificate"),
        (KeyPair(PAIR.certificate, b""), "tls.key is no key, or needs a password"),
        (KeyPair(PAIR.certificate, PAIR.key[:90]), "tls.key is no key, or needs a password"),
        (locked(PAIR), "tls.key is no key, or needs a password"),
    ],
)
def test_damage_is_told(damaged: KeyPair, reason: str) -> None:
    """A pair of which one half cannot be read says which."""
    assert BadMaterial(reason) == stored(leaf=damaged).leaf


def test_a_key_of_another_certificate_does_not_match() -> None:
    """A pair that mixes two generations does not match."""
    assert not leaf_facts(leaf=KeyPair(PAIR.certificate, ca_and_leaf()[1].key)).key_matches


def test_a_leaf_of_another_ca_is_not_signed() -> None:
    """A leaf is held against the CA that is stored, not against its own issuer's name."""
    assert not leaf_facts(ca=issue_ca(NOW)).signed


def test_a_leaf_without_any_ca_is_not_signed() -> None:
    """Without a CA no leaf is signed."""
    assert not leaf_facts(ca=None).signed


def test_another_ca_beside_the_leaf_is_incomplete() -> None:
    """The CA that stands beside the leaf has to be the one that signed it."""
    assert not leaf_facts(beside=issue_ca(NOW).certificate).complete


@pytest.mark.parametrize(
    "other",
    [
        foreign(),
        plain(rsa.generate_private_key(65537, 2048)),
        plain(ec.generate_private_key(ec.SECP256R1())),
        plain(ec.generate_private_key(ec.SECP384R1())),
        AUTHORITY,
    ],
    ids=["foreign", "rsa", "plain", "p384", "ca"],
)
def test_another_kind_of_leaf_is_unfit(other: KeyPair) -> None:
    """A leaf of another key type, without our extensions or for years is not of our kind."""
    assert not leaf_facts(leaf=other).fit


@pytest.mark.parametrize(
    "other",
    [
        PAIR,
        KeyPair(AUTHORITY.certificate + issue_ca(NOW).certificate, AUTHORITY.key),
        plain(ec.generate_private_key(ec.SECP256R1())),
    ],
    ids=["leaf", "two", "plain"],
)
def test_another_kind_of_ca_is_unfit(other: KeyPair) -> None:
    """A CA that is none, or more than one, is not of our kind."""
    found = stored(ca=other).ca

    assert isinstance(found, Facts)
    assert not found.fit


def test_the_signer_is_found_among_others() -> None:
    """Of several CAs of the same name the one that really signed is found."""
    other = issue_ca(NOW).certificate

    assert (AUTHORITY.certificate,) == signers_of(PAIR.certificate, (other, AUTHORITY.certificate))


def test_junk_has_no_signer() -> None:
    """What is no certificate was signed by nobody."""
    assert () == signers_of(b"junk", (AUTHORITY.certificate,))


WELL = facts(not_after=NOW + 3649 * DAY, names=frozenset())
DAMAGES = [
    (None, Reason.MISSING),
    (BadMaterial("tls.crt is no certificate"), Reason.UNREADABLE),
    (facts(key_matches=False), Reason.KEY),
    (facts(fit=False), Reason.UNFIT),
    (facts(signed=False), Reason.SIGNATURE),
    (facts(complete=False), Reason.INCOMPLETE),
    (facts(not_before=NOW + 601, not_after=NOW + 90 * DAY), Reason.CLOCK),
    (facts(not_before=NOW - 90 * DAY, not_after=NOW), Reason.EXPIRED),
    (facts(not_before=NOW - 60 * DAY, not_after=NOW + 30 * DAY), Reason.DUE),
]


def test_a_whole_pair_is_kept_until_the_first_is_due() -> None:
    """Two pairs that are well are kept, and the decision says until when."""
    leaf = facts()

    assert Keep(until=due_at(leaf)) == decide(Stored(WELL, leaf), NAMES.all, NOW)


@pytest.mark.parametrize(("found", "reason"), DAMAGES, ids=lambda item: getattr(item, "name", ""))
def test_a_leaf_is_renewed_for_every_reason(
    found: Facts | BadMaterial | None, reason: Reason
) -> None:
    """Whatever is wrong with the leaf renews the leaf alone, and is named."""
    assert RenewLeaf(reason) == decide(Stored(WELL, found), NAMES.all, NOW)


@pytest.mark.parametrize(("found", "reason"), DAMAGES, ids=lambda item: getattr(item, "name", ""))
def test_a_ca_is_renewed_for_every_reason(
    found: Facts | BadMaterial | None, reason: Reason
) -> None:
    """Whatever is wrong with the CA renews the CA, however well the leaf is."""
    assert RenewCA(reason) == decide(Stored(found, facts()), NAMES.all, NOW)


def test_a_missing_name_renews_the_leaf() -> None:
    """A leaf that lacks one of the wanted names is renewed."""
    wanted = ServiceNames(NAMES.service, NAMES.namespace, ("10.0.0.7",)).all

    assert RenewLeaf(Reason.NAMES) == decide(Stored(WELL, facts()), wanted, NOW)


def test_a_name_too_many_is_no_reason() -> None:
    """A leaf that answers to more names than wanted is kept."""
    leaf = facts(names=NAMES.all | {"10.0.0.7"})

    assert isinstance(decide(Stored(WELL, leaf), NAMES.all, NOW), Keep)


def test_a_clock_slightly_behind_is_no_reason() -> None:
    """A certificate that begins within the tolerated skew ahead of this clock is kept."""
    leaf = facts(not_before=NOW + 600, not_after=NOW + 90 * DAY)

    assert isinstance(decide(Stored(WELL, leaf), NAMES.all, NOW), Keep)


def test_a_pair_is_due_after_two_thirds_of_its_life() -> None:
    """A leaf of ninety days is due sixty days after it begins."""
    assert NOW + 60 * DAY == due_at(facts(not_before=NOW, not_after=NOW + 90 * DAY))


def test_days_left_counts_down_below_zero() -> None:
    """What has expired has a negative number of days left."""
    assert -1.0 == days_left(facts(not_after=NOW - DAY), NOW)


@pytest.mark.parametrize(("found", "reason"), DAMAGES, ids=lambda item: getattr(item, "name", ""))
def test_without_the_right_to_replace_it_a_ca_that_is_due_still_signs(
    found: Facts | BadMaterial | None, reason: Reason
) -> None:
    """A run for the leaf alone keeps to a CA that is merely due, and to no other that is amiss."""
    expected = (
        Keep(until=due_at(found))
        if reason is Reason.DUE and isinstance(found, Facts)
        else RenewCA(reason)
    )

    assert expected == decide_leaf(Stored(found, facts()), NAMES.all, NOW)


@pytest.mark.parametrize(("found", "reason"), DAMAGES, ids=lambda item: getattr(item, "name", ""))
def test_without_that_right_a_leaf_is_renewed_for_the_same_reasons(
    found: Facts | BadMaterial | None, reason: Reason
) -> None:
    """A run for the leaf alone finds the same reasons to renew it."""
    assert RenewLeaf(reason) == decide_leaf(Stored(WELL, found), NAMES.all, NOW)


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


def spoiled(**keys: bytes) -> FakeApi:
    api = ready()
    api.put_data(LEAF, **keys)
    return api


def trusting(text: bytes, number: int = 0, *, more: bool = True) -> FakeApi:
    """Return a cluster in which one hook trusts this, beside our CA or alone."""
    api = ready()
    api.put_bundle((api.bundles()[0] if more else b"") + text, number)
    return api


def of_others() -> FakeApi:
    api, other = ready(), trustme.CA(key_type=trustme.KeyType.ECDSA)
    api.put_data(CA, tls_crt=other.cert_pem.bytes(), tls_key=other.private_key_pem.bytes())
    return api


@pytest.mark.parametrize(
    ("api", "days", "text", "alarming"),
    [
        (ready(), 61, "the next `ensure` renews: two thirds of its life are over", False),
        (ready(), 75, "", False),
        (ready(), 76, "", True),
        (ready(), 91, "it has expired", True),
        (ready(), 91, "-1 days", True),
        (installed(), 0, "CA                        missing", True),
        (installed(), 0, "does NOT trust the CA", True),
        (spoiled(tls_key=b"junk"), 0, "unreadable: tls.key is no key, or needs a password", True),
        (
            trusting(b"", 1, more=False),
            *(0, "cap.pods.gpufence.io      does NOT trust the CA", True),
        ),
        (trusting(issue_ca(NOW).certificate), 0, "trusts the CA (and 1 older)", False),
        (
            trusting(trustme.CA().cert_pem.bytes()),
            *(0, "caBundle also trusts 1 CA(s) not of gpufence", False),
        ),
        (of_others(), 0, "it is not of the kind that gpufence issues", True),
    ],
)
def test_what_is_shown_and_when_it_alarms(
    api: FakeApi, days: int, text: str, *, alarming: bool
) -> None:
    """
    What the next run renews is no alarm; what it cannot is, and so is a leaf that ends within
    fourteen days, since the daily runs have failed for weeks.
    """
    shown = status(api, NOW + days * DAY)

    assert text in shown.table
    assert alarming == shown.alarming


def test_wrong_names_alarm() -> None:
    """A leaf that does not answer to the wanted names alarms: the API server refuses it."""
    assert status(ready(), names=ServiceNames("another", NAMES.namespace)).alarming
