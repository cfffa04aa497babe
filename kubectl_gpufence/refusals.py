"""PURE. Pods that were never made: what the webhook said, by the Events of their owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.owners import topmost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kubectl_gpufence.pods import SeenEvent

REFUSED: Final = "FailedCreate"
REMEDY: Final = "In the pod's template, change what the refusal names, and apply it again."
_SENTENCE: Final = "gpufence refuses this pod: "
_NAMES_PODS: Final = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"}
)


def ours(events: Iterable[SeenEvent]) -> Iterator[SeenEvent]:
    """Keep what our webhook refused, without what the API server puts before the reason."""
    for event in events:
        _, sentence, why = event.message.partition(_SENTENCE)
        if event.reason == REFUSED and sentence:
            yield event._replace(message=sentence + why)


def of_owner(events: Iterable[SeenEvent], owner: str) -> list[SeenEvent]:
    """Return those about an owner, as `Kind/name`, or about what it made; the newest last."""
    found = (event for event in events if _is_of(event.about.partition("/")[2], owner))
    return sorted(found, key=lambda event: event.at)


def _is_of(about: str, owner: str) -> bool:
    """Go by the generated name where a kind above the usual ones has made what was refused."""
    kind, _, name = owner.partition("/")
    below = about.rpartition("/")[2]
    made = kind not in _NAMES_PODS and (below == name or below.startswith(f"{name}-"))
    return made or owner in (about, topmost(about))
