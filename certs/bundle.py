"""
The list of CAs the API server trusts: which belong in it, and a gate for what stands there.

Stricter than the parser it feeds: whoever pastes a private key beside a certificate must not see us
publish it again in an object that everybody may read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from certs.issue import CA_NAME

_BLOCK = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]{1,64})-----\s*([A-Za-z0-9+/=\s]*)-----END \1-----", re.ASCII
)
_CERTIFICATE = b"CERTIFICATE"
UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""All that looking at a damaged certificate may raise, at once or when a field is asked for."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """
    A list of CA certificates, each PEM in its normal form, and what else stood between them.
    """

    ours: tuple[bytes, ...] = ()
    foreign: tuple[bytes, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def pem(self) -> bytes:
        return b"".join((*self.ours, *self.foreign))

    def trusts_only(self, authority: bytes) -> bool:
        """
        Tell whether this is the one CA of ours in it.
        """
        return self.ours == normal(authority)

    def trusts(self, authority: bytes) -> bool:
        certificates = normal(authority)
        return bool(certificates) and set(certificates) <= {*self.ours, *self.foreign}


def read_bundle(text: bytes) -> Bundle:
    """
    Sort out a bundle: CAs of ours, CAs of others, and what is no certificate at all.
    """
    ours: list[bytes] = []
    foreign: list[bytes] = []
    refused: list[str] = []
    if _BLOCK.sub(b"", text).strip():
        refused.append("text outside of any block")
    for match in _BLOCK.finditer(text):
        certificate = _certificate(match)
        if certificate is None:
            kind = match[1].decode("ascii")
            refused.append("a broken CERTIFICATE" if match[1] == _CERTIFICATE else f"a {kind}")
        else:
            (ours if _is_ours(certificate) else foreign).append(_pem(match))
    return Bundle(_once(ours), _once(foreign), tuple(refused))


def trusting(bundle: Bundle, *wanted: bytes) -> Bundle:
    """
    Return the bundle with exactly these CAs of ours, and somebody else's left alone.
    """
    ours = [block for text in wanted for block in normal(text)]
    return Bundle(_once(ours), bundle.foreign)


def normal(text: bytes) -> tuple[bytes, ...]:
    """
    Return every certificate of a text in the form in which bundles hold them.
    """
    return _once([_pem(match) for match in _BLOCK.finditer(text) if _certificate(match)])


def _once(blocks: list[bytes]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(blocks))


def _pem(match: re.Match[bytes]) -> bytes:
    body = b"".join(match[2].split())
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    pem = (b"-----BEGIN CERTIFICATE-----", *lines, b"-----END CERTIFICATE-----")
    return b"\n".join(pem) + b"\n"


def _certificate(match: re.Match[bytes]) -> x509.Certificate | None:
    if match[1] != _CERTIFICATE:
        return None
    try:
        certificate = x509.load_pem_x509_certificate(_pem(match))
        _ = certificate.subject  # parsed only when asked for
    except UNREADABLE:
        return None
    return certificate


def _is_ours(certificate: x509.Certificate) -> bool:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return [str(name.value) for name in names] == [CA_NAME]
