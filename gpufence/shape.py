"""
Typed access to JSON whose shape nobody has promised.

What an API server hands us has been validated, what a person pipes into the command line has not.
Everything raises `InvalidError` with the path of the value; `None` and absent mean empty, as they
do to Kubernetes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

from gpufence.errors import InvalidError, Problem, UnknownVersionError, described
from gpufence.quantity import read_bytes, write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable


Object: TypeAlias = Mapping[str, object]

_NOTHING: Object = {}
_TEXT = {str}
_DICT = {dict}
_MOST_DIGITS = 20


def as_object(value: object, field: str) -> Object:
    if value is None:
        return _NOTHING
    if isinstance(value, (dict, Mapping)) and _TEXT.issuperset(map(type, value)):
        return value
    raise InvalidError(
        Problem(field, described(value), "is not an object", "write keys and values")
    )


def as_list(value: object, field: str) -> list[object]:
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise InvalidError(Problem(field, described(value), "is not a list", "write a list"))


def as_text(value: object, field: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise InvalidError(Problem(field, described(value), "is not text", "quote it"))


def as_integer(value: object, field: str, *, least: int = 0, most: int = 2**63 - 1) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    remedy = f"write a number of at least {least}"
    if isinstance(value, int) and value > most:
        remedy = f"write a number of at most {most}"
    raise InvalidError(Problem(field, described(value), "is not a whole number", remedy))


def as_texts(value: object, field: str) -> Mapping[str, str]:
    """Read an object whose values are all text, such as labels and annotations."""
    if value is None:
        return {}
    values = as_object(value, field)
    if _TEXT.issuperset(map(type, values.values())):
        return cast("dict[str, str]", dict(values))
    return {key: as_text(item, f"{field}[{key}]") for key, item in values.items()}


def objects(value: object, field: str) -> list[Object]:
    """
    Read a list whose items are all objects: for those who ask for members by name, since their
    keys are not looked at.
    """
    if value is None:
        return []
    if isinstance(value, list) and _DICT.issuperset(map(type, value)):
        return value
    items = as_list(value, field)
    return [as_object(item, f"{field}[{position}]") for position, item in enumerate(items)]


def texts(value: object, field: str) -> tuple[str, ...]:
    """Read a list whose items are all text."""
    if value is None:
        return ()
    if isinstance(value, list) and _TEXT.issuperset(map(type, value)):
        return tuple(value)
    items = as_list(value, field)
    return tuple([as_text(item, f"{field}[{position}]") for position, item in enumerate(items)])


def whole_number(text: str, field: str, *, least: int = 1, most: int = 2**31) -> int:
    """Read a plain decimal number, as annotations and labels carry them."""
    plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if plain and least <= int(text) <= most:
        return int(text)
    raise InvalidError(
        Problem(
            field, text, "is not a usable whole number", f"write a number from {least} to {most}"
        )
    )


def escape_pointer(token: str) -> str:
    """Escape one token of a JSON pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1")


def read_versioned(text: str, field: str, version: int) -> Object:
    """
    Read JSON that carries its version as `v`; what a newer program wrote is named, never guessed.
    """
    try:
        written = as_object(json.loads(text, parse_constant=_no_number), field)
    except (ValueError, RecursionError) as error:
        raise InvalidError(
            Problem(field, text, "is not JSON", "let gpufence write this annotation")
        ) from error
    written_version = written.get("v")
    if written_version != version or isinstance(written_version, bool):
        raise UnknownVersionError(field, written_version)
    return written


def _no_number(text: str) -> float:
    """Refuse NaN and the infinities, which Python's JSON knows and nobody's does."""
    raise ValueError(text)


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
