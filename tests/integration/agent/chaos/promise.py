"""
PURE. The reference model: what `docs/isolation.md` promises, held against what really happened.

It shares nothing with the agent's own judge. It does not follow the agent's samples but knows the
truth at every moment, so it leaves as much room as two samples leave between them: an eviction is
false if not even with that room the pod can have been over its limit for the hold, a violation is
missed if the pod was over it without a break for longer than was promised, while nothing stood in
the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.integration.agent.chaos.truth import (
    History,
    Life,
    Span,
    Start,
    both,
    fullest,
    widened,
    without,
)

LOOK_SECONDS = 0.15
"""How exactly the truth is known, which is looked at ten times a second."""

ASKED_SECONDS = 65.0


@dataclass(frozen=True, slots=True)
class Promise:
    """
    The agent's settings, and what they promise.

    `decided_seconds` is the most that may pass from a decision to its eviction, the second look and
    the request; `spare_seconds` is for a machine that has other things to do.
    """

    interval_seconds: float
    list_seconds: float
    hold_seconds: float
    short_hold_seconds: float
    grace_seconds: float
    give_back_seconds: float
    lend_after_seconds: float
    decided_seconds: float = 2.0
    spare_seconds: float = 2.0

    @property
    def smear_seconds(self) -> float:
        """
        Return how far a sample may carry beyond what it saw: as long as samples count as adjacent.
        """
        return 3 * self.interval_seconds

    def longest(self, hold_seconds: float) -> float:
        """Return the longest a violation may last: until listed, confirmed, held, and decided."""
        looks = self.list_seconds + 3 * self.interval_seconds
        return looks + hold_seconds + 0.2 + self.spare_seconds


@dataclass(frozen=True, slots=True)
class Findings:
    """
    The answer: sentences about what went wrong, and how much there was to get wrong.

    `violations` had to end in an eviction, `latest` is the longest that one of them lasted. `loans`
    evictions were for no more than what was borrowed.
    """

    false: tuple[str, ...]
    missed: tuple[str, ...]
    evictions: int
    violations: int
    latest: float
    loans: int = 0


def findings(history: History, promise: Promise) -> Findings:
    """Hold everything against the promise."""
    lives = history.lives.values()
    evicted = [life for life in lives if life.evicted is not None]
    false = [why for life in evicted for why in _false(life, history, promise)]
    waited = [item for life in lives for item in _violations(life, history, promise)]
    zero = min((start.at for start in history.starts), default=0.0)
    missed = [
        f"{life.words.name} was to go from card {card} for {piece.seconds:.1f} s from"
        f" second {piece.since - zero:.1f}; promised were {longest:.1f} s"
        for life, card, piece, longest in waited
        if piece.seconds > longest
    ]
    answered = [item for item in waited if item[0].evicted is not None]
    return Findings(
        false=tuple(false),
        missed=tuple(missed),
        evictions=len(evicted),
        violations=len(answered) + len(missed),
        latest=max((piece.seconds for _, _, piece, _ in answered), default=0.0),
        loans=sum(_is_loan(life, promise) for life in evicted),
    )


def _false(life: Life, history: History, promise: Promise) -> Iterator[str]:
    window = life.evicted
    if window is None:
        return
    who = f"{life.words.name}, evicted at second {window.since:.1f},"
    if not life.words.fenced:
        yield f"{who} may never be evicted"
    yield from _forbidden(window, history, promise, who)
    decided = Span(window.since - promise.decided_seconds, window.until)
    if _due_by_shortage(life, history, promise, decided):
        return
    if _due_by_loan(life, history, promise, decided):
        return
    for span in history.suspended:
        if span.since + promise.decided_seconds < window.since and window.until < span.until:
            yield f"{who} went while evictions were suspended, for no shortage"
    if not _due_by_hold(life, history, promise, decided):
        yield f"{who} had not been over its limit for long enough: {life}"


def _forbidden(window: Span, history: History, promise: Promise, who: str) -> Iterator[str]:
    """Yield why nobody at all was to go at that time."""
    for blind in history.blind:
        begin = blind.span.since + promise.decided_seconds
        if blind.forbids and begin < window.since and window.until < blind.span.until:
            yield f"{who} went though {blind.why}"
    for start in history.starts:
        if start.stopped_at + promise.decided_seconds < window.since and window.until < start.at:
            yield f"{who} went while nobody was to go"
        if start.at <= window.since and window.until < start.at + start.pause_seconds:
            yield f"{who} went in the pause after the start at {start.at:.1f}"


def _due_by_hold(life: Life, history: History, promise: Promise, decided: Span) -> bool:
    """
    Tell whether the pod can have been over its limit for the hold, its grace left out.

    Counting began anew with the last start before.
    """
    if not life.words.injected or life.first_use is None:
        return False
    first = max([life.first_use, *(start.at for start in _before(history, decided))])
    from_ = first + promise.grace_seconds - promise.interval_seconds
    return any(
        _full(_room(spans, history, from_), history, card, decided, promise, promise.hold_seconds)
        for card, spans in life.over.items()
    )


def _full(
    spans: list[Span],
    history: History,
    card: int,
    decided: Span,
    promise: Promise,
    hold: float,
) -> bool:
    """
    Tell whether the agent can have counted the hold. The last look spills over a full bucket, and
    while it could not see the card nothing drained.
    """
    unseen = _in_the_way(history, card)
    smear = promise.smear_seconds
    return fullest(spans, decided, hold + smear, smear, unseen=unseen) >= hold


def _due_by_shortage(life: Life, history: History, promise: Promise, decided: Span) -> bool:
    """
    Tell whether the pod can have gone to end a shortage: it took what others were owed for the
    hold, or pressed on them for the short hold, and its eviction was a cure.
    """
    from_ = max([0.0, *(start.at for start in _before(history, decided))])
    smear = promise.smear_seconds
    return any(
        _full(_room(spans, history, from_), history, card, decided, promise, hold)
        and any(
            cure.since <= decided.until and decided.since <= cure.until + smear
            for cure in _room(life.barely.get(card, []), history, from_)
        )
        for kind, hold in (
            (life.taking, promise.hold_seconds),
            (life.pressing, promise.short_hold_seconds),
        )
        for card, spans in kind.items()
    )


def _due_by_loan(life: Life, history: History, promise: Promise, decided: Span) -> bool:
    """
    Tell whether the pod can have been asked for as long as it has to give back, and its eviction
    have given back what was missed. What pods do that hold what they held shows in the next list.
    """
    from_ = max([0.0, *(start.at for start in _before(history, decided))])
    smear = promise.smear_seconds + promise.list_seconds
    hold = promise.give_back_seconds
    return any(
        fullest(_room(_latest(spans, decided), history, from_), decided, hold, smear, 0.0) >= hold
        and any(
            gives.since <= decided.until and decided.since <= gives.until + smear
            for gives in _room(life.may_recall.get(card, []), history, from_)
        )
        for card, spans in life.may_be_asked.items()
    )


def _is_loan(life: Life, promise: Promise) -> bool:
    """Tell whether a pod that went was within its limit, and asked for what it borrowed."""
    if life.evicted is None:
        return False
    shortly_before = Span(life.evicted.since - promise.decided_seconds, life.evicted.until)
    over = [span for spans in life.over.values() for span in spans]
    asked = [span for spans in life.may_be_asked.values() for span in spans]
    return not both(over, [shortly_before]) and bool(both(asked, [shortly_before]))


def _latest(spans: list[Span], decided: Span) -> list[Span]:
    """Return the last demand before a decision: a minute in which nothing is missed ends one."""
    found = [span for span in spans if span.since <= decided.until]
    for number in range(len(found) - 1, 0, -1):
        if found[number].since - found[number - 1].until > ASKED_SECONDS:
            return found[number:]
    return found


def _before(history: History, decided: Span) -> list[Start]:
    return [start for start in history.starts if start.at <= decided.since]


def _room(spans: list[Span], history: History, from_: float) -> list[Span]:
    """Count for the agent what the observer did not see, and how exactly it knows the rest."""
    unseen = [
        fog
        for fog in history.fog
        if any(span.since <= fog.until and fog.since <= span.until for span in spans)
    ]
    return widened([*spans, *unseen], LOOK_SECONDS, from_)


def _violations(
    life: Life, history: History, promise: Promise
) -> Iterator[tuple[Life, int, Span, float]]:
    """Yield every stretch of a violation that was in plain sight, with the longest it may last."""
    words = life.words
    if not words.fenced or words.shielded or life.first_use is None:
        return
    ends = [life.left_at, None if life.evicted is None else life.evicted.since]
    end = min((at for at in ends if at is not None), default=float("inf"))
    for card, spans in life.over.items() if words.injected else ():
        quiet = [
            *_in_the_way(history, card),
            *_graces(life, history, promise),
            *history.suspended,
        ]
        for span in spans:
            whole = Span(span.since, min(span.until, end))
            for piece in without(whole, quiet):
                yield life, card, piece, promise.longest(promise.hold_seconds)
    for kind, hold in (
        (life.taking, promise.hold_seconds),
        (life.pressing, promise.short_hold_seconds),
    ):
        for card, spans in kind.items():
            quiet = [*_in_the_way(history, card), *history.leaving.get(card, [])]
            for span in both(spans, life.curing.get(card, [])):
                whole = Span(span.since, min(span.until, end))
                for piece in without(whole, quiet):
                    yield life, card, piece, promise.longest(hold)
    yield from _kept_loans(life, history, promise, end)


def _kept_loans(
    life: Life, history: History, promise: Promise, end: float
) -> Iterator[tuple[Life, int, Span, float]]:
    """Yield the stretches in which pods that were surely not idle missed what the pod borrowed."""
    anew = [
        Span(item.stopped_at, item.ready_at + promise.lend_after_seconds) for item in history.starts
    ]
    for card, spans in life.asked.items():
        quiet = [*_in_the_way(history, card), *history.leaving.get(card, []), *anew]
        for span in both(spans, life.recalled.get(card, [])):
            for piece in without(Span(span.since, min(span.until, end)), quiet):
                yield life, card, piece, promise.longest(promise.give_back_seconds)


def _in_the_way(history: History, card: int) -> list[Span]:
    blind = [item.span for item in history.blind if item.card in {None, card}]
    starts = [Span(item.stopped_at, item.ready_at) for item in history.starts]
    return [*blind, *starts, *history.fog]


def _graces(life: Life, history: History, promise: Promise) -> list[Span]:
    """Return the pod's grace, which begins anew with every start."""
    since = [life.first_use or 0.0, *(start.ready_at for start in history.starts)]
    return [Span(at, at + promise.grace_seconds) for at in since if at >= (life.first_use or 0.0)]
