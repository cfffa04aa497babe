"""
PURE. One object with conditions, from what kustomize makes of it with each component.

What follows is told twice: `chosen` says what an object is with some components, `template.py`
prints it for Helm to choose. Lists whose items all have names are taken for mappings by name, as
Kubernetes itself takes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias


class Nothing(Enum):
    """What is not there: a key of a mapping, or a whole object."""

    ABSENT = "absent"


ABSENT: Final = Nothing.ABSENT
Flags: TypeAlias = frozenset[str]
Variant: TypeAlias = tuple[Flags, Any]


class Named(dict[str, Any]):
    """A list whose items are known by their names."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The last of the others whose components are all there, else the default."""

    default: Any
    others: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class Present:
    """A mapping that is there for each of several reasons, which put different things into it."""

    reasons: tuple[Flags, ...]
    node: Any


def by_name(value: Any) -> Any:
    """Return the value with lists of named items as mappings."""
    if isinstance(value, dict):
        return {key: by_name(item) for key, item in value.items()}
    if isinstance(value, list):
        names = [item.get("name") if isinstance(item, dict) else None for item in value]
        if value and all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return Named((item["name"], by_name(item)) for item in value)
    return value


def merged(default: Any, variants: list[Variant], *, listed: bool = False) -> Any:
    """
    Return one node for the default and what becomes of it; a pair of components comes after both.
    One that is `listed` among others is there as a whole or not at all.
    """
    told: list[Variant] = []
    for flags, value in variants:
        if value != chosen(Choice(default, tuple(told)), flags):
            told.append((flags, value))
    if not told:
        return default
    values = [value for _, value in told if value is not ABSENT]
    kind = type(values[0]) if values else type(None)
    if not issubclass(kind, dict) or any(type(value) is not kind for value in values):
        return Choice(default, tuple(told))
    if type(default) is kind and len(values) == len(told):
        return _by_key(default, variants)
    reasons = tuple(flags for flags, value in told if value is not ABSENT and len(flags) == 1)
    there = all(
        (value is not ABSENT) == any(reason <= flags for reason in reasons)
        for flags, value in variants
    )
    if default is ABSENT and there and not listed and any(value != values[0] for value in values):
        inside = [(flags, kind() if value is ABSENT else value) for flags, value in variants]
        return Present(reasons, _by_key(kind(), inside))
    return Choice(default, tuple(told))


def _by_key(default: dict[str, Any], variants: list[Variant]) -> dict[str, Any]:
    keys = dict.fromkeys([*default, *(key for _, value in variants for key in _keys(value))])
    return type(default)(
        (
            key,
            merged(
                default.get(key, ABSENT),
                [
                    (f, ABSENT if value is ABSENT else value.get(key, ABSENT))
                    for f, value in variants
                ],
                listed=type(default) is Named,
            ),
        )
        for key in keys
    )


def _keys(value: Any) -> list[str]:
    return [] if value is ABSENT else list(value)


def chosen(node: Any, present: Flags) -> Any:
    """Return what the node is where just these components are."""
    if isinstance(node, Choice):
        holding = [value for flags, value in node.others if flags <= present]
        return chosen(holding[-1] if holding else node.default, present)
    if isinstance(node, Present):
        there = any(flags <= present for flags in node.reasons)
        return chosen(node.node, present) if there else ABSENT
    if isinstance(node, dict):
        items = ((key, chosen(item, present)) for key, item in node.items())
        return type(node)((key, item) for key, item in items if item is not ABSENT)
    return node
