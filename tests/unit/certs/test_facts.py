"""What stored text is found to be."""

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

from certs.facts import look_at, signers_of
from certs.issue import issue_ca
from certs.material import BadMaterial, Facts, KeyPair, ServiceNames, Stored
from tests.support.certs import NAMES, NOW, ca_and_leaf

AUTHORITY, LEAF = ca_and_leaf()


def stored(
    ca: KeyPair | None = AUTHORITY, leaf: KeyPair | None = LEAF, beside: bytes = b""
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
    for facts in (found.ca, found.leaf):
        assert facts.key_matches
        assert facts.signed
        assert facts.complete
        assert facts.fit
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
        (KeyPair(b"junk", LEAF.key), "tls.crt is no certificate"),
        (KeyPair(LEAF.certificate[:200], LEAF.key), "tls.crt is no certificate"),
        (KeyPair(b"", LEAF.key), "tls.crt is no certificate"),
        (KeyPair(LEAF.certificate, b""), "tls.key is no key, or needs a password"),
        (KeyPair(LEAF.certificate, LEAF.key[:90]), "tls.key is no key, or needs a password"),
        (locked(LEAF), "tls.key is no key, or needs a password"),
    ],
)
def test_damage_is_told(damaged: KeyPair, reason: str) -> None:
    """A pair of which one half cannot be read says which."""
    assert BadMaterial(reason) == stored(leaf=damaged).leaf


def test_a_key_of_another_certificate_does_not_match() -> None:
    """A pair that mixes two generations does not match."""
    assert not leaf_facts(leaf=KeyPair(LEAF.certificate, ca_and_leaf()[1].key)).key_matches


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
        LEAF,
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

    assert (AUTHORITY.certificate,) == signers_of(LEAF.certificate, (other, AUTHORITY.certificate))


def test_junk_has_no_signer() -> None:
    """What is no certificate was signed by nobody."""
    assert () == signers_of(b"junk", (AUTHORITY.certificate,))
