"""
Whose a PID is, read so that neither a reused PID nor a process on its way out is mistaken.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from agent.model.use import Occupant
from agent.procfs.cgroup import parse_cgroup
from agent.procfs.stat import Stat, parse_stat

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PROC: Final = "/proc"

_CHUNK = 4096
_MOST_BYTES = 256 * 1024  # cgroup v1 has some dozen lines of at most a page each
MOST_REMEMBERED: Final = 8192
"""
Processes whose owners are kept: more than the cards of a node can list.
"""


class Lookup:
    """
    Looks processes up under one /proc.

    The start time is read before and after the cgroup; where the two differ, the PID has changed
    hands in between and is nobody's. An owner once known is kept for as long as the same process
    has the PID, since no container can leave its pod; `look` asks the kernel again.
    """

    def __init__(
        self,
        root: Path | str = PROC,
        ticks_per_second: int = 0,
        most_remembered: int = MOST_REMEMBERED,
    ) -> None:
        self._root = os.fspath(root)
        self._hertz = ticks_per_second or os.sysconf("SC_CLK_TCK")
        self._most_remembered = most_remembered
        self._known: dict[int, Occupant] = {}

    def occupants(self, pids: Iterable[int]) -> dict[int, Occupant]:
        """
        Return those of the processes that live and can be read.
        """
        if len(self._known) > self._most_remembered:
            self._known.clear()
        found = ((pid, self._quickly(pid)) for pid in pids)
        return {pid: occupant for pid, occupant in found if occupant is not None}

    def look(self, pid: int) -> Occupant | None:
        """
        Return a process as the kernel describes it now; None if it is gone or was replaced.
        """
        occupant = self._described(pid)
        if occupant is None or occupant.owner is None or occupant.owner.container_id is None:
            self._known.pop(pid, None)
        else:
            self._known[pid] = occupant
        return occupant

    def _quickly(self, pid: int) -> Occupant | None:
        known = self._known.get(pid)
        if known is not None:
            stat = self._stat(pid)
            if stat is not None and stat.started_ticks == known.started_ticks:
                return known
        return self.look(pid)

    def _described(self, pid: int) -> Occupant | None:
        before = self._stat(pid)
        text = None if before is None else self._read(pid, "cgroup")
        after = self._stat(pid)
        if before is None or text is None or after is None:
            return None
        if before.started_ticks != after.started_ticks:
            return None
        return Occupant(
            pid=pid,
            started_ticks=before.started_ticks,
            started_by=(before.started_ticks + 1) / self._hertz,
            owner=parse_cgroup(text),
            command=before.command,
        )

    def _stat(self, pid: int) -> Stat | None:
        text = self._read(pid, "stat")
        stat = None if text is None else parse_stat(text)
        return None if stat is None or stat.gone else stat

    def _read(self, pid: int, name: str) -> str | None:
        """
        Read one file whole; a process may vanish before the open and during the read.

        The kernel writes either of them in one piece, so that a read that is short is the last.
        """
        try:
            file = os.open(f"{self._root}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            found = chunk = os.read(file, _CHUNK)
            while len(chunk) == _CHUNK and len(found) <= _MOST_BYTES:
                chunk = os.read(file, _CHUNK)
                found += chunk
        except OSError:
            return None
        finally:
            os.close(file)
        return None if len(found) > _MOST_BYTES else found.decode(errors="replace")
