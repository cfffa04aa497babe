"""
PURE. What a server's own arguments say of the card's memory: the value of its flag, where that
stands, and what may bring it unseen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.frameworks.argv import Arg, Place
    from webhook.frameworks.levers import Lever

_ARGUMENTS = re.compile(
    r"-+\$.*|\$(?:[@*]|\{[@*]\}|\{\w+\[[@*]\]\}"
    r"|\{?\w*(?:ARG|ARGS|ARGUMENTS|FLAGS|OPTIONS|OPTS|PARAMS)\}?)",
    re.IGNORECASE | re.DOTALL,
)
"""What a shell may put any argument in the place of."""
_LONGEST_SHOWN = 120
_OTHER_KEYS = re.compile(r"kv_cache|free_gpu|\$")
_CHOOSES = frozenset(("", "auto", "-1", "on"))


class Told(NamedTuple):
    """
    A flag's value as the user wrote it, and where; no place where it cannot be changed. `sure` is
    False where a script may leave the flag out.
    """

    text: str
    place: Place | None
    sure: bool = True


def told(lever: Lever, args: Sequence[Arg]) -> Told | None:
    """Return the value that counts among a server's arguments; None where there is none."""
    values = list(_values(lever, args))
    if not values:
        return None
    return values[0] if lever.keeps_first else values[-1]


def is_certain(flag: Told | None) -> bool:
    return flag is None or flag.sure


def has_flag(flag: str, args: Sequence[Arg]) -> bool:
    return any(_option(arg.text) == flag for arg in args)


def overriding(void: Sequence[str], args: Sequence[Arg], variables: Mapping[str, str]) -> str:
    """
    Return the first of some flags and variables that is given with a value by which the server does
    not choose itself, as it is written; empty where there is none.
    """
    for name in void:
        if variables.get(name, "") not in _CHOOSES:
            return f"{name}={variables[name]}"[:_LONGEST_SHOWN]
        for value in _given(name, args):
            if value not in _CHOOSES:
                return f"{name} {value}"[:_LONGEST_SHOWN]
    return ""


class Overriding(NamedTuple):
    """What has the last word over a server's flag, as it is written, and the key in it."""

    written: str
    key: str


def outranking(
    lever: Lever, args: Sequence[Arg], variables: Mapping[str, str]
) -> Overriding | None:
    """Return what of a server's arguments and variables outranks its flag; None for nothing."""
    for name, key in lever.outranks:
        if variables.get(name):
            return Overriding(f"{name}={variables[name]}"[:_LONGEST_SHOWN], key)
        for value in _given(name, args):
            if not (value.startswith("{") and _OTHER_KEYS.search(value) is None):
                written = f"{name} {value}".strip()[:_LONGEST_SHOWN]
                return Overriding(written, key)
    return None


def _given(name: str, args: Sequence[Arg]) -> Iterator[str]:
    """Yield the values that one flag is given."""
    wanted = name.replace("_", "-")
    for at, arg in enumerate(args):
        if arg.text.startswith("-") and _option(arg.text) == wanted:
            _, equals, value = arg.text.partition("=")
            if not equals and at + 1 < len(args) and not args[at + 1].text.startswith("--"):
                value = args[at + 1].text
            yield value


def unseen(lever: Lever, args: Sequence[Arg]) -> str:
    """Return what among a server's arguments may hold its flag where nobody can look into it."""
    for arg in args:
        if not arg.exact and _ARGUMENTS.fullmatch(arg.text):
            return arg.text
        if arg.text.startswith("--") and _option(arg.text) in lever.files:
            return arg.text.partition("=")[0]
    return ""


def _is_flag(lever: Lever, option: str) -> bool:
    name = _option(option)
    if name in map(_option, lever.flags):
        return True
    begun = bool(lever.least) and name.startswith(lever.least)
    return begun and lever.flags[0].startswith(name)


def _values(lever: Lever, args: Sequence[Arg]) -> Iterator[Told]:
    for at, arg in enumerate(args):
        option, equals, value = arg.text.partition("=")
        if not option.startswith("-") or not _is_flag(lever, option):
            continue
        skipped = len(option) + 1
        if not equals:
            if at + 1 == len(args) or args[at + 1].text.startswith("--"):
                continue
            arg, value, skipped = args[at + 1], args[at + 1].text, 0  # noqa: PLW2901 - its value
        if value.startswith(lever.key):
            skipped += len(lever.key)
            place = arg.after(skipped) if skipped else arg.place
            yield Told(value[len(lever.key) :], place, arg.sure)


def _option(text: str) -> str:
    """Return an option's name as parsers compare it: some take underscores for dashes."""
    return text.partition("=")[0].replace("_", "-")
