"""
One thread that serves all guests at once, each for a few seconds at most.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import selectors
import socket
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from agent.status.guest import STAY_SECONDS, Guest
from agent.status.pages import answer
from agent.status.request import said
from service.listen import address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.status.request import Reply, Request

MOST_GUESTS: Final = 64
"""
Connections at once; one more ends the oldest, so that nobody who lingers keeps a probe out.
"""
BACKLOG: Final = 128
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE})
_log = logging.getLogger(__name__)


class StatusServer:
    """
    Serves the pages on a socket that listens already, until closed.
    """

    def __init__(
        self,
        listener: socket.socket,
        pages: Mapping[str, Callable[[], Reply]],
        clock: Callable[[], float],
        stay_seconds: float = STAY_SECONDS,
    ) -> None:
        self._listener = listener
        self._pages = pages
        self._clock = clock
        self._stay_seconds = stay_seconds
        self._guests: dict[socket.socket, Guest] = {}
        self._selector = selectors.DefaultSelector()
        self._here, self._there = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="status", daemon=True)

    @property
    def address(self) -> str:
        return address_of(self._listener)

    def start(self) -> None:
        self._listener.settimeout(0)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._here, selectors.EVENT_READ)
        self._thread.start()

    def close(self) -> None:
        """
        Stop serving at once.
        """
        self._there.close()
        if self._thread.ident is not None:
            self._thread.join()
        for guest in list(self._guests):
            self._part(guest)
        self._selector.close()
        self._here.close()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj is self._here:
                    return
                if key.fileobj is self._listener:
                    self._welcome()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._guests:
                    self._attend(key.fileobj)
            now = self._clock()
            for guest in [each for each, it in self._guests.items() if now >= it.until]:
                self._part(guest)

    def _patience(self) -> float | None:
        """
        Return when the next guest has stayed for long enough; without guests nobody need wake up.
        """
        if not self._guests:
            return None
        return max(min(guest.until for guest in self._guests.values()) - self._clock(), 0.0)

    def _welcome(self) -> None:
        try:
            guest, _ = self._listener.accept()
        except OSError as error:
            if error.errno in _NO_ROOM and self._guests:
                self._part(next(iter(self._guests)))
            return
        if len(self._guests) >= MOST_GUESTS:
            self._part(next(iter(self._guests)))
        guest.settimeout(0)
        self._guests[guest] = Guest(guest, self._answer, self._clock, self._stay_seconds)
        self._selector.register(guest, selectors.EVENT_READ)

    def _attend(self, guest: socket.socket) -> None:
        """
        Go on with a guest, whatever it does.
        """
        it = self._guests[guest]
        try:
            go_on = it.attend()
        except OSError:
            go_on = False
        if not go_on:
            self._part(guest)
        else:
            wanted = selectors.EVENT_WRITE if it.is_answering else selectors.EVENT_READ
            if self._selector.get_key(guest).events != wanted:
                self._selector.modify(guest, wanted)

    def _part(self, guest: socket.socket) -> None:
        self._guests.pop(guest, None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(guest)
        guest.close()

    def _answer(self, request: Request) -> Reply:
        try:
            return answer(request, self._pages)
        except Exception:  # noqa: BLE001 - one page's bug must not end the others
            _log.exception("the page %s failed", request.path)
            return said(HTTPStatus.INTERNAL_SERVER_ERROR, "a bug of ours; see the agent's log")
