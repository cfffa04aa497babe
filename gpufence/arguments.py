"""How every program of ours reads its command line."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHOICE: Final = re.compile(
    r"invalid choice: '(?P<typed>[^']*)' \(choose from (?P<known>.*)\)", re.DOTALL
)
_UNKNOWN: Final = re.compile(r"unrecognized arguments: (?P<typed>--[-\w]+)")


class Parser(ArgumentParser):
    """Ends with 2 for every wrong argument, and names what may have been meant."""

    def error(self, message: str) -> NoReturn:
        super().error(f"{message}{self._hint(message)}")

    def options(self) -> Iterator[str]:
        """Yield what can be typed, those of its commands included."""
        for action in self._actions:
            yield from action.option_strings
            for command in action.choices.values() if isinstance(action.choices, dict) else ():
                yield from command.options()

    def _hint(self, message: str) -> str:
        typed, known = "", list[str]()
        if choice := _CHOICE.search(message):
            typed, known = choice["typed"], re.findall(r"[-\w]+", choice["known"])
        elif option := _UNKNOWN.search(message):
            typed, known = option["typed"], [*self.options()]
        near = get_close_matches(typed, known, n=1)
        return f"; did you mean {near[0]}?" if near else ""
