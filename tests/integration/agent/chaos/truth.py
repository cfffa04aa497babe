"""
What really happened on the node, as somebody saw who needs no driver and no API server for it.
"""

from dataclasses import dataclass, field

from gpufence.quantity import MIB
from tests.integration.agent.chaos.spans import Span

SHORT_FLOOR = 512 * MIB
SHORT_MARGIN = REPORT_MARGIN = 64 * MIB
EVICT_MARGIN = 256 * MIB
EVICT_PERCENT = 3


@dataclass(frozen=True, slots=True)
class Words:
    """
    What a pod says of itself, and its namespace of it, all fixed when it is made.

    Only a `fenced` pod may ever be evicted: its namespace says `evict`, and it declares a limit.
    One that is `watched` declares one in a namespace of any mode. One that no webhook saw is not
    `injected`; a disruption budget `shields` what it covers.
    """

    name: str
    limit: int
    namespace: str = ""
    watched: bool = True
    fenced: bool = True
    injected: bool = True
    shielded: bool = False


@dataclass(slots=True)
class Life:
    """
    One pod: when it first had a process on a card, and when it held too much on which card.

    `over` is by more than the margin for evictions, `pressing` by more than that of a short card
    while its card was short and somebody else held memory on it. `evicted` is when its eviction was
    accepted, as closely as that is known; `left_at` when it went for another reason.
    """

    uid: str
    words: Words
    made_at: float = 0.0
    first_use: float | None = None
    over: dict[int, list[Span]] = field(default_factory=dict)
    pressing: dict[int, list[Span]] = field(default_factory=dict)
    evicted: Span | None = None
    left_at: float | None = None

    @property
    def thresholds(self) -> tuple[int, int]:
        """
        Return the bytes above which the pod is over, and pressing.
        """
        limit = self.words.limit
        return limit + max(EVICT_MARGIN, limit * EVICT_PERCENT // 100), limit + SHORT_MARGIN

    def saw(self, card: int, used: int, seen: Span, *, short: bool) -> None:
        """
        Note what the pod holds at the end of `seen`, at whose beginning was the look before.
        """
        if self.first_use is None:
            self.first_use = seen.until
        over, pressing = self.thresholds
        _note(self.over.setdefault(card, []), seen, holds=used > over)
        _note(self.pressing.setdefault(card, []), seen, holds=short and used > pressing)


@dataclass(frozen=True, slots=True)
class Blind:
    """
    Time in which the agent could not see a card, or all of them, or was not to act at all.
    """

    span: Span
    why: str
    card: int | None = None
    forbids: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """
    When counting began anew: the agent was started, or allowed to evict again.

    From `stopped_at` until `at` nothing could be evicted; until `ready_at` nothing had to be.
    """

    stopped_at: float
    at: float
    ready_at: float
    pause_seconds: float


@dataclass(slots=True)
class History:
    """
    Everything. `fog` is time in which nobody looked, `leaving` when a pod on its way out held
    memory of which card, `suspended` when more than half of the pods were over their limits.
    """

    lives: dict[str, Life] = field(default_factory=dict)
    blind: list[Blind] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    fog: list[Span] = field(default_factory=list)
    leaving: dict[int, list[Span]] = field(default_factory=dict)
    suspended: list[Span] = field(default_factory=list)

    def left(self, card: int, seen: Span) -> None:
        _note(self.leaving.setdefault(card, []), seen, holds=True)

    def mistrusted(self, seen: Span) -> None:
        _note(self.suspended, seen, holds=True)


def _note(spans: list[Span], seen: Span, *, holds: bool) -> None:
    """
    Lengthen the last span, or begin one. What held at two looks in a row held in between.
    """
    if not holds:
        return
    if spans and spans[-1].until == seen.since:
        spans[-1] = Span(spans[-1].since, seen.until)
    else:
        spans.append(Span(seen.until, seen.until))
