"""
The last resort: SIGKILL to the GPU processes of a pod that the API cannot hurry.

Only where the operator enabled it. A PID is no identity, so each process is pinned by a pidfd
first and looked at again afterwards: if it is still the one that was judged, the pidfd is its.
"""

from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING, Final

from agent.model.decision import ActResult, Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.model.decision import Verdict
    from agent.model.use import ProcessUse
    from agent.ports import Processes

_REMEDY: Final = "add the capability KILL to the agent's container (overlay last-resort-kill)"


class LastResort:
    """Kills the processes that a verdict names; `processes` tells who they are by now."""

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
