"""PURE. What is kept of each pod where there are thousands, and what is read once for many."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpufence import names
from gpufence.dialects import CARD_KEYS, declares
from kubectl_gpufence.pods import STATUS, is_ready, name_of, node_of, read_recorded, status_port

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.plan import Setting
    from gpufence.shape import Object
    from kubectl_gpufence.pods import RecordedPlan, SeenPod

_CARDS: Final = frozenset(CARD_KEYS)


class AlikePlans:
    """
    Reads plans, equal ones that come soon after each other once: pods of one owner stand together
    in a list, and their plans are equal on nodes of one kind. What plans say of settings is read
    once for all that are alike.
    """

    MOST: Final = 64
    MOST_SETTINGS: Final = 4096

    def __init__(self) -> None:
        self._known: dict[str, RecordedPlan] = {}
        self._settings: dict[object, Setting] = {}

    def __call__(self, annotations: Mapping[str, str]) -> RecordedPlan:
        text = annotations.get(names.PLAN)
        if text is None:
            return read_recorded(annotations)
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= self.MOST:
                self._known.clear()
            if len(self._settings) >= self.MOST_SETTINGS:
                self._settings.clear()
            found = self._known[text] = read_recorded(annotations, self._settings)
        return found


def slim(pod: SeenPod) -> SeenPod:
    """
    Return a pod without the annotations that declare nothing, for whoever holds thousands: most of
    what a pod says is what the webhook wrote, and that has been read.
    """
    declaring = {
        key: text
        for key, text in pod.annotations.items()
        if key in _CARDS
        or declares(key)
        or (key.startswith(names.PREFIX) and key not in names.WRITTEN_KEYS)
    }
    return replace(pod, pod=pod.pod._replace(annotations=declaring))


def asked_of(raw: Object) -> dict[str, object]:
    """
    Keep of a pod of ours what is needed to ask it: its name, its node, whether it is ready, and its
    port.
    """
    port = {"name": STATUS, "containerPort": status_port(raw)}
    ready = [{"type": "Ready", "status": "True"}] if is_ready(raw) else []
    return {
        "metadata": {"name": name_of(raw)},
        "spec": {"nodeName": node_of(raw), "containers": [{"ports": [port]}]},
        "status": {"conditions": ready},
    }
