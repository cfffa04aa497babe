"""
PURE. What a script has put into its variables, its lists and its own arguments up to a command, as
far as its text says it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.frameworks.argv import from_shell
from webhook.frameworks.shell import LONGEST_SCRIPT
from webhook.frameworks.wrappers import ASSIGNMENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.frameworks.argv import Arg
    from webhook.frameworks.shell import Word

_DECLARES = frozenset(("export", "declare", "local", "readonly", "typeset"))
_GIVEN = ("$@", "${@}", "$*", "${*}")
_MOST_WORDS = 8192  # of all commands together, with what lists stand for in each
_LONGEST_LIST = 256


class Assignments:
    """
    One script's. `variables` are shared with the scripts around it, `given` are the words that it
    sees as $0, $1 and so on.

    `handed` tells whether what is appended to `given` is among the script's own arguments, `clear`
    whether all of its lists are known.
    """

    def __init__(self, source: Arg, variables: dict[str, str], given: Sequence[Arg]) -> None:
        self.source = source
        self.variables = variables
        self.lists: dict[str, Sequence[Arg]] = dict.fromkeys(_GIVEN, tuple(given[1:]))
        self.handed = bool(given)  # else it becomes $0
        self.clear = True
        self._left = _MOST_WORDS

    def args(self, words: Sequence[Word], *, branch: bool) -> Sequence[Arg]:
        """
        Return a command's words as its program gets them, without the lists that it assigns, which
        are remembered; `branch` tells whether it may be left out.
        """
        args: list[Arg] = []
        for word in words:
            if self._left < 0:
                self.clear = False
                return []
            items = (word,) if word.items is None else word.items
            found = from_shell(items, self.source, self.variables, self.lists)
            self._left -= len(found)
            if word.items is None:
                args += found
            else:
                if branch:
                    found = [arg._replace(sure=False) for arg in found]
                self._keep_list(word.text, found)
        return args

    def hands_on(self, words: Sequence[Word]) -> bool:
        """
        Return whether a command gets what is appended to the script's own arguments.
        """
        return self.handed and any(word.text in _GIVEN for word in words)

    def assigned(self, args: Sequence[Arg]) -> bool:
        """
        Remember what a command assigns; return whether it does nothing else.
        """
        rest = args[1:] if args[0].text in _DECLARES else args
        matches = [ASSIGNMENT.fullmatch(arg.text) for arg in rest]
        if not all(matches) and args[0].text not in _DECLARES:
            return False
        for arg, match in zip(rest, matches, strict=True):
            if match is None:
                continue
            name, value = match[1], match[2]
            if arg.text[len(name)] == "+":
                value = self.variables.get(name, "") + value
            if arg.exact and len(value) <= LONGEST_SCRIPT:
                self.variables[name] = value
            else:
                self.variables.pop(name, None)
        return True

    def give(self, args: Sequence[Arg], *, handed_on: bool) -> None:
        """
        Remember what `set --` and `shift` make of the script's own arguments.
        """
        given = self.lists[_GIVEN[0]]
        if args[0].text == "shift":
            self.handed = self.handed and len(args) == 1 and bool(given)
            self.lists.update(dict.fromkeys(_GIVEN, given[1:]))
        elif args[0].text == "set":
            at = next((place for place, arg in enumerate(args) if arg.text == "--"), None)
            if at is not None:
                self.handed = handed_on
                self.lists.update(dict.fromkeys(_GIVEN, tuple(args[at + 1 :])))

    def _keep_list(self, text: str, items: list[Arg]) -> None:
        name = text.rstrip("+=")
        keys = (f"${{{name}[@]}}", f"${{{name}[*]}}")
        if text.endswith("+="):
            items = [*self.lists.get(keys[0], ()), *items]
        self.clear = self.clear and len(items) <= _LONGEST_LIST
        self.lists.update(dict.fromkeys(keys, tuple(items[:_LONGEST_LIST])))
