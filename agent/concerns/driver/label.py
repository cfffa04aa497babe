"""What the Node says of its driver's limits: a label, and what its canary has shown."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from agent.concerns.driver.canary import NodeWord, next_note, why_not
from gpufence import names
from gpufence.canary import Proof, read_note, write_note
from gpufence.shape import as_texts
from kube import KubeError, PatchType, core
from kube.repeating import Complaint, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.cluster import AgentCluster
    from agent.concerns.driver.canary import Canary
    from agent.concerns.driver.model import NodeTrouble, Records
    from gpufence.canary import CanaryNote
    from kube import JsonObject

_log = logging.getLogger(__name__)
REPEAT_SECONDS: Final = 10.0
"""
From one attempt to write the label to the next, and from word to word of what lasts, which is far
less than an episode of the damping lasts without cause.
"""
_APPLY: Final = "apply component driver-limits, or driver-limits-canary"
_LABELS: Final = {Proof.PASSED: "true", Proof.LOST: None}


class NodeLabel:
    """The Node's label; it is taken off where the operator lets the agent, and set for a canary."""

    def __init__(self, cluster: AgentCluster | None, does: str) -> None:
        self._cluster = cluster
        self._does = does
        self._complaint = Complaint("label of the Node", _APPLY, SystemClock())

    @property
    def is_set(self) -> bool:
        word = self.word
        return word is not None and word.label == "true"

    @property
    def namespace(self) -> str:
        """Return where a canary counts; none does where the operator wants none."""
        wanted = self._cluster is not None and self._does == "canary"
        return self._cluster.settings.system_namespace if self._cluster and wanted else ""

    @property
    def word(self) -> NodeWord | None:
        """Return what the Node says, None before that is known."""
        metadata = {} if self._cluster is None else self._cluster.node_metadata
        if not metadata:
            return None
        labels = as_texts(metadata.get("labels"), "metadata.labels")
        notes = as_texts(metadata.get("annotations"), "metadata.annotations")
        return NodeWord(labels.get(names.DRIVER_LIMITS), read_note(notes.get(names.DRIVER_CANARY)))

    def take_back(self, why: str) -> None:
        """Take the label off, if there is one; blocks."""
        word = self.word
        if self._does == "keep" or word is None or word.label != "true":
            return
        if self._does == "canary" and word.is_ours:
            return  # it goes with the note
        _log.warning("taking the label %s off the Node: %s", names.DRIVER_LIMITS, why)
        self._patch({"labels": {names.DRIVER_LIMITS: None}})

    def say(self, note: CanaryNote) -> None:
        """Have the Node say what its canary has shown; blocks."""
        _log.warning("the canary of the driver's limits has %s: %s", note.shown, note)
        labels: JsonObject = {}
        if note.shown in _LABELS:
            labels = {"labels": {names.DRIVER_LIMITS: _LABELS[note.shown]}}
        self._patch({"annotations": {names.DRIVER_CANARY: write_note(note)}, **labels})

    def _patch(self, metadata: JsonObject) -> None:
        if self._cluster is None:
            return
        settings = self._cluster.settings
        path = core("nodes", settings.node)
        body: JsonObject = {"metadata": metadata}
        try:
            self._cluster.client.patch(
                path, body, PatchType.MERGE, timeout_seconds=settings.request_seconds
            )
        except KubeError as error:
            self._complaint.say(error)


class CanaryWatch:
    """Has the Node say what its canary shows; without one nothing changes there."""

    def __init__(self, label: NodeLabel, lasts_seconds: float, clock: Callable[[], float]) -> None:
        self._label = label
        self._lasts_seconds = lasts_seconds
        self._clock = clock
        self._proved_at = self._due = clock()

    @property
    def lost(self) -> str:
        """Return why what a canary had shown counts no more, nothing where it does."""
        word = self._label.word if self._label.namespace else None
        return "" if word is None else word.lost

    def turn(self, canary: Canary, records: Records, trouble: NodeTrouble) -> None:
        now = self._clock()
        why = trouble.why if trouble.certain else why_not(canary, records)
        if why == "":
            self._proved_at = now
        word = self._label.word
        if word is None or not self._label.namespace or now < self._due:
            return
        lasting = trouble.certain or now - self._proved_at >= self._lasts_seconds
        note = next_note(word, canary, why, lasting=lasting)
        if note is not None:
            self._due = now + min(REPEAT_SECONDS, self._lasts_seconds)
            self._label.say(note)
