"""Whatever a Secret or a bundle holds is looked at without a crash."""

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from certs.bundle import normal, read_bundle
from certs.facts import look_at, signers_of
from certs.issue import issue_ca
from certs.material import KeyPair
from certs.renewal import Keep, RenewCA, RenewLeaf, decide
from tests.support.certs import NAMES, NOW, ca_and_leaf

CA, LEAF = ca_and_leaf()
DER = x509.load_pem_x509_certificate(LEAF.certificate).public_bytes(Encoding.DER)
CERTIFICATES = [CA.certificate, LEAF.certificate, issue_ca(NOW).certificate]


def flipped(places: list[tuple[int, int]]) -> bytes:
    """Return the leaf with some bytes changed inside, still PEM."""
    der = bytearray(DER)
    for position, mask in places:
        der[position] ^= mask
    body = base64.encodebytes(bytes(der))
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"-----END CERTIFICATE-----\n"


flips = st.lists(st.tuples(st.integers(0, len(DER) - 1), st.integers(1, 255)), max_size=4)
texts = st.one_of(
    st.binary(max_size=80),
    st.sampled_from([*CERTIFICATES, CA.key, LEAF.key, b"", b"-----BEGIN CERTIFICATE-----\n"]),
    flips.map(flipped),
)
mixed = st.lists(texts, max_size=4).map(b"".join)


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(mixed, mixed, mixed)
def test_any_leaf_leads_to_a_decision(certificate: bytes, key: bytes, beside: bytes) -> None:
    """Any text in the leaf's Secret is kept or renewed, and only the leaf we issued is kept."""
    renewal = decide(look_at(CA, KeyPair(certificate, key), beside), NAMES.all, NOW)

    assert isinstance(renewal, (Keep, RenewLeaf))
    if isinstance(renewal, Keep):
        assert x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER) == DER


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(mixed, mixed)
def test_any_ca_leads_to_a_decision(certificate: bytes, key: bytes) -> None:
    """Any text in the CA's Secret is kept or renewed."""
    renewal = decide(look_at(KeyPair(certificate, key), LEAF, CA.certificate), NAMES.all, NOW)

    assert isinstance(renewal, (Keep, RenewLeaf, RenewCA))


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(mixed)
def test_any_bundle_is_sorted_out(text: bytes) -> None:
    """Any text is read as a bundle whose own text reads back the same, without what was refused."""
    bundle = read_bundle(text)
    again = read_bundle(bundle.pem)

    assert (bundle.ours, bundle.foreign, ()) == (again.ours, again.foreign, again.refused)
    assert b"PRIVATE" not in bundle.pem
    assert set(normal(text)) == {*bundle.ours, *bundle.foreign}


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(mixed)
def test_a_signer_is_one_of_the_candidates(text: bytes) -> None:
    """Only a CA that was offered can be found to have signed something."""
    assert set(signers_of(text, (CA.certificate,))) <= {CA.certificate}
