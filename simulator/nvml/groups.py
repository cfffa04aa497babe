"""
Control groups of a simulated machine, and what the driver lets each of them have of a card.

This is what `library/groups.c` does, for processes that write their records from Python: both ask
and keep the same tables of the state file. Limits are set as on hardware, by NVML.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.nvml import layout
from simulator.nvml.layout import NO_LIMIT, LimitStatus, Memacct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simulator.nvml.file import StateFile

GROUP = "GPUFENCE_SIMULATOR_CGROUP"
"""The folder of the group that a process counts to, where that is not what the kernel says."""

ROOT = "GPUFENCE_SIMULATOR_ROOT"
"""1: the process counts as root for NVML; 0: it does not, even if it is."""

MOUNTED_AT = "/sys/fs/cgroup"
CONTROLLER = "dmem"
PROCESSES, TYPE, CONTROL = "cgroup.procs", "cgroup.type", "cgroup.subtree_control"
_TOP_LINE = "0::/"


class GroupTree:
    """
    A folder shaped like /sys/fs/cgroup, whose folders the library takes for control groups.

    Each turns the controller dmem on for those below it, as systemd and kubelet do for what they
    delegate; where a kernel has none, `memacct` is not dmem either.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        if not (root / PROCESSES).exists():
            self._make(root, top=True)

    def add(self, path: str) -> Path:
        """Make a group, and those above it, by its path in /proc/PID/cgroup; return its folder."""
        folder = self.root
        for name in path.strip("/").split("/"):
            folder /= name
            if not (folder / PROCESSES).exists():
                self._make(folder)
        return folder

    def remove(self, path: str) -> None:
        """Remove a group and those below it; those above it stay while anything else is in them."""
        folder = self.root / path.strip("/")
        shutil.rmtree(folder, ignore_errors=True)
        for above in folder.parents:
            if above == self.root or not above.is_relative_to(self.root):
                return
            if any(one.is_dir() for one in above.iterdir()):
                return
            shutil.rmtree(above, ignore_errors=True)

    def leave_out(self, path: str) -> None:
        """Turn the controller off for the groups below this one: a gap, as the driver calls it."""
        (self.root / path.strip("/") / CONTROL).write_text("cpu memory\n")

    @staticmethod
    def _make(folder: Path, *, top: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONTROL).write_text(f"cpu memory {CONTROLLER}\n")
        if not top:
            (folder / TYPE).write_text("domain\n")
        (folder / PROCESSES).write_text("")


@dataclass(frozen=True, slots=True)
class Limit:
    """What one group may have of one card, and what counts to it; no limit is `NO_LIMIT`."""

    group: str
    card: int
    soft: int
    hard: int
    used: int


