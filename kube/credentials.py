"""As whom we speak: the Authorization header, renewed before and after it stops being accepted."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kube.errors import AccessError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_log = logging.getLogger(__name__)


class Credentials(Protocol):
    """Whatever can vouch for us; used by many threads at once."""

    def header(self) -> str | None:
        """Give the value of the Authorization header, None to send none."""
        ...

    def renew(self) -> bool:
        """Look for something fresher after a 401; return whether asking again makes sense."""
        ...


class NoCredentials:
    """Speak without a header: anonymously, or with a client certificate."""

    def header(self) -> str | None:
        return None

    def renew(self) -> bool:
        return False


class TokenFile:
    """
    Read a bearer token that somebody else keeps fresh, at most once a period.

    The kubelet replaces the file through a symbolic link; a moment in which it is missing or empty
    keeps the last token in use, for that one is still good.
    """

    def __init__(
        self, path: Path, period_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._period_seconds = period_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._read_at = clock()
        if not self._read():
            raise AccessError(
                f"token file {path} is missing, empty or unreadable; "
                "check that the service account's token is mounted and may be read by this user"
            )

    def __repr__(self) -> str:
        return f"TokenFile({self._path})"

    def header(self) -> str:
        with self._lock:
            if self._clock() - self._read_at >= self._period_seconds:
                self._read()
            return f"Bearer {self._token}"

    def renew(self) -> bool:
        with self._lock:
            return self._read()

    def _read(self) -> bool:
        self._read_at = self._clock()
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            _log.warning("token file %s cannot be read: %s", self._path, type(error).__name__)
            return False
        self._token = token or self._token
        return bool(token)


class CommandedToken:
    """
    Ask a kubeconfig's reader for the header: the Kubernetes client runs exec plugins and renews
    OIDC logins, and even a fixed token may have been replaced by a new login.

    `load` reads the kubeconfig anew and gives back a function that yields the current header.
    """

    def __init__(self, load: Callable[[], Callable[[], str | None]]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._current = load()

    def header(self) -> str | None:
        with self._lock:
            return self._current()

    def renew(self) -> bool:
        with self._lock:
            before = self._current()
            self._current = self._load()
            return self._current() != before


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """The files of a TLS connection; no `ca_file` means the machine's own trusted roots."""

    ca_file: Path | None = None
    client_file: Path | None = None
    client_key_file: Path | None = None
    verify: bool = True
    strict: bool = False


class Trust:
    """Hold one TLS context for all connections, and follow a CA file that changes."""

    def __init__(self, certificates: Certificates) -> None:
        self._ca_file = certificates.ca_file
        self._lock = threading.Lock()
        self._ca = self._read_ca()
        self.context = _context(certificates)

    def reload(self) -> bool:
        """
        Add the CA file's new content, if it has any; return whether trying again makes sense.

        Called after a server could not be verified: a cluster's CA is replaced under running pods.
        """
        with self._lock:
            try:
                content = self._read_ca()
                if content == self._ca:
                    return False
                self.context.load_verify_locations(cadata=content.decode("ascii"))
            except (OSError, ValueError):  # ssl.SSLError is an OSError
                return False
            self._ca = content
            return True

    def _read_ca(self) -> bytes:
        return self._ca_file.read_bytes() if self._ca_file and self._ca_file.is_file() else b""


def _context(certificates: Certificates) -> ssl.SSLContext:
    ca_file, client_file = certificates.ca_file, certificates.client_file
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise AccessError(
            f"CA file {ca_file} cannot be used: {error}; it must hold the cluster's CA in PEM form"
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificates.strict:
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    else:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not certificates.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if client_file is not None:
        try:
            context.load_cert_chain(client_file, certificates.client_key_file)
        except OSError as error:
            raise AccessError(
                f"client certificate {client_file} with key {certificates.client_key_file} "
                f"cannot be used: {error}; the two must be PEM and belong together"
            ) from error
    return context
