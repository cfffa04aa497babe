"""
PURE. A snapshot as two tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.tables import UNKNOWN, mebibytes, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.snapshot import PodRow, Snapshot


def as_text(said: Snapshot) -> str:
    driver = f", driver {said.driver}" if said.driver else ""
    lines = [f"{said.node}, {said.at}{driver}, gpufence {said.version}\n"]
    if said.trouble:
        lines.append(f"no card can be read: {said.trouble}\n")
    if said.cards:
        lines += ["\n", table(_CARD_HEAD, _cards(said), right=(3, 4, 5, 6))]
        lines += ["\n", _processes(said)]
    lines += [f"card {row.index}: {row.trouble}\n" for row in said.cards if row.trouble]
    return "".join(lines)


_CARD_HEAD = ("CARD", "UUID", "MODEL", "TOTAL", "USED", "FREE", "RESERVED")
_PROCESS_HEAD = ("CARD", "PID", "USED", "NAMESPACE", "POD", "CONTAINER", "COMMAND")


def _cards(said: Snapshot) -> Iterator[tuple[str, ...]]:
    for row in said.cards:
        yield (
            str(row.index),
            row.uuid,
            row.model,
            mebibytes(row.total_bytes),
            mebibytes(row.used_bytes),
            mebibytes(row.free_bytes),
            mebibytes(row.reserved_bytes),
        )


def _processes(said: Snapshot) -> str:
    index = {row.uuid: row.index for row in said.cards}
    found = [row for pod in said.pods for row in _of_pod(pod, index)]
    for nobody in said.nobody:
        process = nobody.process
        used = process.used_bytes
        words = ("-", "no pod", "-", process.command or UNKNOWN)
        found.append((index[nobody.card], process.pid, used, words))
    if not found:
        return "No process holds memory of a card.\n"
    rows = [
        (str(card), str(pid), mebibytes(used), *words) for card, pid, used, words in sorted(found)
    ]
    return table(_PROCESS_HEAD, rows, right=(1, 2))


def _of_pod(
    pod: PodRow, index: dict[str, int]
) -> Iterator[tuple[int, int, int | None, tuple[str, ...]]]:
    for use in pod.uses:
        for process in use.processes:
            words = (pod.namespace or "-", pod.name or pod.uid, process.container, "-")
            yield index[use.card], process.pid, process.used_bytes, words
