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
    """A CA is marked as one, critically, and nothing may stand between it and its leaves."""
    extension = load(issue_ca(NOW)).extensions.get_extension_for_class(x509.BasicConstraints)

    assert (True, True, 0) == (
        extension.critical,
        extension.value.ca,
        extension.value.path_length,
    )


def test_a_ca_lives_ten_years() -> None:
    """A CA begins five minutes back and ends ten years later."""
    start = NOW - BACKDATED_SECONDS

    assert (start, start + CA_DAYS * DAY) == life(load(issue_ca(NOW)))


def test_a_leaf_lives_ninety_days() -> None:
    """A leaf begins five minutes back and ends ninety days later."""
    start = NOW - BACKDATED_SECONDS

    assert (start, start + LEAF_DAYS * DAY) == life(load(ca_and_leaf()[1]))


def test_a_leaf_never_outlives_its_ca() -> None:
    """A leaf that is issued late in its CA's life ends with it."""
    ca = issue_ca(NOW)
    leaf = issue_leaf(ca, NAMES, NOW + (CA_DAYS - 10) * DAY)

    assert abs(life(load(ca))[1] - life(load(leaf))[1]) <= 1


def test_a_leaf_names_every_spelling_of_the_service() -> None:
    """A leaf answers to the Service's four spellings and to the configured addresses."""
    names = ServiceNames("hook", "fence", ("10.0.0.7", "fd00::7"))
    leaf = load(issue_leaf(issue_ca(NOW), names, NOW))
    found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert ["hook.fence.svc", "hook", "hook.fence", "hook.fence.svc.cluster.local"] == (
        found.get_values_for_type(x509.DNSName)
    )
    assert ["10.0.0.7", "fd00::7"] == [
        str(item) for item in found.get_values_for_type(x509.IPAddress)
    ]


def test_a_leaf_is_for_servers_only() -> None:
    """A leaf may serve and signs nothing but handshakes."""
    extensions = load(ca_and_leaf()[1]).extensions
    usage = extensions.get_extension_for_class(x509.KeyUsage).value
    extended = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value

    assert (True, False, False) == (usage.digital_signature, usage.key_cert_sign, usage.crl_sign)
    assert [ExtendedKeyUsageOID.SERVER_AUTH] == list(extended)


def test_a_leaf_points_to_its_ca() -> None:
    """The leaf's authority key identifier is the CA's subject key identifier."""
    ca, leaf = map(load, ca_and_leaf())
    subject = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    authority = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value

    assert subject.digest == authority.key_identifier


def test_keys_are_p256() -> None:
    """Both keys lie on the one curve that everything verifies fast."""
    keys = [load(pair).public_key() for pair in ca_and_leaf()]

    assert ["secp256r1"] * 2 == [
        key.curve.name for key in keys if isinstance(key, ec.EllipticCurvePublicKey)
    ]


def test_serials_are_random() -> None:
    """No two certificates share a serial number."""
    assert 4 == len({load(pair).serial_number for _ in range(2) for pair in ca_and_leaf()})


def test_a_service_with_a_long_name_is_certified() -> None:
    """ServiceNames longer than a common name may be still get a leaf that lists them whole."""
    names = ServiceNames("s" * 63, "n" * 63)
    leaf = load(issue_leaf(issue_ca(NOW), names, NOW))
    found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.verified in found.get_values_for_type(x509.DNSName)


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


def test_an_empty_bundle_trusts_nobody() -> None:
    """No text is a bundle without any CA."""
    assert Bundle() == read_bundle(b" \n")


def test_ours_are_told_from_others() -> None:
    """Certificates are sorted by whether their subject is the one we give."""
    read = read_bundle(OURS.certificate + FOREIGN + OTHER.certificate)

    assert (normal(OURS.certificate + OTHER.certificate), normal(FOREIGN)) == (
        read.ours,
        read.foreign,
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


def test_trusting_leaves_others_alone() -> None:
    """Choosing which CAs of ours are trusted keeps those of others."""
    chosen = trusting(read_bundle(OURS.certificate + FOREIGN), OTHER.certificate)

    assert (normal(OTHER.certificate), normal(FOREIGN)) == (chosen.ours, chosen.foreign)


def test_a_bundle_knows_whom_it_trusts() -> None:
    """A CA is trusted if all of it stands in the bundle, and nothing is never trusted."""
    bundle = read_bundle(OURS.certificate)

    assert (True, False, False) == tuple(
        bundle.trusts(text) for text in (OURS.certificate, OTHER.certificate, b"")
    )


def test_what_is_written_reads_back() -> None:
    """A bundle's text is in its normal form: reading it again changes nothing."""
    bundle = read_bundle(OURS.certificate + FOREIGN)

    assert bundle == read_bundle(bundle.pem)
