"""What really happened on the node."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpufence.quantity import MIB
from tests.integration.agent.chaos.card import Stand, Words

_DRAIN = 0.5


class Span(NamedTuple):
    since: float
    until: float

    @property
    def seconds(self) -> float:
        return self.until - self.since


def without(span: Span, holes: Iterable[Span]) -> list[Span]:
    """Cut holes out of a span and return the pieces that stay whole."""
    pieces = []
    since = span.since
    for hole in sorted(holes):
        if hole.until <= since or hole.since >= span.until:
            continue
        if hole.since > since:
            pieces.append(Span(since, hole.since))
        since = max(since, hole.until)
    if since < span.until:
        pieces.append(Span(since, span.until))
    return pieces


def both(spans: Iterable[Span], others: Sequence[Span]) -> list[Span]:
    """Return the stretches that lie in spans of either kind."""
    pieces = [
        Span(max(span.since, other.since), min(span.until, other.until))
        for span in spans
        for other in others
    ]
    return [piece for piece in pieces if piece.since < piece.until]


def widened(spans: Iterable[Span], by_seconds: float, from_: float = 0.0) -> list[Span]:
    """
    Make spans as much longer at both ends, none beginning before `from_`; join those that touch.
    """
    joined: list[Span] = []
    for span in sorted(spans):
        since, until = max(span.since - by_seconds, from_), span.until + by_seconds
        if until <= since:
            continue
        if joined and since <= joined[-1].until:
            joined[-1] = Span(joined[-1].since, max(joined[-1].until, until))
        else:
            joined.append(Span(since, until))
    return joined


def fullest(
    spans: Sequence[Span],
    window: Span,
    most: float,
    smear: float = 0.0,
    drain: float = _DRAIN,
    unseen: Sequence[Span] = (),
) -> float:
    """
    Return the most that a bucket holds within the window, filled by these spans one second each
    second and drained at half the speed between them, as far as that is not `unseen`; nothing
    unless a span meets the window.

    Who looks now and then takes what a look shows to hold until the next one: up to `smear` seconds
    after each span but the last.
    """
    level = best = 0.0
    last: float | None = None
    for since, until in spans:
        if since > window.until:
            break
        if last is not None:
            gap = since - last
            seen = sum(piece.seconds for piece in without(Span(last, since), unseen))
            drained = max(seen - smear, 0.0) * drain
            level = max(min(level + min(gap, smear), most) - drained, 0.0)
        level = min(level + min(until, window.until) - since, most)
        last = until
        if until >= window.since:
            best = max(best, level)
    return best


RISE = 256 * MIB
"""A pod that takes so much more at once, after a rest that no list of its card misses, works."""
REST_SECONDS = 3.0
SOON_SECONDS = 1.0


@dataclass(slots=True)
class Life:
    """
    One pod: when it first had a process on a card, and when it held too much on which card.

    `over` is by more than the margin for evictions, `taking` the same while others were owed more
    than was free, and `pressing` by more than the margin of a short card while hardly anything was.
    `curing` is when its eviction would certainly have ended the shortage, `barely` when it may
    have. `asked` is when others surely missed what it borrowed and `recalled` when its eviction
    would have given that back, `may_be_asked` and `may_recall` when it may have been so. `evicted`
    is when its eviction was accepted, as closely as that is known; `left_at` when it went for
    another reason. It holds `holds` since `moved_at`, where it had risen to at `risen_at`.
    """

    uid: str
    words: Words
    made_at: float = 0.0
    first_use: float | None = None
    over: dict[int, list[Span]] = field(default_factory=dict)
    taking: dict[int, list[Span]] = field(default_factory=dict)
    pressing: dict[int, list[Span]] = field(default_factory=dict)
    curing: dict[int, list[Span]] = field(default_factory=dict)
    barely: dict[int, list[Span]] = field(default_factory=dict)
    asked: dict[int, list[Span]] = field(default_factory=dict)
    may_be_asked: dict[int, list[Span]] = field(default_factory=dict)
    recalled: dict[int, list[Span]] = field(default_factory=dict)
    may_recall: dict[int, list[Span]] = field(default_factory=dict)
    holds: int = 0
    moved_at: float = 0.0
    risen_at: float | None = None
    evicted: Span | None = None
    left_at: float | None = None

    def saw(self, card: int, used: int, seen: Span, stand: Stand) -> None:
        """Note what the pod holds at the end of `seen`, at whose beginning was the look before."""
        if self.first_use is None:
            self.first_use = seen.until
        over, pressing = self.words.thresholds
        presses = stand.hardly_any and used > pressing
        _note(self.over.setdefault(card, []), seen, holds=used > over)
        _note(self.taking.setdefault(card, []), seen, holds=stand.owing and used > over)
        _note(self.pressing.setdefault(card, []), seen, holds=presses)
        _note(self.curing.setdefault(card, []), seen, holds=self.uid in stand.curing)
        _note(self.barely.setdefault(card, []), seen, holds=self.uid in stand.barely)
        loan = self.words.borrows(used)
        _note(self.asked.setdefault(card, []), seen, holds=stand.misses and loan)
        _note(self.may_be_asked.setdefault(card, []), seen, holds=stand.may_miss and loan)
        _note(self.recalled.setdefault(card, []), seen, holds=self.uid in stand.recalled)
        _note(self.may_recall.setdefault(card, []), seen, holds=self.uid in stand.may_recall)

    def moved(self, used: int, now: float) -> None:
        """Note how much the pod holds of all cards, and when it rose after a while of rest."""
        if used < self.holds:
            self.risen_at = None
        elif used - self.holds >= RISE and now - self.moved_at >= REST_SECONDS:
            self.risen_at = now
        if used != self.holds:
            self.holds, self.moved_at = used, now

    def sleeps(self, now: float, after: float, doubted_at: float) -> bool:
        """Tell whether an agent that sees all must know that the pod is idle for so long."""
        moved_at = max(self.moved_at, self.made_at, doubted_at)
        return not self.words.works and now - moved_at > after + REST_SECONDS

    def wakes(self, now: float, after: float) -> bool:
        """Tell whether no agent can take the pod for idle for so long."""
        if now - self.made_at < after - SOON_SECONDS or (self.words.works and self.holds > 0):
            return True
        return self.risen_at is not None and now - self.risen_at < after - SOON_SECONDS


@dataclass(frozen=True, slots=True)
class Blind:
    """Time in which the agent could not see a card, or all of them, or was not to act at all."""

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
    memory of which card, `suspended` when more than half of those who could go were over their
    limits.
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
    """Lengthen the last span, or begin one. What held at two looks in a row held in between."""
    if not holds:
        return
    if spans and spans[-1].until == seen.since:
        spans[-1] = Span(spans[-1].since, seen.until)
    else:
        spans.append(Span(seen.until, seen.until))
