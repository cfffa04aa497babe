"""
A certificate chain and its key, as they lie in a folder, made into a context that can serve.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509

from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

CERTIFICATE_FILE = "tls.crt"
KEY_FILE = "tls.key"
_LONGEST_BYTES = 2**20


class PairError(GpufenceError):
    """
    Raised for a pair that must not go live; the message says why and never holds key material.
    """


@dataclass(frozen=True, slots=True)
class Pair:
    """
    The two files as bytes, both of one moment.
    """

    certificate: bytes
    key: bytes

    @property
    def digest(self) -> bytes:
        """
        Tell one content from another: a mounted Secret has no dependable times.
        """
        lengths = len(self.certificate).to_bytes(8)
        return hashlib.sha256(lengths + self.certificate + self.key).digest()


@dataclass(frozen=True, slots=True)
class Certificate:
    """
    A pair that was proved to work together.
    """

    context: ssl.SSLContext
    not_before: datetime
    not_after: datetime
    serial: str

    def is_valid(self, now: datetime) -> bool:
        return self.not_before <= now < self.not_after


def read_pair(folder: Path) -> Pair:
    """
    Read both files through the folder that `..data` names at this moment.

    Kubernetes swaps that link when a Secret changes: two reads through it could mix generations.
    """
    data = folder / "..data"
    place = data.resolve() if data.is_symlink() else folder
    return Pair(_read(place, CERTIFICATE_FILE), _read(place, KEY_FILE))


def read_certificate(pair: Pair) -> Certificate:
    """
    Try the pair on a context of its own, which serves nobody until it has proved good.

    A failed load would leave a context that serves unable to shake hands at all.

    Raises PairError for anything but a whole chain and the key of its first certificate.
    """
    try:
        chain = x509.load_pem_x509_certificates(pair.certificate)
    except (ValueError, x509.InvalidVersion) as error:  # the second is no ValueError
        raise PairError(f"{CERTIFICATE_FILE} holds no whole chain of certificates") from error
    context = server_context()
    try:
        with _as_file(pair.certificate) as certificate, _as_file(pair.key) as key:
            context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        reason = (error.reason or "unreadable").replace("_", " ").lower()
        raise PairError(f"{KEY_FILE} is not the key of {CERTIFICATE_FILE} ({reason})") from error
    leaf = chain[0]
    return Certificate(
        context, leaf.not_valid_before_utc, leaf.not_valid_after_utc, f"{leaf.serial_number:x}"
    )


def server_context() -> ssl.SSLContext:
    """
    Make a context for a server without any certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.num_tickets = 0  # the API server never resumes a session
    return context


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST_BYTES + 1)
    except OSError as error:
        raise PairError(f"{path}: {error.strerror}") from error
    if len(content) > _LONGEST_BYTES:
        raise PairError(f"{path} is larger than a certificate can be")
    return content


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    # OpenSSL reads files, and the files in the folder may have changed since we read them.
    descriptor = os.memfd_create("gpufence", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _no_password() -> str:
    # Without this OpenSSL would ask for one on the terminal.
    raise PairError(f"{KEY_FILE} is encrypted; store the key in plain form")
