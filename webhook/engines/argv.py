"""
PURE. The words that a program gets, and where in a container's command and arguments each stands,
so that one of them can be changed there; with what a script has put into its variables, its lists
and its own arguments before, as far as its text says it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from webhook.engines.tools import ASSIGNMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.engines.launch import Budget
    from webhook.engines.shell import Word

_REFERENCE = re.compile(r"\$(?:\$|\(([^()\s$]+)\))")
_SHELL_REFERENCE = re.compile(
    r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\(([A-Za-z_][A-Za-z0-9_.-]*)\)"
    r"|\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^{}$`\"']*))?\})"
)
_DECLARES = frozenset(("export", "declare", "local", "readonly", "typeset"))
_GIVEN = ("$@", "${@}", "$*", "${*}")
_GIVEN_WITHIN = re.compile(r"\$(?:[@*]|\{[@*]\})")
_HARMLESS = re.compile(r"[\w\s./:=,@%+-]*", re.ASCII)


class Place(NamedTuple):
    """A piece of one item of `command` or `args`."""

    field: str
    item: int
    start: int
    end: int


class Arg(NamedTuple):
    """
    One word as its program gets it, as far as that can be told before anything runs.

    `raw` is what stands for it in the manifest, at `place`, with its quotes; `written` is the same
    without them, at `inner`. No places where the word comes from a variable or is put together.
    `exact` is False where it holds what only the running shell can tell, `sure` where a branch that
    is not taken leaves it out. `tail` is the place right behind a word of a script, where another
    can be put in; `gives` marks a word in which a script puts all that it was given itself.
    """

    text: str
    place: Place | None = None
    raw: str = ""
    inner: Place | None = None
    written: str = ""
    exact: bool = True
    sure: bool = True
    tail: Place | None = None
    gives: bool = False

    def after(self, length: int) -> Place | None:
        """Return where the text stands from so many letters on; None where that cannot be told."""
        head = self.text[:length]
        if self.inner is not None and self.written[:length] == head:
            return self.inner._replace(start=self.inner.start + length)
        if self.place is None or self.raw[:length] != head:
            return None
        return self.place._replace(start=self.place.start + length)


def read_items(
    command: Sequence[str], args: Sequence[str], variables: Mapping[str, str], budget: Budget
) -> list[Arg]:
    """
    Return the items of a container with what `$(NAME)` stands for in them, as far as it is known.
    """
    budget.spend(len(command) + len(args))
    return [
        _item(text, Place(field, number, 0, len(text)), variables, budget)
        for field, texts in (("command", command), ("args", args))
        for number, text in enumerate(texts)
    ]


def _item(text: str, place: Place, variables: Mapping[str, str], budget: Budget) -> Arg:
    budget.read(len(text))  # in each pass: a later one may find a flag of ours
    if "$(" not in text and "$$" not in text:
        return Arg(text, place, text, place, text)
    plain = "$$(" not in text

    def value(match: re.Match[str]) -> str:
        nonlocal plain
        if match[1] is None:
            return "$"
        found = variables.get(match[1])
        budget.read(len(found or ""))
        if found is None:
            return match[0]
        plain = plain and _HARMLESS.fullmatch(found) is not None
        return found

    expanded = _REFERENCE.sub(value, text)
    return Arg(expanded, place, text, place if plain else None, text if plain else "")


def from_shell(
    words: Sequence[Word],
    source: Arg,
    variables: Mapping[str, str],
    lists: Mapping[str, Sequence[Arg]],
    budget: Budget,
) -> list[Arg]:
    """
    Return the words of a script's command as its program gets them; `lists` are what "$@" and its
    like stand for.
    """
    args: list[Arg] = []
    for word in words:
        if word.text in lists:
            listed = lists[word.text]
            budget.spend(1 + len(listed))
            budget.read(sum([len(each.text) for each in listed]))
            args += listed
        else:
            args += _from_word(word, source, variables, lists, budget)
    return args


def _from_word(
    word: Word,
    source: Arg,
    variables: Mapping[str, str],
    lists: Mapping[str, Sequence[Arg]],
    budget: Budget,
) -> Iterator[Arg]:
    place = inner = tail = None
    raw = written = ""
    if source.inner is not None:
        outer = source.inner
        raw = source.written[word.start : word.end]
        place = outer._replace(start=outer.start + word.start, end=outer.start + word.end)
        tail = place._replace(start=place.end)
        quotes = (len(raw) - len(word.text)) // 2
        if raw[quotes : len(raw) - quotes] == word.text and quotes in (0, 1):
            written = word.text
            inner = place._replace(start=place.start + quotes, end=place.end - quotes)
        elif raw[:1] == raw[-1:] == '"' and raw[1:-1].replace("\\\n", "") == word.text:
            written = raw[1:-1]  # with its continued lines, which read the same
            inner = place._replace(start=place.start + 1, end=place.end - 1)
    text, gives = word.text, False
    if not word.exact and (found := _GIVEN_WITHIN.search(text)) is not None:
        gives = True
        listed = lists.get(found[0], ())
        budget.spend(len(listed))
        budget.read(sum([len(each.text) for each in listed]))
        given = " ".join([each.text for each in listed])
        text = f"{text[: found.start()]}{given}{text[found.end() :]}"
    budget.read(len(text))
    if "$" in text:
        text = resolved(text, variables, budget, quoted=word.exact)
    exact = word.exact or not ("$" in text or "`" in text)
    parts = text.split() if word.split and exact else [text]
    budget.spend(len(parts))
    if len(parts) == 1:
        yield Arg(parts[0], place, raw, inner, written, exact, tail=tail, gives=gives)
    else:
        yield from (Arg(part) for part in parts[:-1])
        yield from (Arg(part, tail=tail) for part in parts[-1:])


def resolved(
    text: str, variables: Mapping[str, str], budget: Budget, *, quoted: bool = False
) -> str:
    """
    Put in the values of variables that are known, and the defaults of those that are not; within
    quotes that no shell looks into, only what the kubelet puts in.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        found = variables.get(name) if match[2] or not quoted else match[0]
        if found is None or name.startswith(names.SETTING_PREFIX):
            found = match[4]
        budget.read(len(found or ""))
        return match[0] if found is None else found

    return _SHELL_REFERENCE.sub(value, text)


