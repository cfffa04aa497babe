"""PURE. All that is known after one tick, in one value, of which metrics and snapshot are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from agent.model.sample import NO_TROUBLE, TroubleCode
from gpufence.mode import Mode
from gpufence.share import CAP_SLACK
from service.exposition import Distribution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.decision import Decision, FinishedAct
    from agent.model.use import Observation

K = TypeVar("K")

CONTAINER_SECONDS: Final = 600.0
"""
After so long without any card, for a reason that a new container may not have, this one is given
up: upgrades and resets of a driver are over by then.
"""
TICK_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Identity(StrEnum):
    """The account by which the agent acts on pods, Events and its Node."""

    UNKNOWN = "unknown"  # not found out yet
    IMPERSONATING = "impersonating"  # its own node: the API server sees to it that it is no other
    PLAIN = "plain"  # its own account, by rights that reach every node


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """
    `synced`: everything has been read once. `fresh`: what is known may be acted on.

    `silence_seconds` is the longest time that any of the watches has heard nothing, None before the
    first word. `highest` is what the kill switch allows. `published`: the Node says what we know.
    """

    synced: bool = False
    fresh: bool = False
    silence_seconds: float | None = None
    highest: Mode = Mode.CAP
    identity: Identity = Identity.UNKNOWN
    published: bool = False
    events_written: int = 0
    events_dropped: int = 0
    events_refused: int = 0
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """
    What an agent says of itself beside what it measured.

    `started` is RFC 3339; `cluster` is None where there is none; `restarts` counts replaced
    children that measure. A look older than `gap_seconds` is not shown as what is there now.
    `booted` is the Unix time at which the agent's clock began.
    """

    node: str
    version: str
    started: str
    gap_seconds: float
    cluster: ClusterStatus | None = None
    restarts: int = 0
    cap_slack_bytes: int = CAP_SLACK
    booted: float = 0.0


@dataclass(frozen=True, slots=True)
class Counts:
    """
    What was counted since the start; every set of keys is bounded.

    `evictions` are by action and answer, `violations` by namespace and mode. `muted` are Events
    that were not written since there were too many.
    """

    ticks: Distribution = field(default_factory=lambda: Distribution(TICK_BOUNDS))
    skipped: int = 0
    failed: int = 0
    muted: int = 0
    evictions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    violations: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TickResult:
    """
    One look at the cards and what came of it, with the `acts` that were answered since the one
    before; what happens for longer than `gap_seconds` without a look was not seen.
    """

    observation: Observation
    decision: Decision
    acts: tuple[FinishedAct, ...] = ()
    gap_seconds: float = 0.0


_NO_USES: Final[Mapping[str, Mapping[str, Any]]] = {}


class PodRows(NamedTuple):
    """What a concern adds to a pod of the snapshot: fields of its row, and of its use by card."""

    pod: Mapping[str, Any]
    uses: Mapping[str, Mapping[str, Any]] = _NO_USES


@dataclass(frozen=True, slots=True)
class AgentState:
    """`measured_at` is when any card could last be read, None if that has never been so."""

    started_at: float
    at: float
    last: TickResult | None = None
    measured_at: float | None = None
    counts: Counts = field(default_factory=Counts)

    def is_current(self, now: float, gap_seconds: float) -> bool:
        """
        Return whether the last look may be shown as what is there now; a loop that hangs has none.
        """
        return self.last is not None and now - self.last.observation.sample.taken_at <= gap_seconds

    def lost_container(self, now: float) -> str:
        """
        Return what this container has lost for good, which only a restart would cure; a driver that
        hangs or is not loaded is not that: a new agent would wait for the same.
        """
        trouble = NO_TROUBLE if self.last is None else self.last.observation.sample.trouble
        since = self.started_at if self.measured_at is None else self.measured_at
        if now - since <= CONTAINER_SECONDS or trouble.code is not TroubleCode.CONTAINER:
            return ""
        return f"no card can be read for {now - since:.0f} s, and a new container may: {trouble}"
