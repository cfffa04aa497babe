"""
Keep the newest good certificate live.
"""

from __future__ import annotations

import logging
import ssl
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from webhook.tls.pair import Certificate, PairError, read_certificate, read_pair, server_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_log = logging.getLogger(__name__)


class CertificateWatch:
    """
    Looks at a folder again and again and serves the newest pair that is good.

    Connections keep the certificate they were made with; the next handshake gets the new one. What
    cannot serve never goes live: the old pair stays, and the matter is told once for each content.
    """

    def __init__(
        self, folder: Path, count_load: Callable[[str], None], poll_seconds: float
    ) -> None:
        self._folder = folder
        self._count_load = count_load
        self._poll_seconds = poll_seconds
        self._current: Certificate | None = None
        self._seen: bytes | str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificate", daemon=True)
        self.context = server_context()
        self.context.sni_callback = self._choose

    @property
    def current(self) -> Certificate | None:
        return self._current

    def seconds_to_expiry(self, now: datetime | None = None) -> float | None:
        """
        Tell how long the live certificate lasts; negative once it has expired, None without one.
        """
        if self._current is None:
            return None
        return (self._current.not_after - (now or datetime.now(UTC))).total_seconds()

    def trouble(self) -> str | None:
        """
        Say why no client could trust us right now, or None.
        """
        if self._current is None:
            return f"no usable certificate in {self._folder}"
        if not self._current.is_valid(datetime.now(UTC)):
            return "the certificate has expired or is not valid yet"
        return None

    def start(self) -> None:
        self.look()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """
        Take what the folder holds now, if it is new and good.
        """
        try:
            pair = read_pair(self._folder)
        except PairError as error:
            if self._seen != str(error):
                self._seen = str(error)
                self._refuse(str(error))
            return
        digest = pair.digest
        if digest == self._seen:
            return
        self._seen = digest
        try:
            self._take(read_certificate(pair))
        except PairError as error:
            self._refuse(str(error))

    def _take(self, found: Certificate) -> None:
        now = datetime.now(UTC)
        live = self._current
        if live is not None and live.is_valid(now) and not found.is_valid(now):
            raise PairError("it has expired or is not valid yet, and the live one is valid")
        self._current = found
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

    def _run(self) -> None:
        while not self._stop.wait(self._poll_seconds):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the thread must outlive any surprise of a folder
                _log.exception("looking at the certificate in %s failed", self._folder)

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        # Called for every handshake, with or without a name in it.
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current.context
        return None
