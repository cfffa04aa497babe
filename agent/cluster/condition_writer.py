"""Pods' conditions on their way to the API server: of each pod the last word alone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from agent.clock import timestamp
from gpufence import names
from kube import ConflictError, NotFoundError, PatchType, core
from kube.background import Background

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.cluster.settings import ClusterSettings
    from agent.model.activity import IdleCondition
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)
_MOST_WAITING: Final = 256


class ConditionWriter:
    """Writes conditions as the account that acts, once that is known."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._client: Client  # from the start on
        self._background: Background[str, IdleCondition] = Background(
            "conditions of pods",
            self._write,
            keep=_MOST_WAITING,
            forbidden="apply the agent's rights of this version",
        )

    def start(self, client: Client) -> None:
        self._client = client
        self._background.start()

    def stop(self) -> None:
        """End; a word that has not gone out is not needed any more."""
        self._background.stop(0.0)

    def write(self, conditions: Iterable[IdleCondition]) -> None:
        """Have pods say whether they are idle; of each only the last word counts."""
        for item in conditions:
            self._background.put(item.uid, item)

    def _write(self, _: str, item: IdleCondition) -> None:
        try:
            self._client.patch(
                f"{core('namespaces', item.namespace, 'pods', item.name)}/status",
                condition_patch(item, timestamp()),
                PatchType.STRATEGIC,
                timeout_seconds=self._settings.request_seconds,
            )
        except (NotFoundError, ConflictError):
            _log.debug("pod %s/%s is another one by now", item.namespace, item.name)


def condition_patch(condition: IdleCondition, now: str) -> JsonObject:
    """Change this very pod's one condition; the kubelet's others are merged by type."""
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
