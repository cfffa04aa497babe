"""A card that several pods share: each does what the script says, and those who watch may fail."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from agent.model.pod import pods_on_node
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import occupant
from tests.support.agent.watching import POLICY, Watched

STRANGER: Final = 9
"""The node's own process, which holds next to nothing."""
LONG_SECONDS: Final = 30.0


class Work(Enum):
    """What a pod truly does between two looks."""

    REST = auto()
    KERNELS = auto()
    LOADING = auto()
    COMPUTING = auto()
    CHILD = auto()  # a new process of it works, and stays
    PASSING = auto()  # a process of it comes, works and goes
    SILENT = auto()  # kernels of which the driver tells no process


class Fault(Enum):
    """What happens to those who watch a card."""

    NONE = auto()
    HOLE = auto()
    NO_ANSWER = auto()
    UNLISTED = auto()
    SLOW_LIST = auto()
    ZOMBIES = auto()
    MPS = auto()
    RESTART = auto()
    LONG_GAP = auto()
    SILENT = auto()  # the driver tells of no process, while the card is busy


NAMELESS: Final = frozenset({Fault.HOLE, Fault.RESTART, Fault.ZOMBIES, Fault.SILENT})
"""The answer does not name those who worked."""


class ScriptedCard:
    """
    `server` is the pod whose process is MPS's server where there is one, else the node's own is.
    """

    def __init__(self, server: str = "") -> None:
        self.watched = Watched()
        self.watched.living[STRANGER] = occupant(STRANGER, None, None)
        self.watched.holds[STRANGER] = MIB
        self._server = server
        self._pids: dict[str, list[int]] = {}
        self._last_pid = 100

    def start(self, name: str) -> None:
        """Start a pod of one process."""
        self._last_pid += 1
        self._pids[name] = [self._last_pid]
        self.watched.add(name, self._last_pid)

    def claim(self, name: str) -> None:
        """Start a pod that was given the card and has no process on it."""
        self._pids[name] = []
        self.watched.claim(name)

    def stop(self, name: str) -> None:
        for pid in self._pids.pop(name):
            self.watched.living.pop(pid, None)
            self.watched.holds.pop(pid, None)
        del self.watched.pods[name]
        self.watched.index = pods_on_node(self.watched.pods.values())

    def look(self, doing: Mapping[str, Work], fault: Fault, *, node_works: bool = False) -> None:
        """Let pods do what they do, the node's own process too, and look."""
        workers = {pid for name, work in doing.items() for pid in self._do(name, work)}
        workers |= {STRANGER} if node_works else set()
        percent = 80.0 if workers or Work.SILENT in doing.values() else 0.0
        watched, mps = self.watched, fault is Fault.MPS
        if fault is Fault.RESTART:
            watched.restart_agent()
        watched.answers = fault is not Fault.NO_ANSWER
        watched.listed = fault is not Fault.UNLISTED
        watched.slow = fault is Fault.SLOW_LIST
        watched.mps = {self._pids[self._server][0] if self._server else STRANGER} if mps else set()
        if workers and mps:
            workers = watched.mps  # whoever it works for
        watched.pass_(
            () if fault in NAMELESS else workers,
            percent=percent,
            seconds=LONG_SECONDS if fault is Fault.LONG_GAP else POLICY.interval_seconds,
            garbled=fault is Fault.ZOMBIES,
            hole=fault is Fault.HOLE,
        )

    def _do(self, name: str, work: Work) -> list[int]:
        """Return the processes that the driver may name."""
        card, pids = self.watched, self._pids[name]
        if work is Work.KERNELS:
            return pids[:1]
        if work is Work.LOADING:
            held = card.holds[pids[0]] or 0
            card.holds[pids[0]] = held + (64 * MIB if held < 2 * GIB else -64 * MIB)
        elif work is Work.COMPUTING:
            card.cpu[pids[0]] = card.cpu.get(pids[0], 0.0) + 1.5
        elif work in {Work.CHILD, Work.PASSING}:
            self._last_pid += 1
            if work is Work.CHILD:
                card.start(name, self._last_pid)
                card.holds[self._last_pid] = MIB
                pids.append(self._last_pid)
            return [self._last_pid]
        return []