class Groups:
    """The driver's side of control groups; `living` says which records of a card count."""

    def __init__(
        self, file: StateFile, living: Callable[[int], Iterator[layout.RecordLayout]]
    ) -> None:
        self._file = file
        self._living = living

    @property
    def memacct(self) -> Memacct:
        return Memacct(self._file.layout.memacct)

    @memacct.setter
    def memacct(self, kind: Memacct) -> None:
        """Load the driver anew, counting like this: what limits there were are forgotten."""
        for entry in self._file.layout.limits:
            entry.status = LimitStatus.FREE
        for record in self._file.layout.records:
            for charge in record.charges:
                charge.limit = 0
        self._file.layout.memacct = kind

    @property
    def totals_capped(self) -> bool:
        """Tell whether a limit is every total that there is, not that of cuMemGetInfo alone."""
        return bool(self._file.layout.totals_capped)

    @totals_capped.setter
    def totals_capped(self, on: bool) -> None:
        self._file.layout.totals_capped = int(on)

    def limits(self) -> Iterator[Limit]:
        for number, entry in enumerate(self._file.layout.limits):
            if self._is_valid(entry, entry.card):
                used = self._used(number, entry.card)
                yield Limit(entry.group.decode(), entry.card, entry.soft, entry.hard, used)

    def hand_on(self, old: Path, new: Path) -> None:
        """
        Let a new group have the entry of another that is gone: the kernel used its memory again.

        Only misc's map, which nothing is removed from, can be fooled so.
        """
        for entry in self._file.layout.limits:
            if entry.status == LimitStatus.SET and entry.group.decode() == str(old):
                entry.group = os.path.realpath(new).encode()

    def headroom(self, card: int, group: str) -> int:
        """Return how much more of a card a process of this group may take."""
        if not group or self.memacct is Memacct.OFF:
            return NO_LIMIT
        if self.memacct is Memacct.MISC:
            number = self._nearest(card, group)
            return NO_LIMIT if number is None else self._left(number, card)
        return min(
            (
                self._left(number, card)
                for number, entry in enumerate(self._file.layout.limits)
                if self._is_valid(entry, card) and is_within(group, entry.group.decode())
            ),
            default=NO_LIMIT,
        )

    def shown(self, card: int, group: str) -> tuple[int, int]:
        """Return the limit that a program of the group is shown, and what counts to it."""
        misc = self.memacct is Memacct.MISC
        if not group or self.memacct is Memacct.OFF or self._file.layout.cards[card].mig_mode == 1:
            return NO_LIMIT, 0
        while not (misc or is_counted_by_kernel(Path(group)) or group == "/"):
            group = str(Path(group).parent)
        number = self._nearest(card, group) if misc else self._find(card, group)
        if number is None or self._file.layout.limits[number].hard == NO_LIMIT:
            return NO_LIMIT, 0
        return self._file.layout.limits[number].hard, self._used(number, card)

    def charge(self, record: layout.RecordLayout, grown: int) -> None:
        """Note on misc what an allocation counts to; less than nothing gives back the newest."""
        if grown < 0:
            _discharge(record, -grown)
        if grown <= 0 or self.memacct is not Memacct.MISC or not record.group:
            return
        number = self._nearest(record.card, record.group.decode())
        if number is None:
            return
        kept = [(one.limit, one.bytes) for one in record.charges if one.limit]
        if kept and kept[-1][0] == number + 1:
            kept[-1] = (number + 1, kept[-1][1] + grown)
        else:
            kept.append((number + 1, grown))
        for place, (limit, amount) in enumerate(kept[-layout.MAX_CHARGES :]):
            record.charges[place].limit, record.charges[place].bytes = limit, amount

    def _is_valid(self, entry: layout.LimitLayout, card: int) -> bool:
        if entry.status != LimitStatus.SET or entry.card != card:
            return False
        if self.memacct is Memacct.MISC:
            return True
        try:
            return Path(entry.group.decode()).stat().st_ino == entry.inode
        except OSError:
            return False

    def _find(self, card: int, group: str) -> int | None:
        for number, entry in enumerate(self._file.layout.limits):
            if entry.group.decode() == group and self._is_valid(entry, card):
                return number
        return None

    def _nearest(self, card: int, group: str) -> int | None:
        for folder in (Path(group), *Path(group).parents):
            number = self._find(card, str(folder))
            if number is not None:
                return number
        return None

    def _left(self, number: int, card: int) -> int:
        hard: int = self._file.layout.limits[number].hard
        return NO_LIMIT if hard == NO_LIMIT else max(0, hard - self._used(number, card))

    def _used(self, number: int, card: int) -> int:
        if self.memacct is Memacct.MISC:
            return sum(
                charge.bytes
                for record in self._living(card)
                for charge in record.charges
                if charge.limit == number + 1
            )
        group = self._file.layout.limits[number].group.decode()
        return sum(
            record.memory
            for record in self._living(card)
            if is_within(record.group.decode(), group)
        )


@cache
def own_group() -> str:
    """Return the folder of this process's group; empty where it has none that counts."""
    named = os.environ.get(GROUP)
    if named is None:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next((line for line in lines if line.startswith(_TOP_LINE)), None)
        named = "" if own is None else MOUNTED_AT + own.removeprefix("0::")
    path = os.path.realpath(named) if named else ""
    fits = 0 < len(path.encode()) < layout.PATH_SIZE
    return path if fits and Path(path, PROCESSES).exists() else ""


def is_within(group: str, above: str) -> bool:
    return group == above or group.startswith(f"{above}/")


def is_counted_by_kernel(folder: Path) -> bool:
    """Tell whether a group has the controller's files: the group above it has turned it on."""
    if not (folder / TYPE).exists():
        return False
    try:
        return CONTROLLER in (folder.parent / CONTROL).read_text().split()
    except OSError:
        return False


def _discharge(record: layout.RecordLayout, freed: int) -> None:
    for charge in reversed(record.charges):
        if charge.limit and freed:
            part = min(freed, charge.bytes)
            charge.bytes -= part
            freed -= part
            charge.limit = charge.limit if charge.bytes else 0
