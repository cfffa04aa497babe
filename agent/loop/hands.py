"""
Acts on a thread of its own, so that an API server that takes its time delays nobody's sampling.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING, NamedTuple

from agent.model.decision import Action, ActResult, Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent.model.decision import Verdict

_log = logging.getLogger(__name__)
_END = None


class Done(NamedTuple):
    """
    An act, what became of it, and how long that took from the last look on.
    """

    verdict: Verdict
    result: ActResult
    seconds: float


class Hands:
    """
    Carries out one pass at a time: while it is `busy` no other begins, so that every brake knows
    what became of the acts before. All but the acting belongs to the thread of the loop.

    An act whose turn comes more than `fresh_seconds` after the last look is cancelled: what made
    the pod go may be true no longer.
    """

    def __init__(
        self,
        carry_out: Callable[[Verdict], ActResult],
        kill: Callable[[Verdict], ActResult],
        clock: Callable[[], float],
        fresh_seconds: float,
    ) -> None:
        self._ways = {Action.KILL: kill}
        self._otherwise = carry_out
        self._clock = clock
        self._fresh_seconds = fresh_seconds
        self._waiting: queue.SimpleQueue[tuple[Verdict, float] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._outstanding = 0
        self._thread = threading.Thread(target=self._work, name="acts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, wait_seconds: float) -> None:
        """
        Let the act that is under way end, if it does so in time, and begin no other.
        """
        self._fresh_seconds = -1.0
        self._waiting.put(_END)
        if self._thread.ident is not None:
            self._thread.join(wait_seconds)

    @property
    def busy(self) -> bool:
        """
        Tell whether any act is under way, or its answer has not been fetched.
        """
        return self._outstanding > 0

    @property
    def answered(self) -> bool:
        """
        Tell whether all answers are there to be fetched.
        """
        return self._done.qsize() == self._outstanding

    def take(self, verdicts: Iterable[Verdict]) -> None:
        """
        Carry these out, in this order.
        """
        now = self._clock()
        for verdict in verdicts:
            self._outstanding += 1
            self._waiting.put((verdict, now))

    def done(self) -> list[Done]:
        """
        Return what has been answered since the last call.
        """
        found = []
        while not self._done.empty():
            found.append(self._done.get())
        self._outstanding -= len(found)
        return found

    def _work(self) -> None:
        while (item := self._waiting.get()) is not _END:
            verdict, looked_at = item
            result = self._result(verdict, looked_at)
            self._done.put(Done(verdict, result, self._clock() - looked_at))

    def _result(self, verdict: Verdict, looked_at: float) -> ActResult:
        if self._clock() - looked_at > self._fresh_seconds:
            return ActResult(Answer.CANCELLED, detail="its turn came too late after the last look")
        way = (
            self._otherwise
            if verdict.action is None
            else self._ways.get(verdict.action, self._otherwise)
        )
        try:
            return way(verdict)
        except Exception as error:  # noqa: BLE001 - a bug with one pod must not end all acting
            _log.exception("acting on pod %s/%s failed", verdict.pod.namespace, verdict.pod.name)
            return ActResult(
                Answer.FAILED, detail=f"{type(error).__name__} in the agent; see its log"
            )
