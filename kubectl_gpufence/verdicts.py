"""
PURE. The agent's verdicts in words: how a pod stands, and what will become of it.

The keys are the words of `/v1/snapshot`. An agent newer than this plugin may know others; those are
shown as they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.mode import Mode
from gpufence.snapshot import BUSY
from gpufence.text import duration, printable
from kubectl_gpufence.view import Cell, Tone

if TYPE_CHECKING:
    from gpufence.snapshot import PodActivityRow, PodRow, UseRow


class VerdictText(NamedTuple):
    """
    `short` stands in tables, `follows` tells what will happen; a pod that is `over` its limit reads
    as that first, with for how long.
    """

    short: str
    tone: Tone
    follows: str
    over: bool = False


_EVICTED_SOON = "It is evicted unless it gives memory back."

FENCES: Final = {
    "mig": "its MIG instance has no more",
    "driver": "the driver refuses more",
    "mps": "the MPS server refuses more",
    "library": "a library in the container refuses more",
    "framework": "its frameworks are configured to take no more",
    "agent": "nothing refuses more; its agent evicts it",
}
"""What each fence does, by its word (gpufence/fences.py)."""


def fence_sentence(fence: str) -> str:
    """Say what holds a pod; a word of a newer agent stands as it came."""
    return f"fence {printable(fence)}" + (f", {FENCES[fence]}" if fence in FENCES else "")


VERDICTS = {
    "": VerdictText("not fenced", Tone.FAINT, "Its namespace has no mode, so no limit applies."),
    "idle": VerdictText("holds nothing", Tone.FAINT, "It holds no GPU memory. Nothing happens."),
    "unknown": VerdictText("unknown", Tone.WARN, "Its use is unknown, so it is not evicted."),
    "undeclared": VerdictText(
        "undeclared",
        Tone.WARN,
        "It has no limit: it is shown and reported, never evicted.",
    ),
    "within": VerdictText("within", Tone.GOOD, "It is within its limit. Nothing happens."),
    "borrowing": VerdictText(
        "borrowing",
        Tone.GOOD,
        "It holds more than its request, and no other pod misses it. Nothing happens.",
    ),
    "recalled": VerdictText(
        "",
        Tone.WARN,
        "It borrows what another pod needs now. It is evicted unless it gives that back.",
        over=True,
    ),
    "unconfirmed": VerdictText(
        "measuring",
        Tone.WARN,
        "Only processes that a single list has shown are over; the next list decides.",
    ),
    "tolerated": VerdictText(
        "within the margin",
        Tone.WARN,
        "It is over its limit by less than the margin for evictions. "
        "It stays, and an event says so.",
        over=True,
    ),
    "not renewed": VerdictText(
        "measuring", Tone.WARN, "It was over in an earlier list; the next list decides."
    ),
    "mps": VerdictText(
        "on MPS",
        Tone.WARN,
        "Clients of the node's MPS server cannot be distinguished: the pod is only reported.",
        over=True,
    ),
    "not enforced": VerdictText(
        "not enforced",
        Tone.WARN,
        "Its limit is only implied by the card's settings, and its namespace did not ask for "
        "implied limits to be enforced. It stays.",
        over=True,
    ),
    "exempt": VerdictText(
        "exempt", Tone.WARN, "It is never evicted, whatever it holds.", over=True
    ),
    "only when short": VerdictText(
        "evicted if short",
        Tone.WARN,
        "It is over its limit, and evicted only under memory pressure: the operator chose so.",
        over=True,
    ),
    "uninjected": VerdictText(
        "evicted if short",
        Tone.WARN,
        "The webhook never saw it, so it is evicted only if that ends memory pressure on the card.",
        over=True,
    ),
    "other card": VerdictText(
        "evicted if short",
        Tone.WARN,
        "Its fraction was computed for a smaller card, so it is evicted only if that ends memory "
        "pressure on the card. Delete it, and the next pod gets one for this card.",
        over=True,
    ),
    "grace": VerdictText(
        "", Tone.WARN, "It has just started and is over its limit. " + _EVICTED_SOON, over=True
    ),
    "holding": VerdictText("", Tone.BAD, "It is over its limit. " + _EVICTED_SOON, over=True),
    "would evict": VerdictText(
        "would evict",
        Tone.BAD,
        "In mode evict it would be evicted now; in this mode it stays.",
        over=True,
    ),
    "terminating": VerdictText("terminating", Tone.FAINT, "It is terminating already."),
    "braked": VerdictText(
        "held back",
        Tone.BAD,
        "It would be evicted now, but a brake delays all evictions.",
        over=True,
    ),
    "backing off": VerdictText(
        "eviction refused", Tone.BAD, "Its eviction was refused a moment ago and is tried again."
    ),
    "queued": VerdictText(
        "after another", Tone.BAD, "It will be evicted, after another pod on the card.", over=True
    ),
    "stuck": VerdictText(
        "stuck", Tone.BAD, "It is terminating, does not end, and still holds the memory."
    ),
    "evict": VerdictText("evicting", Tone.BAD, "It is being evicted now."),
}
EVIDENCE: Final = {
    "Busy": "its processes use a card",
    "Loading": "its memory on a card moves, or processes come and go",
    "CPUBusy": "its processes on a card use the CPU",
    "NoKernels": "no kernels, no memory moved and nothing computed",
    "NotMeasurable": "unknown",
}
"""What an agent goes by, by the words of its snapshot."""
_STARTING: Final = VerdictText(
    "agent starting", Tone.FAINT, "Its agent has just started, and has not judged it yet."
)
BRAKES: Final = {
    "the agent has just started": "agent starting",
    "the API server is out of reach": "API server away",
    "more than half of the pods of one dialect and unit are over their limits at once": "too many",
    "another pod on the card is terminating": "another pod leaves",
    "this node has had its evictions of the minute": "enough a minute",
    "the namespace has had its evictions of the minute on this node": "enough a minute",
}
"""What holds evictions back, in a word or two by the words of a snapshot."""
_TIMED: Final = {
    "holding": "evict in",
    "recalled": "evict in",
    "grace": "in grace for",
    "backing off": "again in",
}


class VerdictParts(NamedTuple):
    """
    A verdict and its times: for how long the pod is over, in how long something is due, and what;
    None where nothing is counted. `rest` is what stands behind the time over.
    """

    cell: Cell
    over_seconds: float | None = None
    due_seconds: float | None = None
    verb: str = ""
    rest: str = ""


def held_back(brake: str) -> str:
    """Return in a few words that evictions are held back, and by what where that is known."""
    return f"held back: {BRAKES[brake]}" if brake in BRAKES else "held back"


def verdict_parts(pod: PodRow, use: UseRow, brake: str = "") -> VerdictParts:
    """Return how a pod stands on a card, since when, and what is due when."""
    meaning = _meaning(pod, use)
    if meaning is None:
        return VerdictParts(Cell(printable(use.outcome), Tone.PLAIN))
    short = held_back(brake) if use.outcome == "braked" else meaning.short
    over = use.over_seconds if use.over_seconds >= 1 else None
    if not meaning.over:
        again = use.due_seconds if use.outcome in _TIMED else None
        verb = _TIMED.get(use.outcome, "")
        return VerdictParts(Cell(short, meaning.tone), due_seconds=again, verb=verb)
    word = Cell("recalled" if is_recalled(use) else "over", meaning.tone)
    if use.outcome not in _TIMED:
        return VerdictParts(word, over, rest=short)
    if pod.mode != str(Mode.EVICT):
        return VerdictParts(word, over, rest="only watched")
    return VerdictParts(word, over, use.due_seconds, _TIMED[use.outcome])


def verdict(pod: PodRow, use: UseRow, brake: str = "") -> Cell:
    """Return the same for a table."""
    parts = verdict_parts(pod, use, brake)
    text = parts.cell.text
    if parts.over_seconds is not None:
        text += f" {duration(parts.over_seconds)}"
    if parts.due_seconds is not None:
        text += f", {parts.verb} {duration(parts.due_seconds)}"
    return Cell(f"{text}, {parts.rest}" if parts.rest else text, parts.cell.tone)


def is_recalled(use: UseRow) -> bool:
    """Return whether a pod is to go, or would be, for what it borrows within its limit."""
    meaning = VERDICTS.get(use.outcome)
    within = use.outcome == "recalled" or (use.borrowed_bytes > 0 and not use.over_seconds)
    return within and meaning is not None and meaning.over


def state_text(state: str) -> str:
    """Return what a table says of a pod on no card."""
    return VERDICTS[state].short if state in VERDICTS else state


def what_follows(pod: PodRow, use: UseRow) -> str:
    """Return in sentences what will become of a pod."""
    meaning = _meaning(pod, use)
    if meaning is None:
        return f'Its agent says "{use.outcome}", which this plugin does not know: upgrade it.'
    if not meaning.over or use.outcome not in _TIMED:
        return meaning.follows
    recalled = is_recalled(use)
    if pod.mode != str(Mode.EVICT):
        what = "borrows what another pod needs now" if recalled else "is over its limit"
        return f"It {what}; in mode {pod.mode or 'none'} it stays."
    if use.due_seconds is None:
        return meaning.follows
    due = duration(use.due_seconds) + ("" if recalled else " of further use over the limit")
    return f"{meaning.follows} That is due in {due}."


def _meaning(pod: PodRow, use: UseRow) -> VerdictText | None:
    """Return what a verdict means; a fenced pod without one has an agent that has just started."""
    return _STARTING if not use.outcome and pod.mode else VERDICTS.get(use.outcome)


def activity_sentence(row: PodActivityRow, *, holds: bool) -> str:
    """
    Return in a sentence whether a pod uses its GPU; `holds` says whether it holds memory of one.
    """
    if row.idle_seconds is None:
        return f"Whether it is idle is unknown: {row.why or 'its agent does not say why'}."
    evidence = EVIDENCE.get(row.evidence, row.evidence)
    if row.state == BUSY:
        busy = round(100 * (row.busy_share or 0))
        share = f", for {busy}% of the last minute" if busy else ""
        return f"It is busy: {evidence}{share}."
    reason = evidence if holds else "it was given a GPU and has not touched it"
    return f"It has been idle for {duration(row.idle_seconds)}: {reason}."
