"""
PURE. What reading the commands, arguments and variables of one pod may take, whatever they say.

Steps and no clock: a pod is read alike on every machine, however busy that is. All readers of all
containers draw from the same budget, since a text can make another one, and that a third.
"""

from __future__ import annotations

STEPS = 8_192
"""A microsecond each, or little more; what real manifests start takes a few hundred."""

_CHARACTERS = 32  # that are looked at, or put together, in one step


class SpentError(Exception):
    """Raised for a pod that takes more to read than any is worth: the rest of it stays unread."""


class Budget:
    """So many steps; once they are used up, each further one raises `SpentError`."""

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps: one for each word, match or name that is about to be looked at."""
        self.left -= steps
        if self.left < 0:
            raise SpentError

    def read(self, characters: int) -> None:
        """Take the steps of a text that is about to be read, or made."""
        self.left -= 1 + characters // _CHARACTERS
        if self.left < 0:
            raise SpentError
