"""
The list of CAs the API server trusts: which belong in it, and a gate for what stands there.

Stricter than the parser it feeds: whoever pastes a private key beside a certificate must not see us
publish it in an object that everybody may read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import NameOID

from certs.issue import CA_NAME
from gpufence.errors import InvalidError, Problem

_BLOCK = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\s*([A-Za-z0-9+/=\s]*)-----END \1-----\s*", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Bundle:
    """
    A list of CA certificates, each PEM in its normal form.
    """

    ours: tuple[bytes, ...] = ()
    foreign: tuple[bytes, ...] = ()

    @property
    def pem(self) -> bytes:
        return b"".join((*self.ours, *self.foreign))


def read_bundle(text: bytes, field: str) -> Bundle:
    """
    Read a bundle of CERTIFICATE blocks and nothing else; empty text is an empty bundle.
    """
    ours: list[bytes] = []
    foreign: list[bytes] = []
    for block in _blocks(text.strip(), field):
        certificate = _certificate(block, field)
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        mine = [str(name.value) for name in names] == [CA_NAME]
        (ours if mine else foreign).append(block)
    return Bundle(tuple(dict.fromkeys(ours)), tuple(dict.fromkeys(foreign)))


def trusting(bundle: Bundle, *wanted: bytes) -> Bundle:
    """
    Return the bundle with exactly these CAs of ours, and somebody else's left alone.
    """
    blocks = [block for text in wanted for block in _blocks(text.strip(), "our own CA")]
    return Bundle(tuple(dict.fromkeys(blocks)), bundle.foreign)


def _blocks(text: bytes, field: str) -> list[bytes]:
    blocks: list[bytes] = []
    position = 0
    while position < len(text):
        match = _BLOCK.match(text, position)
        if match is None or match[1] != b"CERTIFICATE":
            kind = match[1].decode() if match else "text outside of any block"
            raise InvalidError(
                Problem(field, kind, "is no CERTIFICATE block", "leave only certificates there")
            )
        body = b"".join(match[2].split())
        lines = [body[at : at + 64] for at in range(0, len(body), 64)]
        pem = (b"-----BEGIN CERTIFICATE-----", *lines, b"-----END CERTIFICATE-----")
        blocks.append(b"\n".join(pem) + b"\n")
        position = match.end()
    return blocks


def _certificate(block: bytes, field: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(block)
    except ValueError as error:
        raise InvalidError(
            Problem(field, "a CERTIFICATE block", "cannot be decoded", "remove it")
        ) from error
