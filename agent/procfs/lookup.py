"""Whose a PID is, read so that neither a reused PID nor a process on its way out is mistaken."""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.clock import boottime
from agent.model.use import CpuTime, Occupant
from agent.procfs.parse import Stat, parse_cgroup, parse_stat

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from agent.model.use import Owner

MOST_REMEMBERED: Final = 2**15
"""More than 16 cards list with 300 pods of 60 processes each, which take 4 MiB."""
KEPT_SECONDS: Final = 60.0
"""A process for which nobody asks is forgotten after as long, or twice as long."""


class Remembered:
    """
    Owners by PID, in two generations: what is asked for passes into the younger one.

    Processes of one container share what names it, since there may be dozens.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._younger: dict[int, Occupant] = {}
        self._older: dict[int, Occupant] = {}
        self._owners: dict[Owner, Owner] = {}
        self._turned_at = 0.0

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)

    def get(self, pid: int) -> Occupant | None:
        found = self._younger.get(pid)
        if found is None and (found := self._older.pop(pid, None)) is not None:
            self._younger[pid] = found
        return found

    def put(self, occupant: Occupant) -> Occupant:
        """Remember a process, and return it as it is remembered."""
        owner = occupant.owner
        if owner is not None:
            occupant = occupant._replace(owner=self._owners.setdefault(owner, owner))
        self._older.pop(occupant.pid, None)
        self._younger[occupant.pid] = occupant
        return occupant

    def drop(self, pid: int) -> None:
        self._younger.pop(pid, None)
        self._older.pop(pid, None)

    def age(self, now: float) -> Collection[int]:
        """Forget those for which nobody asks, or all if they are too many; return who they were."""
        if len(self) > self._most:
            gone = {**self._older, **self._younger}
            self._older, self._younger = {}, {}
        elif now - self._turned_at >= KEPT_SECONDS:
            gone, self._older, self._younger = self._older, self._younger, {}
        else:
            return ()
        self._owners, self._turned_at = {}, now
        return gone.keys()


PROC: Final = "/proc"

_CHUNK = 4096
_MOST_BYTES = 256 * 1024  # cgroup v1 has some dozen lines of at most a page each
MOST_PINNED: Final = 512
"""Processes held by a file descriptor each, of which many containers may have 1024 open."""
MOST_THREADS: Final = 256
"""Threads that are looked at for one that lives; a process with more of them is taken for alive."""


class Lookup:
    """
    Looks processes up under one /proc.

    The start time is read before and after the cgroup; where the two differ, the PID has changed
    hands in between and is nobody's. An owner once known is kept for as long as the same process
    has the PID and is asked for, since no container can leave its pod; `look` asks the kernel
    again, and remembers nothing.

    A process lives while any of its threads does: whose first thread has ended is a zombie by its
    own line, and holds its memory all the same.
    """

    def __init__(
        self,
        root: Path | str = PROC,
        ticks_per_second: int = 0,
        most_remembered: int = MOST_REMEMBERED,
        most_pinned: int = MOST_PINNED,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._root = os.fspath(root)
        self._hertz = ticks_per_second or os.sysconf("SC_CLK_TCK")
        self._clock = clock
        self._known = Remembered(most_remembered)
        self._pins = Pins(most_pinned if _is_of_our_namespace(self._root) else 0)

    def occupants(self, pids: Iterable[int]) -> dict[int, Occupant]:
        """Return those of the processes that live and can be read."""
        for pid in self._known.age(self._clock()):
            self._pins.release(pid)
        self._forget_ended()
        occupants = ((pid, self._quickly(pid)) for pid in pids)
        return {pid: occupant for pid, occupant in occupants if occupant is not None}

    def look(self, pid: int) -> Occupant | None:
        """Return a process as the kernel describes it now; None if it is gone or was replaced."""
        self._pins.release(pid)
        self._known.drop(pid)
        return self._described(pid)

    def cpu_times(self, pids: Iterable[int]) -> dict[int, CpuTime]:
        """
        Return what those of the processes that can be read have used of the CPU.

        The clock of a process says it in one call where the line would have to be written, read and
        taken apart, but not of which process that has the PID: whose pins say after it that they
        have not ended had it all the time.
        """
        wanted = set(pids)
        clocks = {pid: cpu_clock(pid) for pid in wanted if self._holds(pid)}
        self._forget_ended()
        found = {}
        for pid in wanted:
            seconds, known = clocks.get(pid), self._known.get(pid)
            if seconds is not None and known is not None and pid in self._pins:
                found[pid] = CpuTime(known.started_ticks, seconds)
                continue
            text = self._read(pid, "stat")
            stat = None if text is None else parse_stat(text)
            if stat is not None:
                found[pid] = CpuTime(stat.started_ticks, stat.cpu_ticks / self._hertz)
        return found

    def _holds(self, pid: int) -> bool:
        """Return whether a process is pinned, or can be."""
        if pid in self._pins:
            return True
        known = self._known.get(pid)
        if known is None or self._pins.full:
            return False
        if not self._is_still(known):
            self._pins.release(pid)
        return pid in self._pins

    def _forget_ended(self) -> None:
        for pid in self._pins.ended():
            self._known.drop(pid)

    def _quickly(self, pid: int) -> Occupant | None:
        known = self._known.get(pid)
        if known is not None and (pid in self._pins or self._is_still(known)):
            return known
        occupant = self.look(pid)
        if occupant is None or occupant.owner is None or occupant.owner.container_id is None:
            return occupant
        return self._known.put(occupant)

    def _is_still(self, known: Occupant) -> bool:
        """
        Return whether a PID is the same process as before. It is pinned first: if it is, its end
        will be heard of, and nothing need be read again until then.
        """
        self._pins.add(known.pid)
        stat = self._stat(known.pid)
        return stat is not None and stat.started_ticks == known.started_ticks

    def _described(self, pid: int) -> Occupant | None:
        before = self._stat(pid)
        text = None if before is None else self._read(pid, "cgroup")
        if before is None or text is None:
            return None
        owner = parse_cgroup(text)
        if owner is None and before.gone:
            # Of a thread that has ended, cgroup v1 says that it is in none.
            text = self._read(pid, f"task/{self._living_thread(pid)}/cgroup")
            owner = None if text is None else parse_cgroup(text)
        after = self._stat(pid)
        if after is None or before.started_ticks != after.started_ticks:
            return None
        return Occupant(
            pid=pid,
            started_ticks=before.started_ticks,
            started_by=(before.started_ticks + 1) / self._hertz,
            owner=owner,
            command=before.command,
        )

    def _stat(self, pid: int) -> Stat | None:
        """Return what is said of a process, if it lives."""
        text = self._read(pid, "stat")
        stat = None if text is None else parse_stat(text)
        if stat is None or not stat.gone:
            return stat
        return stat if self._living_thread(pid) else None

    def _living_thread(self, pid: int) -> str:
        """Return a thread of a process whose first one has ended; nothing if all have."""
        with suppress(OSError), os.scandir(f"{self._root}/{pid}/task") as threads:
            for position, name in enumerate(islice((item.name for item in threads), MOST_THREADS)):
                text = self._read(pid, f"task/{name}/stat")
                stat = None if text is None else parse_stat(text)
                if (stat is not None and not stat.gone) or position == MOST_THREADS - 1:
                    return name
        return ""

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
            content = chunk = os.read(file, _CHUNK)
            while len(chunk) == _CHUNK and len(content) <= _MOST_BYTES:
                chunk = os.read(file, _CHUNK)
                content += chunk
        except OSError:
            return None
        finally:
            os.close(file)
        return None if len(content) > _MOST_BYTES else content.decode(errors="replace")


class Pins:
    """
    Processes held by a pidfd each, so that one call of the kernel tells which of them have ended.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._files: dict[int, int] = {}
        self._pids: dict[int, int] = {}
        self._poll = select.poll()

    def __contains__(self, pid: int) -> bool:
        return pid in self._files

    @property
    def full(self) -> bool:
        return len(self._files) >= self._most

    def add(self, pid: int) -> None:
        """Pin the process that has this PID now, if there is room and the kernel can."""
        if self.full:
            return
        try:
            file = os.pidfd_open(pid)
        except OSError:
            return
        self._files[pid] = file
        self._pids[file] = pid
        self._poll.register(file, select.POLLIN)

    def ended(self) -> list[int]:
        """Return the PIDs of those that have ended, and release them."""
        pids = [self._pids[file] for file, _ in self._poll.poll(0)]
        for pid in pids:
            self.release(pid)
        return pids

    def release(self, pid: int) -> None:
        file = self._files.pop(pid, None)
        if file is not None:
            del self._pids[file]
            self._poll.unregister(file)
            os.close(file)


def cpu_clock(pid: int) -> float | None:
    """Return what all threads of a process have used of the CPU, those that have ended included."""
    try:
        # The number of its clock as clock_getcpuclockid(3) would make it, were it in the library.
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return None


def _is_of_our_namespace(root: str) -> bool:
    """Return whether PIDs mean the same there as in the calls of this process."""
    return Path(root, "self").resolve().name == f"{os.getpid()}"
