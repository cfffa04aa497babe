"""
Typed access to JSON whose shape nobody has promised.

What an API server hands us has been validated, what a person pipes into the command line has not.
Everything raises `InvalidError` with the path of the value; `None` and absent mean empty, as they
do to Kubernetes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias, cast

from gpufence.errors import InvalidError, Problem, UnknownVersionError, described

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
    if isinstance(value, list) and _DICT.issuperset(map(type, value)):
        return value
    items = as_list(value, field)
    return [as_object(item, f"{field}[{position}]") for position, item in enumerate(items)]


def texts(value: object, field: str) -> tuple[str, ...]:
    """Read a list whose items are all text."""
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
