"""Which pairs may go live."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.support.authority import Authority, Leaf, write_files, write_secret
from webhook.tls import CertificateWatch, Pair, PairError, read_certificate, read_pair

END = "-----END CERTIFICATE-----"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def leaf(authority: Authority) -> Leaf:
    return authority.leaf()


def encrypted(key: bytes) -> bytes:
    opened = load_pem_private_key(key, None)
    return opened.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )


def test_a_good_pair_tells_its_validity(leaf: Leaf) -> None:
    """The certificate's own dates decide when it is good."""
    found = read_certificate(Pair(leaf.certificate, leaf.key))

    assert found.is_valid(datetime.now(UTC))
    assert not found.is_valid(found.not_after)


@pytest.mark.parametrize("broken", ["encrypted", "no key", "half a chain", "no certificate"])
def test_a_pair_that_cannot_serve_says_which_half(leaf: Leaf, broken: str) -> None:
    """The file to look at is named, and no key material is."""
    pairs = {
        "encrypted": Pair(leaf.certificate, encrypted(leaf.key)),
        "no key": Pair(leaf.certificate, b""),
        "half a chain": Pair(leaf.certificate + leaf.certificate[:200], leaf.key),
        "no certificate": Pair(b"", leaf.key),
    }
    with pytest.raises(PairError) as caught:
        read_certificate(pairs[broken])

    assert ("tls.key" if "key" in broken or broken == "encrypted" else "tls.crt") in str(
        caught.value
    )
    assert "BEGIN" not in str(caught.value)


def test_a_file_that_is_no_certificate_by_its_size_is_not_read(tmp_path: Path) -> None:
    """A wrong folder cannot fill the memory."""
    write_files(tmp_path, Leaf(b"x" * (2**20 + 1), b""))
    with pytest.raises(PairError, match="larger than a certificate can be"):
        read_pair(tmp_path)


def test_both_files_are_of_one_generation(authority: Authority, tmp_path: Path) -> None:
    """What `..data` names is read, whatever else lies in the folder."""
    first, second = authority.leaf(), authority.leaf()
    write_secret(tmp_path, first, 1)
    write_secret(tmp_path, second, 2)

    assert Pair(second.certificate, second.key) == read_pair(tmp_path)


def test_moving_bytes_between_the_files_changes_the_digest() -> None:
    """The digest tells where one file ends."""
    assert Pair(b"ab", b"c").digest != Pair(b"a", b"bc").digest


def test_a_trouble_is_told_once_and_a_cure_is_seen(authority: Authority, tmp_path: Path) -> None:
    """The same absence counts once; the pair that ends it goes live at the next look."""
    loads: list[str] = []
    watch = CertificateWatch(tmp_path, loads.append, 60.0)
    watch.look()
    watch.look()
    before = watch.trouble(), watch.expires()
    write_files(tmp_path, authority.leaf())
    watch.look()
    watch.look()

    assert (f"no usable certificate in {tmp_path}", None) == before
    assert ["refused", "swapped"] == loads
    assert watch.trouble() is None
    assert watch.current is not None


def test_a_certificate_of_an_unknown_version_is_no_pair(leaf: Leaf) -> None:
    """A certificate that says it is of an undefined version is refused like other damage."""
    third, sixth = b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x05"
    der = ssl.PEM_cert_to_DER_cert(leaf.certificate.decode().split("-----END")[0] + END)
    odd = ssl.DER_cert_to_PEM_cert(der.replace(third, sixth, 1)).encode()

    with pytest.raises(PairError):
        read_certificate(Pair(odd, leaf.key))


def test_a_certificate_of_tomorrow_goes_live_tomorrow(authority: Authority, tmp_path: Path) -> None:
    """What is not valid yet is refused once, and taken without another write when it is."""
    now = datetime.now(UTC)
    loads: list[str] = []
    watch = CertificateWatch(tmp_path, loads.append, 60.0, clock=lambda: now)
    write_files(tmp_path, authority.leaf())
    watch.look()
    first = watch.current
    write_files(tmp_path, authority.leaf(begins_in_days=1.0))
    watch.look()
    watch.look()
    before = watch.current
    now += timedelta(days=2)
    watch.look()

    assert first is before
    assert ["swapped", "refused", "swapped"] == loads
    assert watch.current is not first


def test_a_waiting_certificate_takes_over_from_one_that_expires(
    authority: Authority, tmp_path: Path
) -> None:
    """As soon as the live one is worth nothing, the other serves, such as it is."""
    now = datetime.now(UTC)
    watch = CertificateWatch(tmp_path, lambda _: None, 60.0, clock=lambda: now)
    write_files(tmp_path, authority.leaf(days=2.0))
    watch.look()
    first = watch.current
    write_files(tmp_path, authority.leaf(days=30.0, begins_in_days=5.0))
    watch.look()
    now += timedelta(days=3)
    watch.look()

    assert watch.current is not first


def test_a_ca_of_clients_that_is_none_lets_nobody_in(authority: Authority, tmp_path: Path) -> None:
    """A webhook that shall ask for certificates never serves without asking."""
    write_files(tmp_path, authority.leaf())
    ca = tmp_path / "client-ca.crt"
    watch = CertificateWatch(tmp_path, lambda _: None, 60.0, ca)
    watch.look()
    ca.write_text("nonsense")
    watch.look()
    before = watch.current
    ca.write_bytes(authority.pem)
    watch.look()

    assert before is None
    assert watch.current is not None
    assert ssl.CERT_REQUIRED == watch.current.context.verify_mode == watch.context.verify_mode
