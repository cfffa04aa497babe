"""Certificates that are issued, the bundle they stand in, and what can be seen of them."""

import ssl
import time
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.bundle import Bundle, normal, read_bundle, trusting
from certs.issue import BACKDATED_SECONDS, CA_DAYS, LEAF_DAYS, issue_ca, issue_leaf
from certs.material import DAY, KeyPair, ServiceNames
from tests.support.certs import NAMES, NOW, ca_and_leaf


def load(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def life(certificate: x509.Certificate) -> tuple[float, float]:
    return (
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
    )


def shake_hands(ca: KeyPair, leaf: KeyPair, name: str, folder: Path) -> str:
    """
    Let a client that verifies by RFC 5280 to the letter meet a server with the leaf; return what
    the client saw.
    """
    (folder / "tls.crt").write_bytes(leaf.certificate)
    (folder / "tls.key").write_bytes(leaf.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    client = ssl.create_default_context(cadata=ca.certificate.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    ends = [ssl.MemoryBIO() for _ in range(2)]
    pair = (
        client.wrap_bio(ends[0], ends[1], server_hostname=name),
        server.wrap_bio(ends[1], ends[0], server_side=True),
    )
    for _ in range(3):
        for side in pair:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return str(pair[0].getpeercert())


def test_a_ca_may_sign_leaves_only() -> None:
    """
    A CA is marked as one, critically, and nothing may stand between it and its leaves, which may
    serve, sign nothing but handshakes, and point to it.
    """
    ca, leaf = map(load, ca_and_leaf())
    extension = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
    extended = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    subject = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    authority = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value

    assert (True, True, 0) == (
        extension.critical,
        extension.value.ca,
        extension.value.path_length,
    )
    assert (True, False, False) == (usage.digital_signature, usage.key_cert_sign, usage.crl_sign)
    assert [ExtendedKeyUsageOID.SERVER_AUTH] == list(extended)
    assert subject.digest == authority.key_identifier


def test_what_is_issued_begins_five_minutes_back() -> None:
    """A CA lives ten years and a leaf ninety days, each by a P-256 key and a random number."""
    start, (ca, leaf) = NOW - BACKDATED_SECONDS, map(load, ca_and_leaf())
    keys = [each.public_key() for each in (ca, leaf)]

    assert [(start, start + CA_DAYS * DAY), (start, start + LEAF_DAYS * DAY)] == [
        life(each) for each in (ca, leaf)
    ]
    assert ["secp256r1"] * 2 == [
        key.curve.name for key in keys if isinstance(key, ec.EllipticCurvePublicKey)
    ]
    assert 4 == len({load(pair).serial_number for _ in range(2) for pair in ca_and_leaf()})


def test_a_leaf_never_outlives_its_ca() -> None:
    """A leaf that is issued late in its CA's life ends with it."""
    ca = issue_ca(NOW)
    leaf = issue_leaf(ca, NAMES, NOW + (CA_DAYS - 10) * DAY)

    assert abs(life(load(ca))[1] - life(load(leaf))[1]) <= 1


@pytest.mark.parametrize(
    ("service", "namespace"), [("hook", "fence"), ("s" * 63, "n" * 63)], ids=["short", "long"]
)
def test_a_leaf_names_every_spelling_of_the_service(service: str, namespace: str) -> None:
    """
    A leaf answers to the Service's four spellings, also where they are longer than a common name
    may be, and to the configured addresses.
    """
    names = ServiceNames(service, namespace, ("10.0.0.7", "fd00::7"))
    leaf = load(issue_leaf(issue_ca(NOW), names, NOW))
    found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    svc = f"{service}.{namespace}.svc"

    assert [svc, service, f"{service}.{namespace}", f"{svc}.cluster.local"] == (
        found.get_values_for_type(x509.DNSName)
    )
    assert ["10.0.0.7", "fd00::7"] == [
        str(item) for item in found.get_values_for_type(x509.IPAddress)
    ]


def test_a_key_of_another_type_signs_nothing() -> None:
    """A CA that is not ECDSA signs no leaf: one key type is all that servers ever hold."""
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    with pytest.raises(TypeError, match="no ECDSA key"):
        issue_leaf(KeyPair(issue_ca(NOW).certificate, pem), NAMES, NOW)


def test_strict_python_accepts_the_chain(tmp_path: Path) -> None:
    """A client that verifies strictly, as Python does from 3.13 on, shakes hands."""
    ca, leaf = ca_and_leaf(time.time())

    assert NAMES.verified in shake_hands(ca, leaf, NAMES.verified, tmp_path)


@pytest.mark.parametrize("name", ["other.fencing.svc", "gpufence-webhook.other.svc", "10.0.0.7"])
def test_a_leaf_for_another_name_is_refused(tmp_path: Path, name: str) -> None:
    """A client that asks for a name the leaf does not carry refuses it."""
    ca, leaf = ca_and_leaf(time.time())

    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(ca, leaf, name, tmp_path)


def test_a_leaf_of_another_ca_is_refused(tmp_path: Path) -> None:
    """A client that trusts another CA of the same name refuses the leaf."""
    _, leaf = ca_and_leaf(time.time())

    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(issue_ca(time.time()), leaf, NAMES.verified, tmp_path)


OURS, OTHER = issue_ca(NOW), issue_ca(NOW + 1)
FOREIGN = trustme.CA().cert_pem.bytes()
BROKEN = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def test_ours_are_told_from_others() -> None:
    """
    Certificates are sorted by whether their subject is the one we give, in a text that reads back
    as it was written; to choose which of ours are trusted keeps those of others.
    """
    read = read_bundle(OURS.certificate + FOREIGN + OTHER.certificate)
    chosen = trusting(read_bundle(OURS.certificate + FOREIGN), OTHER.certificate)

    assert (normal(OURS.certificate + OTHER.certificate), normal(FOREIGN)) == (
        read.ours,
        read.foreign,
    )
    assert (normal(OTHER.certificate), normal(FOREIGN)) == (chosen.ours, chosen.foreign)
    assert (read, Bundle()) == (read_bundle(read.pem), read_bundle(b" \n"))
    assert (True, False, False) == tuple(
        chosen.trusts(text) for text in (OTHER.certificate, OURS.certificate, b"")
    )


def test_the_same_certificate_counts_once() -> None:
    """Copies of a certificate in other line lengths are one."""
    lines = OURS.certificate.strip().split(b"\n")
    joined = b"\n".join([lines[0], b"".join(lines[1:-1]), lines[-1]])

    assert normal(OURS.certificate) == read_bundle(OURS.certificate + joined).ours


@pytest.mark.parametrize(
    ("junk", "word"),
    [
        (OURS.key, "a PRIVATE KEY"),
        (b"# the corporate CA\n", "text outside of any block"),
        (BROKEN, "a broken CERTIFICATE"),
        (OURS.certificate[:80], "text outside of any block"),
    ],
    ids=["key", "text", "broken", "half"],
)
def test_what_is_no_certificate_is_named(junk: bytes, word: str) -> None:
    """Anything but a certificate is named."""
    assert (word,) == read_bundle(FOREIGN + junk).refused


@pytest.mark.parametrize("junk", [OURS.key, b"text\n", BROKEN], ids=["key", "text", "broken"])
def test_certificates_survive_beside_junk(junk: bytes) -> None:
    """Certificates before and behind what is no certificate are kept, and it is not."""
    read = read_bundle(FOREIGN + junk + OURS.certificate)

    assert b"".join(normal(OURS.certificate + FOREIGN)) == read.pem
