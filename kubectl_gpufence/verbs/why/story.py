"""PURE. What a record of a pod's end says in sentences: what happened, why, and what to type."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from gpufence.event_text import would_do
from gpufence.owners import topmost
from gpufence.records import CAPPED, RUNNING
from gpufence.text import minutes, printable
from kubectl_gpufence.refusals import REMEDY
from kubectl_gpufence.verbs.why.chart import chart, clock
from kubectl_gpufence.view import allowed, chapter, counted, held, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpufence.records import Record, Threshold
    from kubectl_gpufence.pods import SeenEvent
    from kubectl_gpufence.view import Display

_PASSED = {
    "limit": "it passed its limit of {}",
    "evict": "it passed {}, above which time counts",
}


class FoundRecord(NamedTuple):
    """A record, and the node that remembers it."""

    node: str
    record: Record


def story(found: FoundRecord, display: Display) -> Iterator[str]:
    """Write one record as a chart and chapters."""
    record = found.record
    yield from wrapped(_head(found), "  ", display, first="")
    if drawn := chart(record, display):
        yield ""
        yield from drawn
    yield from chapter("WHAT HAPPENED", _bullets(what_happened(record), display), display)
    yield from chapter("WHY", _bullets(why(record), display), display)
    yield from chapter("WHAT TO TYPE", _bullets(what_to_type(record), display), display)


def refused_story(refused: Sequence[SeenEvent], display: Display) -> Iterator[str]:
    """Write why pods were never made, by the newest refusal."""
    newest = refused[-1]
    namespace, _, owner = newest.about.partition("/")
    times = counted(sum(event.times for event in refused), "time")
    head = f"{topmost(owner)} in namespace {namespace}: pods rejected {times}, last at {newest.at}"
    yield from wrapped(head, "  ", display, first="")
    yield from chapter("WHY", _bullets([f"{newest.message}."], display), display)
    yield from chapter("WHAT TO TYPE", _bullets([REMEDY], display), display)


def _head(found: FoundRecord) -> str:
    record = found.record
    owner = f" ({record.owner})" if record.owner else ""
    kind = "out of GPU memory at its cap" if record.kind == CAPPED else record.kind
    ended = "has not ended" if record.kind == RUNNING else f"{kind} at {record.at}"
    model = f"{record.model} of {allowed(record.total_bytes)}"
    card = f", card {record.index} ({model})" if record.card else ""
    return f"pod {record.namespace}/{record.name}{owner}: {ended}, node {found.node}{card}"


def what_happened(record: Record) -> Iterator[str]:
    """Tell in the order of time when which threshold was passed, and how it ended."""
    passed = [each for each in record.thresholds if each.passed_seconds is not None]
    for threshold in sorted(passed, key=lambda each: -(each.passed_seconds or 0.0)):
        yield _passing(record, threshold)
    if record.kind == RUNNING:
        peak = f"; the most it held was {held(record.peak_bytes)}" if record.peak_bytes else ""
        yield f"{clock(record.at)}: it holds {held(record.used_bytes)}{peak}."
    elif record.kind == CAPPED:
        peak = f"; the most it held was {held(record.peak_bytes)}" if record.peak_bytes else ""
        yield f"{clock(record.at)}: container {record.container} failed{peak}."
    else:
        yield f"{clock(record.at)}: it held {held(record.used_bytes)} and was evicted."


def _passing(record: Record, threshold: Threshold) -> str:
    seconds = threshold.passed_seconds or 0.0
    what = _PASSED.get(threshold.name, "it passed {}").format(allowed(threshold.bytes))
    first = record.course[0].age if record.course else 0
    if round(seconds) >= first:
        return f"From the first look on, {clock(record.at, seconds)}: {_already(what)}."
    before = "before now" if record.kind == RUNNING else "before the end"
    return f"{clock(record.at, seconds)}, {minutes(seconds)} {before}: {what}."


def _already(what: str) -> str:
    return what.replace("it passed", "it was above", 1)


def why(record: Record) -> Iterator[str]:
    """Say what decided, and how the card's other pods stood."""
    if record.kind == CAPPED:
        yield from _capped(record)
    elif record.kind == RUNNING:
        yield "Nothing has been done to it."
    elif record.recalled:
        yield (
            f"It borrowed what it held above its request of {allowed(record.request_bytes)}, and "
            f"did not give it back when the card's other pods needed their own: "
            f"{held(record.free_bytes)} were free, and {held(record.owed_bytes)} promised and not "
            "held yet."
        )
    elif record.shortage:
        yield (
            f"The card was short of memory: {held(record.free_bytes)} were free, and its pods were "
            f"promised {held(record.owed_bytes)} that they did not hold yet. The pod was above its "
            "limit, and its eviction gives that back."
        )
    else:
        over, most = minutes(record.over_seconds), minutes(record.hold_seconds)
        yield (
            f"It was over its limit for {over}; {most} above the threshold are allowed, less for a "
            "large excess."
        )
    yield from _neighbours(record)


def _capped(record: Record) -> Iterator[str]:
    said = "It ran out of GPU memory" if record.certain else "Perhaps it ran out of GPU memory"
    yield (
        f"{said}: of {allowed(record.asked_bytes)} asked for it may allocate "
        f"{allowed(record.given_bytes)}, the rest is kept for CUDA."
    )


def _neighbours(record: Record) -> Iterator[str]:
    """Give amounts of others, and no names."""
    if record.kind == CAPPED:
        return
    if not record.neighbours:
        yield "No other pod was on its card."
        return
    amounts = [
        f"{held(other.used_bytes)} of {allowed(other.promised_bytes, none='no limit')}"
        for other in record.neighbours
    ]
    count = "One other pod" if len(amounts) == 1 else f"{len(amounts)} other pods"
    free = f", and {held(record.free_bytes)} were free" if record.free_bytes is not None else ""
    yield f"{count} on its card held {', '.join(amounts)}{free}."


def what_to_type(record: Record) -> Iterator[str]:
    """Return the value that would do, and commands that have more."""
    enough, total = record.enough_bytes, record.total_bytes
    if enough is not None:
        yield would_do(enough, total or None)
    elif record.kind == RUNNING:
        yield "Nothing."
    elif record.recalled:
        yield (
            f"Request more than {allowed(record.request_bytes)}, or let its framework empty its "
            "caches after each peak."
        )
    else:
        yield "Request an amount of GPU memory, or keep it off the card."
    namespace = quote(printable(record.namespace))
    yield f"`kubectl gpufence recommend -n {namespace}` has what it needs by all days measured."
    kind, _, name = record.owner.partition("/")
    now = f"{kind.lower()}/{name}" if name else record.name
    yield f"`kubectl gpufence explain -n {namespace} {quote(printable(now))}` has the present."


def _bullets(sentences: Iterable[str], display: Display) -> list[str]:
    return [line for item in sentences for line in wrapped(item, "    ", display, first="  - ")]
