"""
PURE. What its agent measures of the pod, and what will become of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.mode import MODES
from kubectl_gpufence.outcomes import verdict, what_follows
from kubectl_gpufence.scene import card_of, is_stale
from kubectl_gpufence.table import bar, coloured, wrapped
from kubectl_gpufence.words import UNKNOWN, allowed, duration, held, safe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.snapshot import CardRow, PodRow, Snapshot, UseRow
    from kubectl_gpufence.explain.story import Story
    from kubectl_gpufence.table import Look


def measured(story: Story, look: Look) -> Iterator[str]:
    """
    Tell what the pod holds on each card, process by process, or why nobody knows.
    """
    snapshot, row = story.snapshot, story.row
    text = _missing(story)
    if snapshot is None or row is None:
        yield from wrapped(safe(text), "    ", look, first="  ")
        return
    age = snapshot.stale_seconds
    if is_stale(snapshot):
        old = (
            "nothing was ever measured"
            if age is None
            else f"the last sample is {duration(age)} old"
        )
        yield from wrapped(
            f"{old}: {safe(snapshot.trouble) or 'see its log'}", "    ", look, first="  "
        )
    for use in row.uses:
        yield from _use(row, use, snapshot, look)
    if not row.uses:
        yield "  It holds no memory on any card."


def follows(story: Story) -> Iterator[str]:
    """
    Say what will become of the pod on each card, and what holds that back.
    """
    snapshot, row = story.snapshot, story.row
    if snapshot is None or row is None:
        return
    for use in row.uses:
        where = f"card {_index(card_of(snapshot, use.card))}: " if len(row.uses) > 1 else ""
        yield where + what_follows(row, use)
    if story.mode in MODES and row.mode in MODES[: MODES.index(story.mode)]:
        yield (
            f"The namespace asks for mode {story.mode}, the operator's kill switch allows no more "
            f"than {row.mode}."
        )
    if snapshot.brake and row.mode:
        yield f"Nobody on this node is evicted at the moment: {snapshot.brake}."
    if not snapshot.fresh:
        yield "The agent cannot reach the API server: nobody on this node is evicted."


def _missing(story: Story) -> str:
    """
    Say why nothing is measured.
    """
    if not story.pod.node:
        return "Nothing: no node has been chosen yet."
    if story.agent is None:
        return f"Unknown: {story.no_agent or f'no agent runs on node {story.pod.node}'}."
    if story.agent.snapshot is None:
        return f"Unknown: {story.agent.trouble}."
    return "Nothing: the agent does not know the pod, or it is not fenced and holds no GPU memory."


def _use(row: PodRow, use: UseRow, snapshot: Snapshot, look: Look) -> Iterator[str]:
    card = card_of(snapshot, use.card)
    share = bar(use.used_bytes, use.limit_bytes, look)
    shown = coloured(share.text, share.tone, look)
    state = verdict(row, use)
    model = f", {safe(card.model)} of {allowed(card.total_bytes)}" if card else ""
    yield f"  card {_index(card)} ({safe(use.card)}{model})"
    yield (
        f"    {held(use.used_bytes)} of {allowed(use.limit_bytes, none='no limit')}  {shown}  "
        f"{coloured(state.text, state.tone, look)}"
    )
    for process in use.processes:
        where = f" in container {safe(process.container)}" if process.container else ""
        yield f"    PID {process.pid}{where}: {held(process.used_bytes)}"
    if card is not None:
        free = allowed(card.free_bytes, none=UNKNOWN)
        yield f"    the card has {free} left, its limits add up to {held(card.committed_bytes)}"
    if row.undeclared:
        yield from wrapped(f"no limit: {safe(row.undeclared)}", "      ", look, first="    ")


def _index(card: CardRow | None) -> str:
    return UNKNOWN if card is None else str(card.index)
