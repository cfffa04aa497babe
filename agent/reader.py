"""
Typed reads of a program's settings from a mapping, every mistake reported at once.

A program hands in its environment, reads each variable by its type, and calls `check` before it
opens the first socket: the person who made three mistakes learns of three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from gpufence.errors import InvalidError, Problem, SettingsError
from gpufence.quantity import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_MOST_DIGITS = 20


class Reader:
    """
    Reads variables of one mapping; an unset or empty variable means its default.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._known: set[str] = set()
        self._problems: list[Problem] = []

    def text(self, name: str, default: str) -> str:
        self._known.add(name)
        return self._variables.get(name, "").strip() or default

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self.text(name, default)
        if text in choices:
            return text
        return self._wrong(
            name, text, "is not a choice", f"write one of {', '.join(choices)}", default
        )

    def boolean(self, name: str, *, default: bool) -> bool:
        text = self.text(name, "true" if default else "false").lower()
        if text in _TRUE | _FALSE:
            return text in _TRUE
        return self._wrong(name, text, "is neither true nor false", "write true or false", default)

    def integer(self, name: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
        text = self.text(name, str(default))
        plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        if plain and least <= int(text) <= most:
            return int(text)
        remedy = f"write a whole number from {least} to {most}"
        return self._wrong(name, text, "is out of place", remedy, default)

    def seconds(self, name: str, default: float, *, least: float = 0.0, most: float = 1e6) -> float:
        """
        Read a duration in seconds, decimals allowed.
        """
        text = self.text(name, str(default))
        remedy = f"write seconds from {least:g} to {most:g}, such as {default:g}"
        try:
            number = float(text)
        except ValueError:
            return self._wrong(name, text, "is not a number of seconds", remedy, default)
        if least <= number <= most:
            return number
        return self._wrong(name, text, "is out of range", remedy, default)

    def memory(self, name: str, default: int | None) -> int | None:
        """
        Read an amount of memory such as 512Mi, in bytes.
        """
        text = self.text(name, "")
        return (
            self._parsed(name, text, lambda: read_bytes(text, name), default) if text else default
        )

    def address(self, name: str, default: str) -> tuple[str, int]:
        """
        Read `host:port`; an empty host means every interface, `[::1]:443` is IPv6.
        """
        text = self.text(name, default)
        host, colon, port = text.rpartition(":")
        plain = port.isascii() and port.isdigit() and len(port) <= _MOST_DIGITS
        if colon and plain and int(port) < 2**16:
            return host.removeprefix("[").removesuffix("]"), int(port)
        remedy = f"write host:port, such as {default}"
        return self._wrong(name, text, "is not an address", remedy, ("", 0))

    def items(self, name: str, default: str = "") -> tuple[str, ...]:
        """
        Read a comma-separated list; blanks around the items do not count.
        """
        text = self.text(name, default)
        return tuple(item.strip() for item in text.split(",") if item.strip())

    def parsed(self, name: str, default: str, parse: Callable[[str, str], T], fallback: T) -> T:
        """
        Read a variable with a parser of the caller's own that raises `InvalidError`.
        """
        text = self.text(name, default)
        return self._parsed(name, text, lambda: parse(text, name), fallback)

    def check(self) -> None:
        """
        Raise one `SettingsError` for all that was wrong.
        """
        if self._problems:
            raise SettingsError(self._problems)

    def unknown(self, prefix: str) -> tuple[str, ...]:
        """
        Return the variables of ours that nobody read: misspelt, or meant for another program.

        They are worth a warning but no refusal: Kubernetes itself puts GPUFENCE_WEBHOOK_PORT and
        its like into pods beside a Service of that name.
        """
        return tuple(
            sorted(name for name in self._variables.keys() - self._known if name.startswith(prefix))
        )

    def _parsed(self, name: str, text: str, parse: Callable[[], T], fallback: T) -> T:
        try:
            return parse()
        except InvalidError as error:
            return self._wrong(name, text, error.problem.reason, error.problem.remedy, fallback)

    def _wrong(self, name: str, value: str, reason: str, remedy: str, fallback: T) -> T:
        self._problems.append(Problem(name, value, reason, remedy))
        return fallback
