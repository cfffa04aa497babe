"""
PURE. The words that a program gets, and where in a container's command and arguments each stands,
so that one of them can be changed there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.frameworks.shell import Word

_REFERENCE = re.compile(r"\$(?:\$|\(([^()\s$]+)\))")
_SHELL_REFERENCE = re.compile(
    r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\(([A-Za-z_][A-Za-z0-9_.-]*)\)"
    r"|\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^{}$`\"']*))?\})"
)
_HARMLESS = re.compile(r"[\w\s./:=,@%+-]*", re.ASCII)
_LONGEST_VALUE = 4096


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
    is not taken leaves it out.
    """

    text: str
    place: Place | None = None
    raw: str = ""
    inner: Place | None = None
    written: str = ""
    exact: bool = True
    sure: bool = True

    def after(self, length: int) -> Place | None:
        """Return where the text stands from so many letters on; None where that cannot be told."""
        head = self.text[:length]
        if self.inner is not None and self.written[:length] == head:
            return self.inner._replace(start=self.inner.start + length)
        if self.place is None or self.raw[:length] != head:
            return None
        return self.place._replace(start=self.place.start + length)


def read_items(
    command: Sequence[str], args: Sequence[str], variables: Mapping[str, str]
) -> list[Arg]:
    """
    Return the items of a container with what `$(NAME)` stands for in them, as far as it is known.
    """
    return [
        _item(text, Place(field, number, 0, len(text)), variables)
        for field, texts in (("command", command), ("args", args))
        for number, text in enumerate(texts)
    ]


def _item(text: str, place: Place, variables: Mapping[str, str]) -> Arg:
    if "$(" not in text and "$$" not in text:
        return Arg(text, place, text, place, text)
    plain = "$$" not in text

    def value(match: re.Match[str]) -> str:
        nonlocal plain
        found = variables.get(match[1]) if match[1] is not None else "$"
        if found is None:
            return match[0]
        plain = plain and _HARMLESS.fullmatch(found) is not None
        return found[:_LONGEST_VALUE]

    expanded = _REFERENCE.sub(value, text)
    return Arg(expanded, place, text, place if plain else None, text if plain else "")


def from_shell(
    words: Sequence[Word],
    source: Arg,
    variables: Mapping[str, str],
    lists: Mapping[str, Sequence[Arg]],
) -> list[Arg]:
    """
    Return the words of a script's command as its program gets them; `lists` are what "$@" and its
    like stand for.
    """
    args: list[Arg] = []
    for word in words:
        if word.text in lists:
            args += lists[word.text]
        else:
            args += _from_word(word, source, variables)
    return args


def _from_word(word: Word, source: Arg, variables: Mapping[str, str]) -> Iterator[Arg]:
    place = inner = None
    raw = written = ""
    if source.inner is not None:
        outer = source.inner
        raw = source.written[word.start : word.end]
        place = outer._replace(start=outer.start + word.start, end=outer.start + word.end)
        quotes = (len(raw) - len(word.text)) // 2
        if raw[quotes : len(raw) - quotes] == word.text and quotes in (0, 1):
            written = word.text
            inner = place._replace(start=place.start + quotes, end=place.end - quotes)
    text = word.text
    if "$" in text:
        text = resolved(text, variables, quoted=word.exact)
    exact = word.exact or not ("$" in text or "`" in text)
    parts = text.split() if word.split and exact else [text]
    if len(parts) == 1:
        yield Arg(parts[0], place, raw, inner, written, exact)
    else:
        yield from (Arg(part) for part in parts)


def resolved(text: str, variables: Mapping[str, str], *, quoted: bool = False) -> str:
    """
    Put in the values of variables that are known, and the defaults of those that are not; within
    quotes that no shell looks into, only what the kubelet puts in.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        found = variables.get(name) if match[2] or not quoted else match[0]
        if found is None or name.startswith(names.SETTING_PREFIX):
            found = match[4]
        return match[0] if found is None else found[:_LONGEST_VALUE]

    return _SHELL_REFERENCE.sub(value, text)
