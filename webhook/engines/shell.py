"""
PURE. The words of a shell's command line, each with the place where it stands in the text.

No shell: nothing is expanded, nothing is run. What a word would become is told only as far as the
text itself says it, and a text that cannot be followed to its end says so. One pass from left to
right, without recursion, which takes its steps from a budget.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from webhook.engines.launch import Budget

# Possessive, so that no run of blanks, quotes or comments is gone through again, or remembered.
_BLANKS = re.compile(r"(?:[ \t\r]++|\\\n)++")
_SEPARATOR = re.compile(r"\n|;;?&?|&&|\|\|?&?|&|[()]")
_BARE = re.compile(r"[^\s\"'\\$`;&|()<>]+")
_TOKEN = re.compile(
    rf"(?P<blanks>{_BLANKS.pattern})"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<array>[A-Za-z_][A-Za-z0-9_]*\+?=\()"
    r"|(?P<redirection>[0-9]*(?:<<<|<<-?|<>|>>|>\||[<>]&?(?!\())|&>>?)"
    rf"|(?P<separator>{_SEPARATOR.pattern})"
    rf"|(?P<plain>{_BARE.pattern})(?=[\s;&|()<>]|\Z)"
)
_GAP = re.compile(r"(?:[ \t\r\n]++|\\\n|#[^\n]*+)*+")
_ANSI = re.compile(r"\$'((?:[^'\\]++|\\.)*+)'", re.DOTALL)
_DOLLAR = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_SPECIAL = re.compile(r"[\"'\\`(){}]|\$[({]|(?<=[\s;(])#")
_ESCAPED = re.compile(r"\\([\"\\$`\n])")
_EXPANDED = re.compile(r"(?<!\\)(?:\\\\)*[$`]")
_CLOSING = {"$(": ")", "<(": ")", ">(": ")", "${": "}", "(": ")", '"': '"', "`": "`"}


class Word(NamedTuple):
    """
    One word: `text` without its quotes, `start` and `end` in the source.

    `exact` is False where the shell would put something else in its place; `text` then holds the
    expansion as it is written. `split` marks an expansion outside of quotes, which may become
    several words. `items` are those of a list that is assigned, `text` is what stands before it.
    """

    text: str
    start: int
    end: int
    exact: bool = True
    split: bool = False
    items: tuple[Word, ...] | None = None


class Script(NamedTuple):
    """
    The simple commands of a text in order, each as its words; redirections and comments left out.

    `clear` is False where the rest of the text could not be followed. `fed` are the positions of
    commands that read a here-document, whose text is left out as well, `chained` those of commands
    that are run as the one before them has ended well, or badly.
    """

    commands: list[list[Word]]
    clear: bool
    fed: frozenset[int] = frozenset()
    chained: frozenset[int] = frozenset()


class _UnclosedError(Exception):
    """Raised within this module for a quote or bracket without its other half."""


def read_script(source: str, budget: Budget) -> Script:
    """Take a text apart into simple commands."""
    budget.read(len(source))
    reader = _Scanner(source, budget)
    clear = True
    try:
        reader.read()
    except _UnclosedError:
        clear = False
    return Script(reader.commands, clear, frozenset(reader.fed), frozenset(reader.chained))


class _Scanner:
    """One pass over a text."""

    def __init__(self, source: str, budget: Budget) -> None:
        self.source = source
        self.budget = budget
        self.at = 0
        self.commands: list[list[Word]] = []
        self.fed: set[int] = set()
        self.chained: set[int] = set()
        self._words: list[Word] = []
        self._documents: list[tuple[str, bool]] = []

    def read(self) -> None:
        source = self.source
        while self.at < len(source):
            self.budget.spend(1)
            found = _TOKEN.match(source, self.at)
            if found is None:
                self._words.append(self._word())
            else:
                self._read_token(found, found.lastgroup)
        self._end_command()

    def _read_token(self, found: re.Match[str], kind: str | None) -> None:
        self.at = found.end()
        if kind == "plain":
            self._words.append(Word(found[0], found.start(), self.at))
        elif kind == "array":
            self._words.append(self._array(found))
        elif kind == "redirection":
            self._redirect(found[0])
        elif kind == "separator":
            self._end_command()
            if found[0] in ("&&", "||"):
                self.chained.add(len(self.commands))
            if found[0] == "\n":
                self._skip_documents()

    def _array(self, found: re.Match[str]) -> Word:
        """Read the words of a list up to its bracket."""
        items: list[Word] = []
        while True:
            gap = _GAP.match(self.source, self.at)
            self.at = gap.end() if gap else self.at
            if self.source.startswith(")", self.at):
                self.at += 1
                return Word(found[0][:-1], found.start(), self.at, items=tuple(items))
            word = self._word()
            if word.end == word.start:
                raise _UnclosedError
            items.append(word)

    def _end_command(self) -> None:
        if self._words:
            self.commands.append(self._words)
            self._words = []

    def _redirect(self, operator: str) -> None:
        """Leave a redirection out with its target; note where a here-document begins."""
        blanks = _BLANKS.match(self.source, self.at)
        self.at = blanks.end() if blanks else self.at
        if self.at >= len(self.source) or _SEPARATOR.match(self.source, self.at):
            raise _UnclosedError
        target = self._word()
        text = operator.lstrip("0123456789")
        if text in ("<<", "<<-"):
            self._documents.append((target.text, text == "<<-"))
        if text.startswith("<<"):
            self.fed.add(len(self.commands))

    def _skip_documents(self) -> None:
        for ending, indented in self._documents:
            while True:
                if self.at >= len(self.source):
                    raise _UnclosedError
                self.budget.spend(1)
                end = self.source.find("\n", self.at)
                end = len(self.source) if end < 0 else end
                line = self.source[self.at : end]
                self.at = min(end + 1, len(self.source))
                if (line.lstrip("\t") if indented else line) == ending:
                    break
        self._documents.clear()

    def _word(self) -> Word:
        """Read one word; there is one at this place."""
        source, start = self.source, self.at
        parts: list[str] = []
        exact, split = True, False
        while self.at < len(source):
            self.budget.spend(1)
            bare = _BARE.match(source, self.at)
            if bare is not None:
                parts.append(bare[0])
                self.at = bare.end()
                continue
            char = source[self.at]
            if char == "\\":
                parts.append(source[self.at + 1 : self.at + 2].strip("\n"))
                self.at += 2
            elif char == "'" or source.startswith("$'", self.at):
                exact = self._single(parts) and exact
            elif char == '"' or source.startswith('$"', self.at):
                exact = self._double(parts) and exact
            elif char in "$`" or source.startswith(("<(", ">("), self.at):
                parts.append(self._expansion())
                exact, split = False, True
            else:
                break
        return Word("".join(parts), start, min(self.at, len(source)), exact, split)

    def _single(self, parts: list[str]) -> bool:
        if self.source[self.at] == "$":
            found = _ANSI.match(self.source, self.at)
            if found is None:
                raise _UnclosedError
            parts.append(found[1])
            self.at = found.end()
            return "\\" not in found[1]
        end = self.source.find("'", self.at + 1)
        if end < 0:
            raise _UnclosedError
        parts.append(self.source[self.at + 1 : end])
        self.at = end + 1
        return True

    def _double(self, parts: list[str]) -> bool:
        start = self.source.index('"', self.at)
        self.at = _closed(self.source, start, '"', self.budget)
        inside = self.source[start + 1 : self.at - 1]
        parts.append(_ESCAPED.sub(lambda found: found[1].strip("\n"), inside))
        return _EXPANDED.search(inside) is None

    def _expansion(self) -> str:
        start = self.at
        opening = self.source[start : start + 2]
        if opening in _CLOSING or opening[0] == "`":
            opening = opening if opening in _CLOSING else "`"
            self.at = _closed(self.source, start, opening, self.budget)
        else:
            found = _DOLLAR.match(self.source, start)
            self.at = found.end() if found else start + 1
        return self.source[start : self.at]


def _closed(source: str, start: int, opening: str, budget: Budget) -> int:
    """Return where the other half of a quote or bracket ends, with all that stands within."""
    waiting = [(_CLOSING[opening], opening == '"')]
    at = start + len(opening)
    while waiting:
        budget.spend(1)
        found = _SPECIAL.search(source, at)
        if found is None:
            raise _UnclosedError
        at, text = found.end(), found[0]
        inner, quoted = waiting[-1]
        if text in ("\\", "'", "#"):
            at = _after_quoted(source, at, text, inner if not quoted or text != "'" else "")
        elif text == inner:
            waiting.pop()
        elif text in ("$(", "`") or (text == "(" and inner == ")"):
            waiting.append((_CLOSING[text], False))
        elif text in ("${", '"'):
            waiting.append((_CLOSING[text], quoted or text == '"'))
    return at


def _after_quoted(source: str, at: int, opening: str, inner: str) -> int:
    """
    Return what follows a character that takes the meaning from others, at whose end we are: from
    the next, those up to the next quote, or in a command those of a comment. `inner` is empty where
    a single quote means nothing.
    """
    if opening == "\\":
        return at + 1
    if opening == "#":
        return max(source.find("\n", at), at) if inner == ")" else at
    if not inner:
        return at
    end = source.find("'", at) + 1
    if not end:
        raise _UnclosedError
    return end
