"""The kinds of values that settings have: how each is read from a variable and written as one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from gpufence.errors import InvalidError, Problem
from gpufence.event_text import MOST_HELP_URL
from gpufence.quantity import UNIT_BYTES, read_bytes, write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_MOST_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Kind:
    """
    How a value is read from the text of a variable, and written as such a text.

    `read` raises `InvalidError` for text it cannot read. `words` are all that can be read, where
    these are few.
    """

    read: Callable[[str, Row], Any]
    write: Callable[[Any], str] = str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    One variable. `unset` describes a default that has no text of its own.

    A row whose default is a mapping stands for one variable for each key: that of
    `GPUFENCE_SCHEDULER_<DIALECT>` and the key `KAI` is `GPUFENCE_SCHEDULER_KAI`.
    """

    variable: str
    text: str
    kind: Kind
    least: float
    most: float
    unset: str
    default: Any = None

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(row.variable for row in self.family().values()) or (self.variable,)

    @property
    def default_text(self) -> str:
        """Return the default as the variable takes it, or what it means where it has no text."""
        return self.unset or self.kind.write(self.default)

    def family(self) -> dict[str, Row]:
        """Return a row for each key of a default that is a mapping."""
        if not isinstance(self.default, Mapping):
            return {}
        prefix = self.variable.partition("<")[0]
        return {
            key: replace(self, variable=prefix + key, default=value)
            for key, value in self.default.items()
        }


def parsed(read: Callable[[str, str], Any], write: Callable[[Any], str] = str) -> Kind:
    """
    Return the kind of a parser that takes the text and its variable and raises `InvalidError`.
    """
    return Kind(lambda text, row: read(text, row.variable), write)


def converted(convert: Callable[[str], Any]) -> Kind:
    """Return the kind of texts that can all be read."""
    return Kind(lambda text, _: convert(text))


def one_of(choices: Mapping[str, Any]) -> Kind:
    """Return the kind of a few texts, each with the value it stands for."""

    def read(text: str, row: Row) -> Any:  # noqa: ANN401 - whatever the choices stand for
        if text in choices:
            return choices[text]
        raise _wrong(row, text, "is not a choice", f"write one of {', '.join(choices)}")

    written = {value: text for text, value in choices.items()}
    return Kind(read, written.__getitem__, tuple(choices))


def choice(texts: Iterable[str]) -> Kind:
    return one_of({text: text for text in texts})


def kind_of(name: str, default: object) -> Kind:
    """Return the kind that a field's name and default stand for."""
    if isinstance(default, bool):
        return BOOLEAN
    if isinstance(default, StrEnum):
        return one_of({str(member): member for member in type(default)})
    if name.endswith("_bytes"):
        return MEMORY
    if isinstance(default, int):
        return INTEGER
    return SECONDS if isinstance(default, float) else TEXT


def read_address(text: str, variable: str, example: str = ":8443") -> tuple[str, int]:
    """Read `host:port`; an empty host means every interface, `[::1]:443` is IPv6."""
    host, colon, port = text.rpartition(":")
    plain = port.isascii() and port.isdigit() and len(port) <= _MOST_DIGITS
    if colon and plain and int(port) < 2**16:
        return host.removeprefix("[").removesuffix("]"), int(port)
    remedy = f"write host:port, such as {example}"
    raise InvalidError(Problem(variable, text, "is not an address", remedy))


def write_address(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_items(text: str) -> tuple[str, ...]:
    """Split a comma-separated list; blanks around the items do not count."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _wrong(row: Row, text: str, reason: str, remedy: str) -> InvalidError:
    return InvalidError(Problem(row.variable, text, reason, remedy))


def _boolean(text: str, row: Row) -> bool:
    word = text.lower()
    if word in _TRUE | _FALSE:
        return word in _TRUE
    raise _wrong(row, text, "is neither true nor false", "write true or false")


def _integer(text: str, row: Row) -> int:
    plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if plain and row.least <= int(text) <= row.most:
        return int(text)
    remedy = f"write a whole number from {row.least:.0f} to {row.most:.0f}"
    raise _wrong(row, text, "is out of place", remedy)


def _seconds(text: str, row: Row) -> float:
    remedy = f"write seconds from {row.least:g} to {row.most:g}, such as {row.default:g}"
    try:
        number = float(text)
    except ValueError:
        raise _wrong(row, text, "is not a number of seconds", remedy) from None
    if row.least <= number <= row.most:
        return number
    raise _wrong(row, text, "is out of range", remedy)


TEXT: Final = converted(str)
BOOLEAN: Final = Kind(_boolean, lambda value: str(value).lower())
INTEGER: Final = Kind(_integer)
SECONDS: Final = Kind(_seconds, "{:g}".format)
MEMORY: Final = parsed(read_bytes, write_bytes)
ADDRESS: Final = Kind(
    lambda text, row: read_address(text, row.variable, row.default_text), write_address
)
NAMES: Final = Kind(
    lambda text, _: frozenset(split_items(text)), lambda value: ",".join(sorted(value))
)
UNIT: Final = one_of(UNIT_BYTES)


WEB: Final = frozenset({"http", "https"})
_NODE: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
_URL: Final = re.compile(r"[!\"$->A-~]+")  # no blank, and none of # ? @
_PAGE: Final = re.compile(r"https?://[!\"$-?A-~]+")  # neither a blank, nor # or @
_PRIVATE: Final = re.compile(r"//.*@", re.DOTALL)
_REMEDY: Final = "write where its status port is, such as http://10.0.0.7:8080"


def read_agents(items: Iterable[str], at: str, schemes: Collection[str] = WEB) -> dict[str, str]:
    """
    Read NODE=URL of each; `at` is where they were written.

    Raises:
        InvalidError: one of them cannot be read.
    """
    found = {}
    for item in items:
        node, separator, url = item.strip().partition("=")
        if not separator or not _NODE.fullmatch(node):
            remedy = "write NODE=URL, such as gpu-1=http://10.0.0.7:8080"
            raise InvalidError(Problem(at, _public(item), "names no node", remedy))
        if node in found:
            raise InvalidError(Problem(at, node, "is named twice", "name each node once"))
        found[node] = read_url(url, at, schemes)
    return found


def read_url(text: str, at: str, schemes: Collection[str] = WEB) -> str:
    """
    Read the address of a program's pages.

    Raises:
        InvalidError: it is none.
    """
    if not _is_readable(text, schemes):
        raise InvalidError(Problem(at, _public(text), "is no address", _REMEDY))
    return text.rstrip("/")


def _page(text: str, variable: str) -> str:
    if _PAGE.fullmatch(text) and len(text) <= MOST_HELP_URL:
        return text
    remedy = f"write an address of at most {MOST_HELP_URL} characters without #, https://..."
    raise InvalidError(Problem(variable, _public(text), "is no address of a page", remedy))


PAGE: Final = parsed(_page)


def _is_readable(text: str, schemes: Collection[str]) -> bool:
    """
    Return whether pages can be asked for below an address. Nobody is logged in to, so a name and a
    password before an @ would be for nothing.
    """
    try:
        parts = urlsplit(text)
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        return False
    plain = _URL.fullmatch(text) is not None and "," not in parts.netloc
    return parts.scheme in schemes and bool(parts.hostname) and port_is_one and plain


def _public(text: str) -> str:
    return _PRIVATE.sub("//...@", text)
