"""What may stand in a bundle, and what is kept of what stands there."""

import pytest
import trustme

from certs.bundle import Bundle, normal, read_bundle, trusting
from certs.issue import issue_ca
from tests.support.certs.builders import NOW

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
