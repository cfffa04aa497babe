"""
PURE. What a story is told from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.shape import Object, as_object, as_text
from kubectl_gpufence.scene import row_of
from kubectl_gpufence.words import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpufence.snapshot import PodRow, Snapshot
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.scene import Agent, SeenNode

REASONS = frozenset(
    {
        names.LIMIT_EXCEEDED,
        names.WOULD_EVICT,
        names.EVICTED,
        names.EVICTION_BLOCKED,
        names.EVICTION_FAILED,
        names.TERMINATION_STUCK,
        names.CAP_INEFFECTIVE,
        names.UNDECLARED,
    }
)


@dataclass(frozen=True, slots=True)
class Event:
    """
    An event of an agent about the pod.
    """

    at: str
    reason: str
    count: int
    message: str

    @property
    def sentence(self) -> str:
        often = f" ({self.count} times)" if self.count > 1 else ""
        return safe(f"{self.at or 'at some time'} {self.reason}{often}: {self.message}")


@dataclass(frozen=True, slots=True)
class Story:
    """
    One pod and all that is known of it. `mode` is the namespace's label, empty where it has none
    and None where it cannot be read.
    """

    pod: SeenPod
    mode: str | None = None
    node: SeenNode | None = None
    agent: Agent | None = None
    no_agent: str = ""
    events: tuple[Event, ...] = ()

    @property
    def snapshot(self) -> Snapshot | None:
        return None if self.agent is None else self.agent.snapshot

    @property
    def row(self) -> PodRow | None:
        return row_of(self.pod, self.snapshot)

    @property
    def warnings(self) -> tuple[str, ...]:
        """
        Return what the creator of the pod was warned about.
        """
        text = self.pod.annotations.get(names.WARNINGS, "")
        return tuple(line for line in text.splitlines() if line.strip())


def read_events(items: Iterable[Object]) -> tuple[Event, ...]:
    """
    Read the agents' events about a pod, in the order in which they were last seen.

    Raises:
        InvalidError: something among them is no event.
    """
    return tuple(
        sorted((_event(item) for item in items if item.get("reason") in REASONS), key=_moment)
    )


def _moment(event: Event) -> str:
    return event.at


def _event(item: Object) -> Event:
    metadata = as_object(item.get("metadata"), "metadata")
    last = item.get("lastTimestamp") or item.get("eventTime") or metadata.get("creationTimestamp")
    count = item.get("count")
    return Event(
        at=as_text(last, "lastTimestamp"),
        reason=as_text(item.get("reason"), "reason"),
        count=count if isinstance(count, int) else 1,
        message=as_text(item.get("message"), "message"),
    )
