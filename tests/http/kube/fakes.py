"""A handler that remembers and a clock that does not wait."""

import math
import threading
from collections.abc import Sequence

from kube import ChangeType
from tests.support.http_server import PATIENCE_SECONDS


class Recorder:
    """Notes every call as a pair: ("replace", names) or (change, name)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []
        self._changed = threading.Condition()

    def replace(self, objects: Sequence[str]) -> None:
        self._note(("replace", list(objects)))

    def apply(self, change: ChangeType, item: str) -> None:
        self._note((change, item))

    def wait_for(self, count: int) -> list[tuple[str, object]]:
        """Wait for so many calls and give back all of them."""
        with self._changed:
            enough = self._changed.wait_for(lambda: len(self.calls) >= count, PATIENCE_SECONDS)
            assert enough, f"only {self.calls} came"
            return list(self.calls)

    def _note(self, call: tuple[str, object]) -> None:
        with self._changed:
            self.calls.append(call)
            self._changed.notify_all()


class FakeClock:
    """
    Time that passes only by waiting, at once; a wait without bound is a real one, and after
    `pauses` waits it rests until stopped.
    """

    def __init__(self, pauses: int = 1000) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []
        self._left = pauses
        self.rested = threading.Event()

    def monotonic(self) -> float:
        return self.now

    def chance(self) -> float:
        return 0.0

    def wait(self, stop: threading.Event, seconds: float) -> None:
        if seconds == math.inf:
            stop.wait(PATIENCE_SECONDS)
            return
        self.pauses.append(seconds)
        self.now += seconds
        self._left -= 1
        if self._left <= 0:
            self.rested.set()
            stop.wait(PATIENCE_SECONDS)