class Assignments:
    """
    One script's. `variables` are shared with the scripts around it, `given` are the words that it
    sees as $0, $1 and so on.

    `handed` tells whether what is appended to `given` is among the script's own arguments.
    """

    def __init__(
        self,
        source: Arg,
        variables: dict[str, str],
        given: Sequence[Arg],
        budget: Budget,
        around: Assignments | None = None,
    ) -> None:
        """Begin a script; one that the script `around` it puts together sees what that does."""
        self.source = source
        self.variables = variables
        self.budget = budget
        words = around.lists[_GIVEN[0]] if around is not None else tuple(given[1:])
        self.lists: dict[str, Sequence[Arg]] = dict.fromkeys(_GIVEN, words)
        # Where nothing is given, what is appended becomes $0.
        self.handed: bool = around.handed if around is not None else bool(given)

    def args(self, words: Sequence[Word], *, branch: bool) -> Sequence[Arg]:
        """
        Return a command's words as its program gets them, without the lists that it assigns, which
        are remembered; `branch` tells whether it may be left out.
        """
        args: list[Arg] = []
        for word in words:
            items = (word,) if word.items is None else word.items
            found = from_shell(items, self.source, self.variables, self.lists, self.budget)
            if word.items is None:
                args += found
            else:
                if branch:
                    found = [arg._replace(sure=False) for arg in found]
                self._keep_list(word.text, found)
        return args

    def hands_on(self, words: Sequence[Word], args: Sequence[Arg]) -> bool:
        """Return whether a command gets what is appended to the script's own arguments."""
        return self.handed and (
            any(word.text in _GIVEN for word in words) or any(arg.gives for arg in args)
        )

    def assigned(self, args: Sequence[Arg]) -> bool:
        """Remember what a command assigns; return whether it does nothing else."""
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
                self.budget.read(len(value))
            if arg.exact:
                self.variables[name] = value
            else:
                self.variables.pop(name, None)
        return True

    def give(self, args: Sequence[Arg], *, handed_on: bool) -> None:
        """Remember what `set --` and `shift` make of the script's own arguments."""
        given = self.lists[_GIVEN[0]]
        self.budget.read(len(given))
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
            self.budget.read(len(items))
        self.lists.update(dict.fromkeys(keys, tuple(items)))
