"""A certificate chain and its key, as they lie in a folder, and the newest good pair kept live."""

from __future__ import annotations

import hashlib
import logging
import os
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography import x509

from gpufence.errors import GpufenceError
from kube.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CERTIFICATE_FILE = "tls.crt"
KEY_FILE = "tls.key"
_LONGEST_BYTES = 2**20
_log = logging.getLogger(__name__)


class PairError(GpufenceError):
    """
    Raised for a pair that must not go live; the message says why and never holds key material.
    """


@dataclass(frozen=True, slots=True)
class Pair:
    """The two files as bytes, both of one moment."""

    certificate: bytes
    key: bytes

    @property
    def digest(self) -> bytes:
        """Return what tells one content from another: a mounted Secret has no dependable times."""
        lengths = len(self.certificate).to_bytes(8)
        return hashlib.sha256(lengths + self.certificate + self.key).digest()


@dataclass(frozen=True, slots=True)
class Certificate:
    """A pair that was proved to work together."""

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
    return Pair(_read(place / CERTIFICATE_FILE), _read(place / KEY_FILE))


def read_certificate(pair: Pair, client_ca: bytes = b"") -> Certificate:
    """
    Try the pair on a context of its own, which serves nobody until it has proved good.

    A failed load would leave a context that serves unable to shake hands at all.

    Raises PairError for anything but a whole chain and the key of its first certificate.
    """
    try:
        chain = x509.load_pem_x509_certificates(pair.certificate)
    except (ValueError, x509.InvalidVersion) as error:  # the second is no ValueError
        raise PairError(f"{CERTIFICATE_FILE} holds no whole chain of certificates") from error
    context = server_context(client_ca)
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


def server_context(client_ca: bytes = b"") -> ssl.SSLContext:
    """
    Make a context for a server without any certificate, which asks for the client's where there is
    a CA to know it by.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if client_ca:
        try:
            context.load_verify_locations(cadata=client_ca.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise PairError("the CA of the clients is no certificate in PEM") from error
        context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.num_tickets = 0  # the API server never resumes a session
    return context


def _read(path: Path) -> bytes:
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


def _now() -> datetime:
    return datetime.now(UTC)


class CertificateWatch:
    """
    Looks at a folder again and again and serves the newest pair that is good.

    Connections keep the certificate they were made with; the next handshake gets the new one. What
    cannot serve never goes live: the old pair stays, and the matter is told once for each content.
    """

    def __init__(
        self,
        folder: Path,
        count_load: Callable[[str], None],
        poll_seconds: float,
        client_ca: Path | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._folder = folder
        self._client_ca = client_ca
        self._clock = clock
        self._count_load = count_load
        self._poll_seconds = poll_seconds
        self._current: Certificate | None = None
        self._later: Certificate | None = None
        self._seen: object = None
        self._repeating = Repeating("certificate", self._turn, jitter=0.0)
        self.context = server_context()
        if client_ca is not None:
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.sni_callback = self._choose

    @property
    def current(self) -> Certificate | None:
        return self._current

    def expires(self) -> float | None:
        """Return the Unix time at which the live certificate ends; None without one."""
        return None if self._current is None else self._current.not_after.timestamp()

    def trouble(self) -> str | None:
        """Return why no client could trust us right now, or None."""
        if self._current is None:
            return f"no usable certificate in {self._folder}"
        if not self._current.is_valid(self._clock()):
            return "the certificate has expired or is not valid yet"
        return None

    def start(self) -> None:
        self.look()
        self._repeating.start()

    def stop(self) -> None:
        self._repeating.stop()

    def look(self) -> None:
        """Take what the folder holds now, if it is new and good, or has become good by waiting."""
        try:
            pair = read_pair(self._folder)
            client_ca = b"" if self._client_ca is None else _read(self._client_ca)
        except PairError as error:
            if self._seen != str(error):
                self._seen = str(error)
                self._refuse(str(error))
            return
        content = (pair.digest, client_ca)
        if content == self._seen:
            if self._later is not None and self._is_better(self._later):
                self._take(self._later)
            return
        self._seen, self._later = content, None
        try:
            found = read_certificate(pair, client_ca)
        except PairError as error:
            self._refuse(str(error))
            return
        if self._is_better(found):
            self._take(found)
        else:
            self._later = found
            self._refuse("it has expired or is not valid yet, and the live one is valid")

    def _is_better(self, found: Certificate) -> bool:
        """Return whether a certificate may go live: not in the place of one that clients trust."""
        now = self._clock()
        live = self._current
        return live is None or not live.is_valid(now) or found.is_valid(now)

    def _take(self, found: Certificate) -> None:
        self._current, self._later = found, None
        self._count_load("swapped")
        _log.info(
            "certificate %s is live, valid until %s", found.serial, found.not_after.isoformat()
        )

    def _refuse(self, why: str) -> None:
        self._count_load("refused")
        stays = "the live one stays" if self._current else "TLS connections are refused until then"
        _log.error(
            "the certificate in %s cannot serve: %s; %s; put a matching pair there",
            self._folder,
            why,
            stays,
        )

    def _turn(self) -> float:
        self.look()
        return self._poll_seconds

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        # Called for every handshake, with or without a name in it.
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current.context
        return None
