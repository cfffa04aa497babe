"""
Acts on threads of their own, so that an API server that takes its time delays nobody's sampling,
and no eviction on another card; and the last resort among them.
"""

from __future__ import annotations

import errno
import logging
import os
import queue
import signal
import threading
import time
from typing import TYPE_CHECKING, Final

from agent.model.decision import Action, ActResult, Answer, FinishedAct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent.model.decision import Verdict
    from agent.model.use import ProcessUse
    from agent.ports import Processes

MOST_THREADS: Final = 8
"""More acts at once than the caps per minute let begin by default; each is on cards of its own."""
_log = logging.getLogger(__name__)
_END = None


class Worker:
    """
    Carries acts out, each on a thread, and knows those that are `outstanding`, so that every brake
    counts them. All but the acting belongs to the thread of the loop.

    Threads are started with the first acts that need them. An act whose turn comes more than
    `fresh_seconds` after the last look is cancelled: what made the pod go may be true no longer.
    """

    def __init__(
        self,
        carry_out: Callable[[Verdict], ActResult],
        kill: Callable[[Verdict], ActResult],
        clock: Callable[[], float],
        fresh_seconds: float,
        most_threads: int = MOST_THREADS,
    ) -> None:
        self._carry_out = carry_out
        self._kill = kill
        self._clock = clock
        self._fresh_seconds = fresh_seconds
        self._most_threads = most_threads
        self._waiting: queue.SimpleQueue[tuple[Verdict, float] | None] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[FinishedAct] = queue.SimpleQueue()
        self._outstanding: list[Verdict] = []
        self._threads: list[threading.Thread] = []

    def close(self, wait_seconds: float) -> None:
        """Let the acts that are under way end, if they do so in time, and begin no other."""
        self._fresh_seconds = -1.0
        until = time.monotonic() + wait_seconds
        for _ in self._threads:
            self._waiting.put(_END)
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))

    @property
    def outstanding(self) -> tuple[Verdict, ...]:
        """Return the acts that are under way, or whose answers have not been fetched."""
        return tuple(self._outstanding)

    def take(self, verdicts: Sequence[Verdict]) -> None:
        """Carry these out, begun in this order."""
        wanted = min(len(self._outstanding) + len(verdicts), self._most_threads)
        while len(self._threads) < wanted:
            thread = threading.Thread(target=self._work, name="acts", daemon=True)
            thread.start()
            self._threads.append(thread)
        now = self._clock()
        for verdict in verdicts:
            self._outstanding.append(verdict)
            self._waiting.put((verdict, now))

    def finished(self) -> list[FinishedAct]:
        """Return what has been answered since the last call."""
        acts = []
        while not self._finished.empty():
            act = self._finished.get()
            acts.append(act)
            self._outstanding = [item for item in self._outstanding if item is not act.verdict]
        return acts

    def _work(self) -> None:
        while (item := self._waiting.get()) is not _END:
            verdict, looked_at = item
            result = self._result(verdict, looked_at)
            self._finished.put(FinishedAct(verdict, result, self._clock() - looked_at))

    def _result(self, verdict: Verdict, looked_at: float) -> ActResult:
        if self._clock() - looked_at > self._fresh_seconds:
            return ActResult(Answer.CANCELLED, detail="its turn came too late after the last look")
        try:
            if verdict.action is Action.KILL:
                return self._kill(verdict)
            return self._carry_out(verdict)
        except Exception as error:  # noqa: BLE001 - a bug with one pod must not end all acting
            _log.exception("acting on pod %s/%s failed", verdict.pod.namespace, verdict.pod.name)
            return ActResult(
                Answer.FAILED, detail=f"{type(error).__name__} in the agent; see its log"
            )


_REMEDY: Final = "add the capability KILL to the agent's container (overlay last-resort-kill)"


class LastResort:
    """
    SIGKILL to the GPU processes of a pod that the API cannot hurry, only where the operator enabled
    it; `processes` tells who they are by now.

    A PID is no identity, so each process is pinned by a pidfd first and looked at again afterwards:
    if it is still the one that was judged, the pidfd is its.
    """

    def __init__(
        self, processes: Processes, send: Callable[[int, int], None] = signal.pidfd_send_signal
    ) -> None:
        self._processes = processes
        self._send = send

    def __call__(self, verdict: Verdict) -> ActResult:
        processes = () if verdict.use is None else verdict.use.processes
        killed: list[int] = []
        trouble: list[str] = []
        for process in processes:
            try:
                if self._kill(process, verdict.pod.uid):
                    killed.append(process.pid)
            except OSError as error:
                trouble.append(f"PID {process.pid}: {_reason(error)}")
        if trouble:
            return ActResult(Answer.FAILED, detail="; ".join(trouble))
        if not killed:
            return ActResult(Answer.GONE, detail="none of its processes is there any more")
        return ActResult(Answer.ACCEPTED, detail=f"killed PID {', '.join(map(str, killed))}")

    def _kill(self, process: ProcessUse, pod_uid: str) -> bool:
        """
        Return whether the signal was sent; a process that is gone or somebody else's gets none.
        """
        if process.occupant is None or not process.confirmed or process.pod_uid != pod_uid:
            return False
        try:
            pinned = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return False
        try:
            now = self._processes.look(process.pid)
            was = process.occupant
            if now is None or (now.started_ticks, now.owner) != (was.started_ticks, was.owner):
                return False
            self._send(pinned, signal.SIGKILL)
        except ProcessLookupError:
            return False
        finally:
            os.close(pinned)
        return True


def _reason(error: OSError) -> str:
    if error.errno == errno.EPERM:
        return f"the agent may not signal it; {_REMEDY}"
    return error.strerror or type(error).__name__
