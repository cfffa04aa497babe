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
    """`short` stands in tables, `follows` tells what will happen."""

    short: str
    tone: Tone
    follows: str


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
    "idle": VerdictText("idle", Tone.FAINT, "It holds no GPU memory. Nothing happens."),
    "unknown": VerdictText("unknown", Tone.WARN, "Its use is unknown, so it is not evicted."),
    "undeclared": VerdictText(
        "undeclared",
        Tone.WARN,
        "It has no limit: it is shown and reported, never evicted.",
    ),
    "within": VerdictText("within", Tone.GOOD, "It is within its limit. Nothing happens."),
    "unconfirmed": VerdictText(
        "unconfirmed",
        Tone.WARN,
        "Only processes that a single list has shown are over; the next list decides.",
    ),
    "tolerated": VerdictText(
        "tolerated",
        Tone.WARN,
        "It is over its limit by less than the margin for evictions. "
        "It stays, and an event says so.",
    ),
    "not renewed": VerdictText(
        "not renewed", Tone.WARN, "It was over in an earlier list; the next list decides."
    ),
    "mps": VerdictText(
        "on MPS",
        Tone.WARN,
        "Clients of the node's MPS server cannot be distinguished: the pod is only reported.",
    ),
    "not enforced": VerdictText(
        "not enforced",
        Tone.WARN,
        "Its limit is only implied by the card's settings, and its namespace did not ask for "
        "implied limits to be enforced. It stays.",
    ),
    "exempt": VerdictText("exempt", Tone.WARN, "It is never evicted, whatever it holds."),
    "only when short": VerdictText(
        "if short",
        Tone.WARN,
        "It is over its limit, and evicted only under memory pressure: the operator chose so.",
    ),
    "uninjected": VerdictText(
        "if short",
        Tone.WARN,
        "The webhook never saw it, so it is evicted only if that ends memory pressure on the card.",
    ),
    "other card": VerdictText(
        "if short",
        Tone.WARN,
        "Its fraction was computed for a smaller card, so it is evicted only if that ends memory "
        "pressure on the card. Delete it, and the next pod gets one for this card.",
    ),
    "grace": VerdictText(
        "starting", Tone.WARN, "It has just started and is over its limit. " + _EVICTED_SOON
    ),
    "holding": VerdictText("over", Tone.BAD, "It is over its limit. " + _EVICTED_SOON),
    "would evict": VerdictText(
        "would evict", Tone.BAD, "In mode evict it would be evicted now; in this mode it stays."
    ),
    "terminating": VerdictText("terminating", Tone.FAINT, "It is terminating already."),
    "braked": VerdictText(
        "braked", Tone.BAD, "It would be evicted now, but a brake delays all evictions."
    ),
    "backing off": VerdictText(
        "refused", Tone.BAD, "Its eviction was refused a moment ago and is tried again."
    ),
    "queued": VerdictText("queued", Tone.BAD, "It will be evicted, after another pod on the card."),
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
_TIMED = frozenset({"holding", "grace"})


class VerdictParts(NamedTuple):
    """
    A verdict and its times: for how long the pod is over, in how long something is due, and what;
    None where nothing is counted.
    """

    cell: Cell
    over_seconds: float | None = None
    due_seconds: float | None = None
    verb: str = ""


def verdict_parts(pod: PodRow, use: UseRow) -> VerdictParts:
    """Return how a pod stands on a card, since when, and what is due when."""
    meaning = VERDICTS.get(use.outcome)
    tone = meaning.tone if meaning else Tone.PLAIN
    return VerdictParts(
        Cell(printable(meaning.short if meaning else use.outcome), tone),
        over_seconds=use.over_seconds if use.over_seconds >= 1 else None,
        due_seconds=use.due_seconds if use.outcome in _TIMED else None,
        verb="evict" if pod.mode == str(Mode.EVICT) else "due",
    )


def verdict(pod: PodRow, use: UseRow) -> Cell:
    """Return the same for a table."""
    parts = verdict_parts(pod, use)
    text = parts.cell.text
    if parts.over_seconds is not None:
        text += f" {duration(parts.over_seconds)}"
    if parts.due_seconds is not None:
        text += f", {parts.verb} in {duration(parts.due_seconds)}"
    return Cell(text, parts.cell.tone)


def what_follows(pod: PodRow, use: UseRow) -> str:
    """Return in sentences what will become of a pod."""
    meaning = VERDICTS.get(use.outcome)
    if meaning is None:
        return f'Its agent says "{use.outcome}", which this plugin does not know: upgrade it.'
    if use.outcome not in _TIMED:
        return meaning.follows
    if pod.mode != str(Mode.EVICT):
        return f"It is over its limit; in mode {pod.mode or 'none'} it stays."
    if use.due_seconds is None:
        return meaning.follows
    due = duration(use.due_seconds)
    return f"{meaning.follows} That is due in {due} of further use over the limit."


def activity_sentence(row: PodActivityRow, *, holds: bool) -> str:
    """
    Return in a sentence whether a pod uses its GPU; `holds` says whether it holds memory of one.
    """
    if row.idle_seconds is None:
        return f"Whether it is idle is unknown: {row.why or 'its agent does not say why'}."
    evidence = EVIDENCE.get(row.evidence, row.evidence)
    if row.state == BUSY:
        share = "" if row.busy_share is None else f", for {row.busy_share:.0%} of the last minute"
        return f"It is busy: {evidence}{share}."
    reason = evidence if holds else "it was given a GPU and has not touched it"
    return f"It has been idle for {duration(row.idle_seconds)}: {reason}."
