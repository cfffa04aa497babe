"""
What the agent may look after beside the fence, each a folder of `agent.concerns`: its settings, its
part of a tick, its Events, its metrics, its fields of the snapshot and its pages.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent.cluster import AgentCluster, ClusterSettings
    from agent.events.episodes import Notice
    from agent.model.pod import PodCondition
    from agent.model.policy import EvictionPolicy
    from agent.model.sample import Sample
    from agent.model.state import PodRows, TickResult
    from agent.ports import NvmlAside, Processes
    from gpufence.errors import Finding
    from kube import Client
    from service.exposition import Metric

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Ground(NamedTuple):
    """
    What a concern is built on; without a `cluster` the agent only measures and shows. `nvml` is for
    what a concern asks by itself, on a thread of its own; `policy` is what pods are judged by.
    """

    node: str
    processes: Processes
    clock: Callable[[], float]
    timestamp: Callable[[], str]
    cluster: AgentCluster | None
    nvml: NvmlAside
    policy: EvictionPolicy


DRY_RUN: Final = {"dryRun": "All"}
NO_SUCH_POD: Final = "gpufence-check-no-such-pod"
"""Who has the right to act on a pod gets 404 for this one, who has not, 403."""


class Check(NamedTuple):
    """A right that is asked for without using it; `text` says what is allowed by it."""

    subject: str
    ask: Callable[[], object]
    text: str


class Concern:
    """
    One of them. `name` and `title` are those of its `settings`; a settings class may say by
    `work_seconds` how often the concern wants to know what was done on each card.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    settings: ClassVar[type]

    @classmethod
    def on(cls, ground: Ground, settings: Any) -> Self:  # noqa: ANN401 - of its own class
        """Build it; nothing is started yet."""
        raise NotImplementedError

    @classmethod
    def checks(cls, client: Client, acting: Client, where: ClusterSettings) -> Sequence[Check]:
        """Return the rights that it needs; `acting` speaks as who acts on pods."""
        del client, acting, where
        return ()

    @classmethod
    def findings(cls, settings: Any, sample: Sample, nvml: NvmlAside) -> Sequence[Finding]:  # noqa: ANN401 - of its own class
        """Return what `gpufence-agent check` says of this node, after one look at the cards."""
        del settings, sample, nvml
        return ()

    def start(self) -> None:
        """Begin what goes on beside the ticks, on threads of its own; returns at once."""

    def look(self, tick: TickResult) -> None:
        """Take in one tick, on the thread that ticks."""

    def notices(self) -> Sequence[Notice]:
        """Return what it has to say at this tick; the same again is one Event, and counted."""
        return ()

    def conditions(self) -> Sequence[PodCondition]:
        """Return what pods shall say of themselves since the last tick."""
        return ()

    def idle(self, now: float) -> Mapping[str, float]:
        """Return for how long pods have done nothing, by UID, where that is known."""
        del now
        return {}

    def families(self, last: TickResult | None, now: float) -> Sequence[Metric]:
        """
        Return its metrics, times by the agent's clock; `last` is None where the last look is too
        old to be shown.
        """
        del last, now
        return ()

    def rows(self, now: float, *, current: bool) -> Mapping[str, PodRows]:
        """Return what it adds to pods of the snapshot, by UID; `current` unless looks are old."""
        del now, current
        return {}

    def node_row(self) -> Mapping[str, object]:
        """Return what it adds to the snapshot itself."""
        return {}

    def pages(self) -> Mapping[str, Callable[[], str]]:
        """Return its pages of JSON, by path."""
        return {}

    def stop(self) -> None:
        """End within a second or two; no tick comes any more."""


class Said(NamedTuple):
    """What concerns have to say at a tick, and what pods shall say of themselves."""

    notices: Sequence[Notice] = ()
    conditions: Sequence[PodCondition] = ()


class Concerns:
    """All of them. A bug in one is logged once while it lasts, and harms neither tick nor page."""

    def __init__(self, concerns: Sequence[Concern] = ()) -> None:
        self._concerns = concerns
        self._failing: set[tuple[str, str]] = set()

    def start(self) -> None:
        for each in self._concerns:
            each.start()

    def look(self, tick: TickResult) -> Said:
        """Show all a tick, and return what they have to say at it."""
        nothing: Sequence[Notice] = ()
        unsaid: Sequence[PodCondition] = ()
        found: list[Notice] = []
        conditions: list[PodCondition] = []
        for each in self._concerns:
            self._try(each, "look", partial(each.look, tick), None)
            found += self._try(each, "events", each.notices, nothing)
            conditions += self._try(each, "conditions", each.conditions, unsaid)
        return Said(found, conditions)

    def idle(self, now: float) -> dict[str, float]:
        """Return of which pods it is known for how long they have done nothing."""
        nothing: Mapping[str, float] = {}
        found = [
            self._try(each, "idle", partial(each.idle, now), nothing) for each in self._concerns
        ]
        return {uid: seconds for each in found for uid, seconds in each.items()}

    def node_row(self) -> dict[str, object]:
        nothing: Mapping[str, object] = {}
        found = [self._try(each, "row", each.node_row, nothing) for each in self._concerns]
        return {key: item for each in found for key, item in each.items()}

    def families(self, last: TickResult | None, now: float) -> list[Metric]:
        found: list[Metric] = []
        for each in self._concerns:
            found += self._try(each, "metrics", partial(each.families, last, now), [])
        return found

    def rows(self, now: float, *, current: bool) -> list[Mapping[str, PodRows]]:
        nothing: Mapping[str, PodRows] = {}
        return [
            self._try(each, "rows", partial(each.rows, now, current=current), nothing)
            for each in self._concerns
        ]

    def pages(self) -> dict[str, Callable[[], str]]:
        return {path: page for each in self._concerns for path, page in each.pages().items()}

    def stop(self) -> None:
        for each in self._concerns:
            self._try(each, "stop", each.stop, None)

    def _try(self, concern: Concern, what: str, call: Callable[[], T], otherwise: T) -> T:
        place = concern.name, what
        try:
            result = call()
        except Exception:  # noqa: BLE001 - the fence does not depend on it
            if place not in self._failing:
                _log.exception("%s: %s failed; fencing goes on without it", *place)
            self._failing.add(place)
            return otherwise
        self._failing.discard(place)
        return result


NO_CONCERNS: Final = Concerns()
