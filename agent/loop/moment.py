"""
PURE. All that is known after one tick, in one value, of which metrics and snapshot are made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.loop.counts import Counts
from agent.loop.owners import NO_LEDGER, Ledger

if TYPE_CHECKING:
    from agent.model.decision import Decision
    from agent.model.pod import PodsOnNode
    from agent.model.sample import Sample
    from agent.model.use import NodeUse


@dataclass(frozen=True, slots=True)
class Look:
    """
    One look at the cards and what came of it.
    """

    sample: Sample
    use: NodeUse
    pods: PodsOnNode
    decision: Decision


@dataclass(frozen=True, slots=True)
class Moment:
    """
    `measured_at` is when any card could last be read, None if that has never been so.
    """

    started_at: float
    at: float
    look: Look | None = None
    measured_at: float | None = None
    counts: Counts = field(default_factory=Counts)
    ledger: Ledger = NO_LEDGER

    def is_current(self, now: float, gap_seconds: float) -> bool:
        """
        Tell whether the look may be shown as what is there now; a loop that hangs has none.
        """
        return self.look is not None and now - self.look.sample.taken_at <= gap_seconds
