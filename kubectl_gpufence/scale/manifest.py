"""PURE. Objects for a person to read: YAML with a reason beside each value that needs one."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Value: TypeAlias = Any  # texts, numbers, truths, and lists and mappings of Values

_WIDTH = 100
_SHORT = 44
_PLAIN = re.compile(r"[A-Za-z][-A-Za-z0-9_./]*")
_WORDS_OF_YAML = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A value, and why it is what it is."""

    value: Value
    why: str


def bare(value: Value) -> Value:
    """Return a value without the reasons in it."""
    if isinstance(value, Reasoned):
        return bare(value.value)
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items()}
    if isinstance(value, list):
        return [bare(item) for item in value]
    return value


def yaml(objects: Sequence[Mapping[str, Value]]) -> Iterator[str]:
    """Write objects as documents of one stream."""
    for number, item in enumerate(objects):
        if number:
            yield "---"
        yield from _mapping(item, "")


def _mapping(value: Mapping[str, Value], indent: str) -> Iterator[str]:
    for key, item in value.items():
        yield from _entry(f"{key}:", item, indent, indent + "  ")


def _entry(start: str, item: Value, indent: str, deeper: str) -> Iterator[str]:
    """Write one entry of a mapping, and above or beside it the reason."""
    beside = ""
    if isinstance(item, Reasoned):
        if len(item.why) <= _SHORT and not isinstance(item.value, dict | list):
            beside = f"  # {item.why}"
        else:
            yield from _comment(item.why, indent)
        item = item.value
    if isinstance(item, dict) and item:
        yield f"{indent}{start}"
        yield from _mapping(item, deeper)
    elif isinstance(item, list) and item:
        yield f"{indent}{start}"
        for one in item:
            yield from _listed(one, deeper)
    else:
        yield f"{indent}{start} {_scalar(item)}{beside}"


def _listed(item: Value, indent: str) -> Iterator[str]:
    """Write one entry of a list, its first line after the dash; its reason comes before that."""
    if isinstance(item, Reasoned):
        yield from _comment(item.why, indent)
        item = item.value
    lines = _mapping(item, "") if isinstance(item, dict) else iter([_scalar(item)])
    for number, line in enumerate(lines):
        yield f"{indent}{'  ' if number else '- '}{line}"


def _comment(text: str, indent: str) -> list[str]:
    before = f"{indent}# "
    return textwrap.wrap(text, _WIDTH, initial_indent=before, subsequent_indent=before)


def _scalar(value: Value) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML:
        return value
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)
