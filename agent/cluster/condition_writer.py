"""
Pods' conditions on their way to the API server: of each pod the last word alone, one thread, and no
waiting for anybody.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from agent.clock import timestamp
from gpufence import names
from kube import ConflictError, ForbiddenError, KubeError, NotFoundError, PatchType, core

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.cluster.settings import ClusterSettings
    from agent.model.activity import IdleCondition
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)

_COMPLAINT_SECONDS: Final = 600.0


class ConditionWriter:
    """
    Nothing is tried twice here: what does not get through is asked for again by who compares what
    pods say with what they should.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._waiting: OrderedDict[str, IdleCondition] = OrderedDict()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._complained_at = -_COMPLAINT_SECONDS

    def start(self, client: Client) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(client,), name="conditions", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End; a word that has not gone out is not needed any more."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(self._settings.close_seconds)

    def write(self, conditions: Iterable[IdleCondition]) -> None:
        with self._changed:
            for item in conditions:
                self._waiting.pop(item.uid, None)
                if len(self._waiting) < self._settings.queued_events:
                    self._waiting[item.uid] = item
            self._changed.notify_all()

    def _run(self, client: Client) -> None:
        while (item := self._next()) is not None:
            try:
                client.patch(
                    f"{core('namespaces', item.namespace, 'pods', item.name)}/status",
                    condition_patch(item, timestamp()),
                    PatchType.STRATEGIC,
                    timeout_seconds=self._settings.request_seconds,
                )
            except (NotFoundError, ConflictError):
                _log.debug("pod %s/%s is another one by now", item.namespace, item.name)
            except KubeError as error:
                self._complain(error)

    def _next(self) -> IdleCondition | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            if self._stopping:
                return None
            return self._waiting.popitem(last=False)[1]

    def _complain(self, error: KubeError) -> None:
        """
        Say once in a while what is wrong: the next failure is half a minute away, for every pod.
        """
        if time.monotonic() - self._complained_at < _COMPLAINT_SECONDS:
            return
        self._complained_at = time.monotonic()
        forbidden = isinstance(error, ForbiddenError)
        remedy = "; apply the agent's rights of this version" if forbidden else ""
        _log.warning("pods cannot say whether they are idle: %s%s", error, remedy)


def condition_patch(condition: IdleCondition, now: str) -> JsonObject:
    """
    Change this very pod's one condition; the others, which are the kubelet's, are merged by type.
    """
    return {
        "metadata": {"uid": condition.uid},
        "status": {
            "conditions": [
                {
                    "type": names.GPU_IDLE,
                    "status": str(condition.status),
                    "reason": str(condition.evidence),
                    "message": condition.message,
                    "lastTransitionTime": now,
                }
            ]
        },
    }
