"""Whom we believe to be the API server, and the certificate that we show in return."""

from __future__ import annotations

import ssl
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kube.errors import AccessError

if TYPE_CHECKING:
    from pathlib import Path


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
