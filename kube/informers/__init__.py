"""
Collections that are followed together, how far what is known of them may be acted on, and those
that a cluster may have or not, or let us read or not, now or later.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kube.errors import ForbiddenError, KubeError, NotFoundError
from kube.informers.reflector import Handler, Reflector, ReflectorState, Store
from kube.informers.views import Interner
from kube.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import TypeVar

    from kube.client import Client
    from kube.watch import Source, WatchSettings

    T = TypeVar("T")

__all__ = [
    "Absence",
    "Handler",
    "Health",
    "Informers",
    "Interner",
    "Probing",
    "Reflector",
    "ReflectorState",
    "Store",
    "is_current",
]

_log = logging.getLogger(__name__)

OUTAGE_SECONDS: Final = 5.0
"""A watch that keeps failing for longer than this makes what is known stale."""
SILENCE_SECONDS: Final = 120.0
"""The same for one on which nothing comes: quiet watches are opened anew after 75 seconds."""
_MOST_FAILURES: Final = 5
_NOTHING: Final = ReflectorState()

Absence: TypeAlias = ForbiddenError | NotFoundError
"""Why there is nothing to follow: it is not there, or not ours to read."""


class Probing(NamedTuple):
    """The pace at which it is asked whether an optional collection is there."""

    absent_seconds: float = 120.0
    """One that is made later, or that we may read later, is found after so long."""

    retry_seconds: float = 2.0
    """It is asked again so soon while nobody answers."""

    lost_seconds: float = 30.0
    """Once a watch has failed for so long, it is asked whether the collection is still there."""


class Health(NamedTuple):
    """
    How far what is known of all vital collections may be acted on: `synced` once each was read,
    `fresh` while none is out of date; `silence_seconds` since anything came on the quietest, None
    before the first byte; `trouble` is what the watches complain of.
    """

    synced: bool
    fresh: bool
    silence_seconds: float | None
    trouble: str


@dataclass(slots=True, eq=False)
class _Followed:
    """
    `due` is when it is asked next whether an optional collection is there, `failures` how often
    there was no answer to that.
    """

    source: Source[Any]
    store: Handler[Any]
    client: Client
    optional: bool
    vital: bool
    reflector: Reflector[Any] | None = None
    absent: Absence | None = None
    due: float = 0.0
    failures: int = 0
    trouble: str = ""
    ended: bool = False

    @property
    def state(self) -> ReflectorState:
        if self.reflector is not None:
            return self.reflector.state
        failing = self.failures > 0 and self.absent is None
        if not failing:
            return _NOTHING
        error, failures = self.trouble, self.failures
        return replace(_NOTHING, failing=True, last_error=error, failures_in_a_row=failures)


class Informers:
    """
    Follows each collection on a thread of its own, and asks for the optional ones on one thread for
    all of them. What was known of one stays known while the server is away, and is forgotten once
    the server says that it is gone or not ours to read.

    Nothing is synced before all those are followed that are `expected`.
    """

    def __init__(
        self,
        client: Client,
        pace: WatchSettings | None = None,
        *,
        expected: Collection[str] = (),
        probing: Probing | None = None,
    ) -> None:
        self._client = client
        self._pace = pace
        self._expected = frozenset(expected)
        self._probing = probing or Probing()
        self._lock = threading.RLock()
        self._followed: dict[str, _Followed] = {}
        self._begun = False
        self._stopped = False
        self._prober = Repeating("optional collections", self._probe)
        self._probed = False

    def follow(
        self,
        name: str,
        source: Source[T],
        store: Handler[T],
        *,
        client: Client | None = None,
        optional: bool = False,
        vital: bool = True,
    ) -> None:
        """
        Follow a collection under a name, from the start on or from now on.

        An `optional` one need not be there; nothing is concluded from one that is not `vital`.
        """
        each = _Followed(source, store, client or self._client, optional, vital)
        with self._lock:
            if name in self._followed:
                raise ValueError(f"{name} is followed already")
            self._followed[name] = each
            if self._begun and not self._stopped:
                self._begin(each)

    def end(self, name: str) -> None:
        """Follow a collection no longer; what its store knows is the caller's."""
        with self._lock:
            each = self._followed.pop(name)
            each.ended = True
        if each.reflector is not None:
            each.reflector.stop()

    def start(self) -> None:
        with self._lock:
            self._begun = True
            for each in self._followed.values():
                self._begin(each)

    def stop(self) -> None:
        """End all of them within a second or two."""
        with self._lock:
            self._stopped = True
        self._prober.end()
        reflectors = [each.reflector for _, each in self._all() if each.reflector is not None]
        for reflector in reflectors:
            reflector.end()
        for reflector in reflectors:
            reflector.stop()
        self._prober.stop()

    def health(self, now: float | None = None) -> Health:
        """Return how far what is known may be acted on, at a moment of the monotonic clock."""
        now = time.monotonic() if now is None else now
        vital = {
            name: each.state for name, each in self._all() if each.vital and each.absent is None
        }
        unread = [name for name, state in vital.items() if not state.synced]
        missing = self._expected - {name for name, _ in self._all()}
        heard = [now - at for state in vital.values() if (at := state.last_contact) is not None]
        said = {state.last_error for state in vital.values() if state.failing and state.last_error}
        silent = sorted({*unread, *missing})
        waiting = [f"{' and '.join(silent)} have not been read yet"] if silent else []
        return Health(
            synced=not silent,
            fresh=not silent and all(is_current(state, now) for state in vital.values()),
            silence_seconds=max(heard, default=None),
            trouble="; ".join([*sorted(said), *waiting]),
        )

    def state(self, name: str) -> ReflectorState:
        """Return what became of following one collection, or of asking for it."""
        return self._followed[name].state

    def absent(self, name: str) -> Absence | None:
        """Return why there is nothing to follow; None where there is, or nobody has said yet."""
        return self._followed[name].absent

    def settled(self, name: str) -> bool:
        """
        Return whether it is known that there is nothing, or what there is; an optional one of which
        the server fails to say so again and again is waited for no longer.
        """
        each = self._followed[name]
        given_up = each.optional and each.failures >= _MOST_FAILURES
        return each.absent is not None or each.state.synced or given_up

    def unsettled(self) -> list[str]:
        """Return of which collections it is not known yet what there is, in their order."""
        return [name for name, _ in self._all() if not self.settled(name)]

    def silences(self, now: float | None = None) -> dict[str, float]:
        """Return for how long nothing came on each vital watch; on a quiet one bookmarks come."""
        now = time.monotonic() if now is None else now
        heard = {name: each.state.last_contact for name, each in self._all() if each.vital}
        return {name: now - at for name, at in heard.items() if at is not None}

    def _all(self) -> Iterator[tuple[str, _Followed]]:
        with self._lock:
            return iter(list(self._followed.items()))

    def _begin(self, each: _Followed) -> None:
        if not each.optional:
            self._reflect(each)
        elif self._probed:
            self._prober.wake()
        else:
            self._probed = True
            self._prober.start()

    def _reflect(self, each: _Followed) -> None:
        """Follow what is there, unless the end has come meanwhile."""
        with self._lock:
            if each.ended or self._stopped:
                return
            each.reflector = Reflector(each.client, each.source, each.store, self._pace)
            each.absent = None
            each.reflector.start()

    def _probe(self) -> float:
        """Begin to follow what is there, end what is lost; return how long to pause."""
        pace = self._probing
        optional = [each for _, each in self._all() if each.optional]
        for each in optional:
            if self._prober.stopped:
                break
            now = time.monotonic()
            if now >= each.due and (each.reflector is None or self._is_lost(each.reflector.state)):
                self._ask(each)
        if any(each.absent is None for each in optional):
            return pace.retry_seconds
        return pace.absent_seconds

    def _ask(self, each: _Followed) -> None:
        """Ask whether a collection is there and ours to read."""
        path, pace = each.source.path, self._probing
        try:
            each.client.page(path, lambda _: None, {**each.source.query, "limit": 1})
        except (ForbiddenError, NotFoundError) as error:
            each.due = time.monotonic() + pace.absent_seconds
            self._lose(each, error)
        except KubeError as error:
            each.failures += 1
            each.trouble = str(error)
            each.due = time.monotonic() + pace.retry_seconds
        else:
            each.failures = 0
            each.due = time.monotonic() + pace.retry_seconds
            if each.reflector is None:
                self._reflect(each)
                _log.info("following %s", path)

    def _lose(self, each: _Followed, why: Absence) -> None:
        reflector, each.reflector = each.reflector, None
        if reflector is not None:
            reflector.stop()
        if each.absent is None:
            each.store.replace([])
            _log.info("not following %s: %s", each.source.path, why)
        each.absent = why

    def _is_lost(self, state: ReflectorState) -> bool:
        last = state.last_contact
        lost = self._probing.lost_seconds
        return state.failing and (last is None or time.monotonic() - last > lost)


def is_current(state: ReflectorState, now: float) -> bool:
    """Return whether what one watch knows may be acted on, at a moment of the monotonic clock."""
    return state.is_fresh(now, OUTAGE_SECONDS, SILENCE_SECONDS)
