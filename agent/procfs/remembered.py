"""PURE. Processes whose owners are known, for as long as somebody asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent.model.use import Occupant, Owner

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
