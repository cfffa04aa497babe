"""PURE. How many places of a terminal a line takes: colours take none, letters of East Asia two."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_COLOURED: Final = re.compile(r"(\x1b\[[0-9;]*m)|(.)", re.DOTALL)
_PLAIN: Final = "\x1b[0m"


def width_of(line: str) -> int:
    """Return how many places a line takes that may have colours."""
    return sum(_places(match[2]) for match in _COLOURED.finditer(line) if match[2])


def clipped(line: str, width: int) -> str:
    """Cut a line where it would leave the terminal."""
    parts, room = [], width
    for match in _COLOURED.finditer(line):
        if match[1]:
            parts.append(match[1])
            continue
        room -= _places(match[2])
        if room < 0:
            return "".join((*parts, _PLAIN if "\x1b" in line else ""))
        parts.append(match[2])
    return line


def _places(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
