"""
What can go wrong with a simulated card.

    SimulatorError         anything below; the message says what to do
      LibraryError         the library cannot be built: no C compiler, no cache folder
      StateFileError       the state file is not there, not ours or from another version
      CardFullError        an allocation does not fit: out of memory, as on hardware
      TableFullError       the state file has no place left for one more record or fault
"""

from __future__ import annotations

from gpufence.errors import GpufenceError
from gpufence.quantity import MIB


class SimulatorError(GpufenceError):
    """Covers every way in which the simulated card can fail its caller."""


class LibraryError(SimulatorError):
    """Raised when the library can neither be found in the cache nor built."""


class StateFileError(SimulatorError):
    """Raised when a path names no state file that this version can read."""


class CardFullError(SimulatorError):
    """Raised for an allocation that the card has no room for; nothing has changed then."""

    def __init__(self, wanted: int, free: int, total: int) -> None:
        super().__init__(
            f"out of memory: {wanted // MIB} MiB wanted, {free // MIB} MiB of {total // MIB} free"
        )
        self.wanted = wanted
        self.free = free
        self.total = total


class TableFullError(SimulatorError):
    """Raised when the state file has no place for one more of something."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"the state file holds at most {most} {what}; remove some first")
