"""What really happened on the node, and what docs/isolation.md makes of one moment of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpufence.quantity import MIB

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


def fullest(spans: Sequence[Span], window: Span, most: float, smear: float = 0.0) -> float:
    """
    Return the most that a bucket holds within the window, filled by these spans one second each
    second and drained at half the speed between them; nothing unless a span meets the window.

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
            drained = max(gap - smear, 0.0) * _DRAIN
            level = max(min(level + min(gap, smear), most) - drained, 0.0)
        level = min(level + min(until, window.until) - since, most)
        last = until
        if until >= window.since:
            best = max(best, level)
    return best


SHORT_FLOOR = 512 * MIB
SHORT_MARGIN = REPORT_MARGIN = 64 * MIB
EVICT_MARGIN = 256 * MIB
EVICT_PERCENT = 3
SLACK = 96 * MIB
"""
How much may come and go between the observer's look and the agent's without anybody's being wrong.
"""


@dataclass(frozen=True, slots=True)
class Words:
    """
    What a pod says of itself, and its namespace of it, all fixed when it is made.

    Only a `fenced` pod may ever be evicted: its namespace says `evict`, and it declares a limit.
    One that is `watched` declares one in a namespace of any mode, and is promised it, on `card`
    from the beginning where its scheduler noted one. One that no webhook saw is not `injected`; a
    disruption budget `shields` what it covers.
    """

    name: str
    limit: int
    namespace: str = ""
    watched: bool = True
    fenced: bool = True
    injected: bool = True
    shielded: bool = False
    card: int | None = None

    @property
    def thresholds(self) -> tuple[int, int]:
        """Return the bytes above which the pod is over its limit, and pressing on a short card."""
        margin = max(EVICT_MARGIN, self.limit * EVICT_PERCENT // 100)
        return self.limit + margin, self.limit + SHORT_MARGIN


class Moment(NamedTuple):
    """
    One card at one look: what each pod there holds, by uid, and how much is `free` of what can be
    promised (`total`). `nobodys` is what no pod holds, `going` are the pods on their way out.
    """

    held: Mapping[str, int]
    free: int
    total: int
    nobodys: int = 0
    going: Collection[str] = ()


class Stand(NamedTuple):
    """
    How a card stands at one look. `owing`: less is free than is owed; `hardly_any` is free below
    the floor. `curing` are those who end the shortage, `barely` those who may do so, if what is
    seen here is not quite what the agent saw.
    """

    owing: bool = False
    hardly_any: bool = False
    curing: frozenset[str] = frozenset()
    barely: frozenset[str] = frozenset()


def stand_of(moment: Moment, place: int, people: Mapping[str, Words]) -> Stand:
    """Keep the card's ledger and say whom its shortage evicts."""
    there = {uid: words for uid, words in people.items() if uid in moment.held}
    promised = {
        uid: words.limit
        for uid, words in people.items()
        if words.watched and uid not in moment.going and (uid in there or words.card == place)
    }
    within = sum(min(moment.held.get(uid, 0), limit) for uid, limit in promised.items())
    owed = sum(max(limit - moment.held.get(uid, 0), 0) for uid, limit in promised.items())
    owed = min(owed, max(moment.total - within, 0))
    hardly_any = moment.free < SHORT_FLOOR and (len(moment.held) > 1 or owed > 0)
    missing = max(owed, SHORT_FLOOR if hardly_any else 0) - moment.free
    if missing <= 0:
        return Stand(hardly_any=hardly_any)
    exact = _curing(moment, there, missing)
    room = [_curing(moment, there, missing + more) for more in (-SLACK, SLACK)]
    return Stand(
        owing=owed > moment.free,
        hardly_any=hardly_any,
        curing=exact.intersection(*room),
        barely=exact.union(*room),
    )


def _curing(moment: Moment, there: Mapping[str, Words], missing: int) -> frozenset[str]:
    """
    Choose who goes: the largest excess first, no more than give back what is missing; all who are
    over their limits if that is at least half of it; tolerated pods only where no more is held by
    those who do not go.
    """
    excess = {uid: moment.held[uid] - words.limit for uid, words in there.items()}
    able = {uid for uid, words in there.items() if words.fenced and uid not in moment.going}
    over = {uid for uid in able if moment.held[uid] > there[uid].thresholds[0]}
    beyond = moment.nobodys
    for uid, used in moment.held.items():
        if uid not in able:
            stays = uid in there and there[uid].watched and uid not in moment.going
            beyond += max(excess[uid], 0) if stays else used
    tolerated = {
        uid
        for uid in able - over
        if moment.held[uid] > there[uid].thresholds[1] and beyond <= excess[uid]
    }
    going = sorted(over | tolerated, key=lambda uid: -excess[uid])
    if sum(excess[uid] for uid in going) < missing:
        going = [uid for uid in going if uid in over and there[uid].injected]
        if 2 * sum(excess[uid] for uid in going) < missing:
            return frozenset()
    chosen: set[str] = set()
    for uid in going:
        if missing > 0:
            chosen.add(uid)
            missing -= excess[uid]
    return frozenset(chosen)


@dataclass(slots=True)
class Life:
    """
    One pod: when it first had a process on a card, and when it held too much on which card.

    `over` is by more than the margin for evictions, `taking` the same while others were owed more
    than was free, and `pressing` by more than the margin of a short card while hardly anything was.
    `curing` is when its eviction would certainly have ended the shortage, `barely` when it may
    have. `evicted` is when its eviction was accepted, as closely as that is known; `left_at` when
    it went for another reason.
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
