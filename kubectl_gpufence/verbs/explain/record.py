"""PURE. One pod and all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.shape import Object, as_object, as_text
from kubectl_gpufence.cluster_view import row_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpufence.plan import ContainerPlan, Setting
    from gpufence.snapshot import PodRow, Snapshot
    from kubectl_gpufence.cluster_view import NodeAgent
    from kubectl_gpufence.pods import SeenPod

_REASONS = frozenset(
    {
        names.LIMIT_EXCEEDED,
        names.WOULD_EVICT,
        names.EVICTED,
        names.EVICTION_BLOCKED,
        names.EVICTION_FAILED,
        names.TERMINATION_STUCK,
        names.CAP_INEFFECTIVE,
        names.CAP_TOO_LOW,
        names.UNDECLARED,
    }
)


class AgentEvent(NamedTuple):
    """An event of an agent about the pod."""

    at: str
    reason: str
    times: int
    message: str

    @property
    def sentence(self) -> str:
        times = f" ({self.times} times)" if self.times > 1 else ""
        return f"{self.at or 'at some time'} {self.reason}{times}: {self.message}"


class PodRecord(NamedTuple):
    """
    What the explanation is made from. `mode` is the namespace's label, empty where it has none
    and None where it cannot be read; `no_agent` says why none can be asked.
    """

    pod: SeenPod
    mode: str | None = None
    agent: NodeAgent | None = None
    no_agent: str = ""
    events: tuple[AgentEvent, ...] = ()

    @property
    def snapshot(self) -> Snapshot | None:
        return None if self.agent is None else self.agent.snapshot

    @property
    def row(self) -> PodRow | None:
        return row_of(self.pod, self.snapshot)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the creator of the pod was warned about."""
        text = self.pod.annotations.get(names.WARNINGS, "")
        return tuple(line for line in text.splitlines() if line.strip())

    @property
    def settings(self) -> Iterator[tuple[str, ContainerPlan, Setting]]:
        """Return every setting of the plan with its container."""
        plan = self.pod.recorded.plan
        for name, container in ({} if plan is None else plan.containers).items():
            for setting in container.settings:
                yield name, container, setting


def read_events(items: Iterable[Object]) -> tuple[AgentEvent, ...]:
    """
    Read the agents' events about a pod, in the order in which they were last seen.

    Raises:
        InvalidError: something among them is no event.
    """
    events = (_event(item) for item in items if item.get("reason") in _REASONS)
    return tuple(sorted(events, key=lambda event: event.at))


def _event(item: Object) -> AgentEvent:
    metadata = as_object(item.get("metadata"), "metadata")
    last = item.get("lastTimestamp") or item.get("eventTime") or metadata.get("creationTimestamp")
    count = item.get("count")
    return AgentEvent(
        at=as_text(last, "lastTimestamp"),
        reason=as_text(item.get("reason"), "reason"),
        times=count if isinstance(count, int) else 1,
        message=as_text(item.get("message"), "message"),
    )
