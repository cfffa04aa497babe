"""
PURE. `inspect`: what one agent sees, as tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_gpufence.outcomes import verdict
from kubectl_gpufence.scene import Scene, card_of, is_stale
from kubectl_gpufence.table import Cell, Column, Look, Tone, coloured, table, wrapped
from kubectl_gpufence.top.cards import cards_table
from kubectl_gpufence.top.cards import lines as card_lines
from kubectl_gpufence.words import NOT_THERE, UNKNOWN, allowed, duration, held, safe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.snapshot import PodRow, ProcessRow, Snapshot
    from kubectl_gpufence.scene import Agent

_POD_COLUMNS = (
    Column("POD", shrinks=True),
    Column("MODE"),
    Column("CARD", right=True),
    Column("LIMIT", right=True),
    Column("TOLD", right=True),
    Column("USED", right=True),
    Column("VERDICT"),
)
_PROCESS_COLUMNS = (
    Column("CARD", right=True),
    Column("PID", right=True),
    Column("USED", right=True),
    Column("WHOSE", shrinks=True),
)


def inspection(agent: Agent, snapshot: Snapshot, look: Look) -> list[str]:
    """
    Show everything in an agent's snapshot.
    """
    cards = card_lines(Scene(agents={agent.node: agent}))
    pods = [row for pod in snapshot.pods for row in _pod_rows(pod, snapshot)]
    return [
        *_head(agent, snapshot, look),
        *_chapter("CARDS", cards_table(cards, look, wide=False), look),
        *_chapter("PODS", table(_POD_COLUMNS, pods, look), look),
        *_chapter("PROCESSES", table(_PROCESS_COLUMNS, _process_rows(snapshot), look), look),
    ]


def _chapter(title: str, lines: list[str], look: Look) -> list[str]:
    """
    Put a title above a table, or say that it has no rows.
    """
    return ["", coloured(title, Tone.STRONG, look), *(lines if len(lines) > 1 else ["none"])]


def _head(agent: Agent, said: Snapshot, look: Look) -> Iterator[str]:
    driver = f", driver {safe(said.driver)}" if said.driver else ""
    yield f"node {safe(said.node)}: agent {safe(agent.pod)} {safe(said.version)}{driver}"
    yield f"  since {safe(said.started)}, at {safe(said.at)}, {_age(said)}"
    api = "answers" if said.fresh else "is out of reach: nobody is evicted"
    yield f"  highest mode allowed: {safe(said.highest) or UNKNOWN}; the API server {api}"
    for word, text in (("brake", said.brake), ("trouble", said.trouble)):
        if text:
            yield from wrapped(
                coloured(f"{word}: {safe(text)}", Tone.BAD, look), "    ", look, first="  "
            )


def _age(said: Snapshot) -> str:
    if said.stale_seconds is None:
        return "nothing measured yet"
    age = duration(said.stale_seconds)
    return f"stale: the last sample is {age} old" if is_stale(said) else f"sample {age} old"


def _pod_rows(pod: PodRow, snapshot: Snapshot) -> Iterator[list[Cell]]:
    name = Cell(safe(f"{pod.namespace}/{pod.name}"))
    mode = Cell(safe(pod.mode) or NOT_THERE)
    for use in pod.uses:
        yield [
            name,
            mode,
            Cell(_index(snapshot, use.card)),
            Cell(allowed(use.limit_bytes)),
            Cell(allowed(use.allowance_bytes)),
            Cell(held(use.used_bytes)),
            verdict(pod, use),
        ]
    if not pod.uses:
        rest = [Cell(NOT_THERE) for _ in range(4)]
        yield [name, mode, *rest, Cell("terminating" if pod.terminating else "idle", Tone.FAINT)]


def _process_rows(snapshot: Snapshot) -> Iterator[list[Cell]]:
    for pod in snapshot.pods:
        for use in pod.uses:
            for process in use.processes:
                whose = f"{pod.namespace}/{pod.name} {process.container}"
                yield _process(snapshot, use.card, process, Cell(safe(whose.strip())))
    for row in snapshot.nobody:
        command = safe(row.process.command) or "unknown command"
        yield _process(snapshot, row.card, row.process, Cell(f"nobody's: {command}", Tone.WARN))


def _process(snapshot: Snapshot, card: str, process: ProcessRow, whose: Cell) -> list[Cell]:
    used = Cell(held(process.used_bytes))
    return [Cell(_index(snapshot, card)), Cell(str(process.pid)), used, whose]


def _index(snapshot: Snapshot, uuid: str) -> str:
    card = card_of(snapshot, uuid)
    return UNKNOWN if card is None else str(card.index)
