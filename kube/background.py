"""The last word about each of many things, written on a thread of its own."""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from gpufence.times import Backoff
from kube.errors import (
    BadReplyError,
    ForbiddenError,
    KubeError,
    ServerError,
    ThrottledError,
    TooLargeError,
    UnreachableError,
)
from kube.repeating import CLOSE_SECONDS, Complaint, Repeating, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from kube.repeating import Clock

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")

_log = logging.getLogger(__name__)

_AWAY: Final = (UnreachableError, ThrottledError)
_PASSING: Final = (*_AWAY, ServerError, BadReplyError)
_FORBIDDEN_SECONDS: Final = 5.0
_BROKEN_SECONDS: Final = 60.0
_REMEMBERED_SECONDS: Final = 60.0


class _Lane(NamedTuple):
    """What fails together: how often it has in a row, since when, when last, and until when."""

    failures: int
    since: float
    last: float
    due: float


class _Word(NamedTuple, Generic[K, V]):
    key: K
    value: V
    urgent: bool


class Background(Generic[K, V]):
    """
    Writes the last word about each key, one at a time, on a thread of its own.

    While the API server cannot be asked, what waits goes on waiting, at most `keep` words and as
    many urgent ones. What it refuses is tried for a few seconds more, since a server that has just
    started forbids everything, and then no more than once; meanwhile only words of the same `lane`
    wait, which is the key if nothing else is said. `merge` makes one word of one that waits and a
    newer one.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[K, V], None],
        *,
        keep: int,
        forbidden: str = "",
        lane: Callable[[K, V], Hashable] | None = None,
        merge: Callable[[V, V], V] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._name = name
        self._write = write
        self._keep = keep
        self._lane = lane or (lambda key, _: key)
        self._merge = merge or (lambda _, new: new)
        self._clock = clock or SystemClock()
        self._complaint = Complaint(name, forbidden, self._clock)
        self._backoff = Backoff()
        self._lock = threading.Lock()
        self._urgent: OrderedDict[K, V] = OrderedDict()
        self._plain: OrderedDict[K, V] = OrderedDict()
        self._lanes: OrderedDict[Hashable, _Lane] = OrderedDict()
        self._repeating = Repeating(
            name, self._turn, finish=self._drain, forbidden=forbidden, jitter=0.0, clock=clock
        )
        self.written = 0
        self.dropped = 0
        self.refused = 0

    @property
    def trouble(self) -> str:
        """Return why nothing can be written at the moment; empty where something can."""
        return self._repeating.trouble

    @property
    def left_seconds(self) -> float:
        """Return for how long a write may still take; without bound until the end has begun."""
        return self._repeating.left_seconds

    def __len__(self) -> int:
        """Return how many words wait."""
        return len(self._urgent) + len(self._plain)

    def start(self) -> None:
        """Begin to write, what was put before that first."""
        self._repeating.start()

    def stop(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write what waits, for so long, and end."""
        self._repeating.stop(seconds)

    def put(self, key: K, value: V, *, urgent: bool = False) -> None:
        """Have this written, in place of what waits under this key."""
        with self._lock:
            known = self._urgent if key in self._urgent else self._plain
            if key in known:
                known[key] = self._merge(known[key], value)
                if urgent and known is self._plain:
                    self._urgent[key] = self._plain.pop(key)
            elif len(waiting := self._urgent if urgent else self._plain) < self._keep:
                waiting[key] = value
            else:
                self.dropped += 1
        self._repeating.wake()

    def _turn(self) -> float:
        word = self._take(self._clock.monotonic())
        if word is None:
            return self._pause()
        try:
            self._write_one(word)
        except _AWAY:
            self._put_back(word)
            raise
        except KubeError as error:
            if self._comes_again(word, error):
                self._put_back(word)
            else:
                self._give_up(error)
        return 0.0

    def _write_one(self, word: _Word[K, V]) -> None:
        try:
            self._write(word.key, word.value)
        except KubeError:
            raise
        except Exception:  # noqa: BLE001 (a bug with one word must not end the writing)
            _log.exception("%s: a word is not written", self._name)
            self.dropped += 1
        else:
            self.written += 1
            self._lanes.pop(self._lane(word.key, word.value), None)

    def _take(self, now: float) -> _Word[K, V] | None:
        """Take out the first word that is due, urgent ones first."""
        with self._lock:
            for waiting in (self._urgent, self._plain):
                for key, value in waiting.items():
                    if self._due(key, value) <= now:
                        del waiting[key]
                        return _Word(key, value, urgent=waiting is self._urgent)
        return None

    def _pause(self) -> float:
        """Return in how many seconds a word is due."""
        with self._lock:
            words = [*self._urgent.items(), *self._plain.items()]
        soonest = min((self._due(key, value) for key, value in words), default=math.inf)
        return max(soonest - self._clock.monotonic(), 0.0)

    def _due(self, key: K, value: V) -> float:
        lane = self._lanes.get(self._lane(key, value))
        return -math.inf if lane is None else lane.due

    def _put_back(self, word: _Word[K, V]) -> None:
        """Let a word wait on in front of all others, or what has been said since."""
        with self._lock:
            for newer in (self._urgent, self._plain):
                if word.key in newer:
                    newer[word.key] = self._merge(word.value, newer[word.key])
                    return
            waiting = self._urgent if word.urgent else self._plain
            waiting[word.key] = word.value
            waiting.move_to_end(word.key, last=False)

    def _comes_again(self, word: _Word[K, V], error: KubeError) -> bool:
        """Note that a lane has failed; return whether its first word is worth another attempt."""
        now, lane = self._clock.monotonic(), self._lane(word.key, word.value)
        known = self._lanes.pop(lane, None)
        if known is None or now - known.last > _REMEMBERED_SECONDS:
            known = _Lane(0, now, now, now)
        failures = known.failures + 1
        again = now - known.since < _patience(error)
        pause = self._backoff.delay_seconds(failures, self._clock.chance()) if again else 0.0
        self._lanes[lane] = _Lane(failures, known.since, now, now + pause)
        while len(self._lanes) > self._keep:
            self._lanes.popitem(last=False)
        return again

    def _give_up(self, error: KubeError) -> None:
        if isinstance(error, _PASSING):
            self.dropped += 1
        else:
            self.refused += 1
        self._complaint.say(error)

    def _drain(self) -> None:
        """Write what waits, each word once, while there is time and the server answers."""
        while self.left_seconds > 0 and (word := self._take(math.inf)) is not None:
            try:
                self._write_one(word)
            except KubeError as error:
                self._give_up(error)
                if isinstance(error, _AWAY):
                    break
        self.dropped += len(self)


def _patience(error: KubeError) -> float:
    """Return how long a refusal may be one that passes."""
    if isinstance(error, ForbiddenError):
        return _FORBIDDEN_SECONDS
    passes = isinstance(error, _PASSING) and not isinstance(error, TooLargeError)
    return _BROKEN_SECONDS if passes else 0.0
