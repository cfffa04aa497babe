"""
PURE. The agent's verdicts in words: how a pod stands, and what will become of it.

The keys are the words of `/v1/snapshot`. An agent newer than this plugin may know others; those are
shown as they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence.mode import Mode
from kubectl_gpufence.table import Cell, Tone
from kubectl_gpufence.words import duration, safe

if TYPE_CHECKING:
    from gpufence.snapshot import PodRow, UseRow


class Meaning(NamedTuple):
    """
    `short` stands in tables, `follows` tells what will happen.
    """

    short: str
    tone: Tone
    follows: str


_EVICTED_SOON = "It is evicted unless it gives memory back."

MEANINGS = {
    "": Meaning("not fenced", Tone.FAINT, "Its namespace has no mode, so nobody judges it."),
    "idle": Meaning("idle", Tone.FAINT, "It holds no GPU memory. Nothing happens."),
    "unknown": Meaning("unknown", Tone.WARN, "Its use cannot be read, so nobody judges it."),
    "undeclared": Meaning(
        "undeclared",
        Tone.WARN,
        "Nothing says what it may hold: it is shown and reported, never evicted.",
    ),
    "within": Meaning("within", Tone.GOOD, "It is within its limit. Nothing happens."),
    "unconfirmed": Meaning(
        "unconfirmed",
        Tone.WARN,
        "Only processes that a single list has shown are over; the next list decides.",
    ),
    "tolerated": Meaning(
        "tolerated",
        Tone.WARN,
        "It is over its limit by less than the margin for evictions. "
        "It stays, and an event says so.",
    ),
    "not renewed": Meaning(
        "not renewed", Tone.WARN, "It was over in an earlier list; the next list decides."
    ),
    "mps": Meaning(
        "on MPS", Tone.WARN, "Clients of MPS cannot be told apart: the card is only reported on."
    ),
    "not enforced": Meaning(
        "not enforced",
        Tone.WARN,
        "Its limit is only implied by the card's settings, and its namespace did not ask for "
        "implied limits to be enforced. It stays.",
    ),
    "exempt": Meaning("exempt", Tone.WARN, "It is never evicted, whatever it holds."),
    "only when short": Meaning(
        "if short",
        Tone.WARN,
        "It is over, and evicted only once the card runs short of memory for others: the operator "
        "chose so.",
    ),
    "uninjected": Meaning(
        "if short",
        Tone.WARN,
        "The webhook never saw it, so it is evicted only if that cures a shortage of the card.",
    ),
    "grace": Meaning(
        "starting", Tone.WARN, "It has just started and is over its limit. " + _EVICTED_SOON
    ),
    "holding": Meaning("over", Tone.BAD, "It is over its limit. " + _EVICTED_SOON),
    "would evict": Meaning(
        "would evict", Tone.BAD, "In mode evict it would be evicted now; in this mode it stays."
    ),
    "terminating": Meaning("terminating", Tone.FAINT, "It is on its way out already."),
    "braked": Meaning(
        "braked", Tone.BAD, "It would be evicted now, but a brake holds all evictions back."
    ),
    "backing off": Meaning(
        "refused", Tone.BAD, "Its eviction was refused a moment ago and is tried again."
    ),
    "queued": Meaning(
        "queued", Tone.BAD, "It will be evicted; another pod on the card goes first."
    ),
    "stuck": Meaning(
        "stuck", Tone.BAD, "It is terminating, does not end, and still holds the memory."
    ),
    "evict": Meaning("evicting", Tone.BAD, "It is being evicted now."),
}
_TIMED = frozenset({"holding", "grace"})


def verdict(pod: PodRow, use: UseRow) -> Cell:
    """
    Say in a table's cell how a pod stands on a card, since when, and what is due when.
    """
    known = MEANINGS.get(use.outcome)
    text = known.short if known else safe(use.outcome)
    if use.over_seconds >= 1:
        text += f" {duration(use.over_seconds)}"
    if use.due_seconds is not None and use.outcome in _TIMED:
        verb = "evict" if pod.mode == str(Mode.EVICT) else "due"
        text += f", {verb} in {duration(use.due_seconds)}"
    return Cell(text, known.tone if known else Tone.PLAIN)


def what_follows(pod: PodRow, use: UseRow) -> str:
    """
    Say in sentences what will become of a pod.
    """
    known = MEANINGS.get(use.outcome)
    if known is None:
        return f'Its agent says "{safe(use.outcome)}", which this plugin does not know: upgrade it.'
    text = known.follows
    evicts = pod.mode == str(Mode.EVICT)
    if use.outcome in _TIMED and not evicts:
        text = f"It is over its limit; in mode {safe(pod.mode) or 'none'} it stays."
    if use.outcome in _TIMED and evicts and use.due_seconds is not None:
        text += f" That is due in {duration(use.due_seconds)} of further use over the limit."
    return text
