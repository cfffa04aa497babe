"""
Rows as JSON, by a table of their fields: how the values of each are written and read.

A reader passes over what a newer program adds; what is not as promised is named, never guessed at.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from gpufence.errors import InvalidError, Problem, described
from gpufence.quantity import read_bytes, write_bytes
from gpufence.shape import Object, as_integer, as_object, as_text, objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

R = TypeVar("R", bound=tuple[Any, ...])

_MILLISECONDS = 3
_LONGEST_SECONDS: Final = 2**40
"""More than any machine has been up; a float of that size still tells milliseconds."""


class FieldKind(NamedTuple):
    """
    How the values of a field are written and read; `read` takes what was written and its path.
    """

    write: Callable[[Any], object]
    read: Callable[[object, str], object]


class RowKind(NamedTuple, Generic[R]):
    """
    How rows of a class are written and read: its fields in their order, and what some of them say
    where they are not written.
    """

    make: Callable[..., R]
    fields: tuple[tuple[str, FieldKind], ...]
    defaults: Mapping[str, object] = MappingProxyType({})

    def write(self, row: R) -> dict[str, object]:
        return {
            key: kind.write(value)
            for (key, kind), value in zip(self.fields, row, strict=True)
            if key not in self.defaults or value != self.defaults[key]
        }

    def read(self, written: Object, path: str) -> R:
        values = (
            self.defaults[key]
            if key in self.defaults and key not in written
            else kind.read(written.get(key), f"{path}.{key}")
            for key, kind in self.fields
        )
        return self.make(*values)

    def read_all(self, value: object, path: str) -> tuple[R, ...]:
        """Read rows; those that are written alike and stand together are one."""
        rows: list[R] = []
        before: Object | None = None
        for place, item in enumerate(objects(value, path)):
            rows.append(rows[-1] if item == before else self.read(item, f"{path}[{place}]"))
            before = item
        return tuple(rows)


def or_null(kind: FieldKind) -> FieldKind:
    """Return the kind of a field that may say None."""
    return FieldKind(
        lambda value: None if value is None else kind.write(value),
        lambda value, path: None if value is None else kind.read(value, path),
    )


def list_of(write: Callable[[Any], object], read: Callable[[Object, str], object]) -> FieldKind:
    """Return the kind of a field that holds a tuple of what `write` makes an object of."""
    return FieldKind(
        lambda rows: [write(row) for row in rows],
        lambda value, path: tuple(
            read(item, f"{path}[{position}]") for position, item in enumerate(objects(value, path))
        ),
    )


def one(kind: RowKind[Any]) -> FieldKind:
    return FieldKind(kind.write, lambda value, path: kind.read(as_object(value, path), path))


def several(kind: RowKind[Any]) -> FieldKind:
    return FieldKind(lambda rows: [kind.write(row) for row in rows], kind.read_all)


def _read_flag(value: object, path: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidError(
        Problem(path, described(value), "is neither true nor false", "write one of the two")
    )


def _read_seconds(value: object, path: str) -> float:
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is not None and 0 <= number <= _LONGEST_SECONDS:
        return float(number)
    remedy = "write a number of at least 0"
    raise InvalidError(Problem(path, described(value), "is no number of seconds", remedy))


def _read_share(value: object, path: str) -> float:
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is not None and 0 <= number <= 1:
        return float(number)
    remedy = "write a number from 0 to 1"
    raise InvalidError(Problem(path, described(value), "is no share", remedy))


TEXT: Final = FieldKind(str, as_text)
COUNT: Final = FieldKind(int, as_integer)
FLAG: Final = FieldKind(bool, _read_flag)
BYTES: Final = FieldKind(lambda amount: write_bytes(amount, largest="Mi"), read_bytes)
SECONDS: Final = FieldKind(lambda seconds: round(seconds, _MILLISECONDS), _read_seconds)
SHARE: Final = FieldKind(lambda share: round(share, _MILLISECONDS), _read_share)
WHOLE_SECONDS: Final = FieldKind(round, _read_seconds)
MAYBE_BYTES: Final = or_null(BYTES)
MAYBE_SECONDS: Final = or_null(SECONDS)
