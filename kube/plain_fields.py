"""
The shape of a plain kubeconfig: known fields of the expected types, and names that are not shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DoubtError(Exception):
    """
    End the attempt: the other reader decides and, if need be, explains.
    """


def require(plain: object) -> None:
    """
    Doubt what is not plain.
    """
    if not plain:
        raise DoubtError


def fields(found: object, known: frozenset[str]) -> dict[str, object]:
    """
    Give the fields of a mapping that has none but known ones, and `extensions`, which mean nothing.
    """
    if not isinstance(found, dict) or not found.keys() <= known | {"extensions"}:
        raise DoubtError
    return {key: value for key, value in found.items() if key != "extensions"}


def texts(found: Mapping[str, object]) -> dict[str, str]:
    """
    Give fields that must all be texts; an empty one is no plain way to say nothing.
    """
    filled = {key: value for key, value in found.items() if isinstance(value, str) and value}
    require(len(filled) == len(found))
    return filled


def named_entries(found: object) -> Sequence[Mapping[str, object]]:
    """
    Give a list of entries, each with a name at least; no list is an empty one.
    """
    if not isinstance(found, list | None):
        raise DoubtError
    entries = found or []
    require(all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in entries))
    return entries


def only_entry(
    entries: Sequence[Mapping[str, object]], name: object, kind: str, known: frozenset[str]
) -> dict[str, object]:
    """
    Give the known fields of the one entry with a name.
    """
    found = [entry for entry in entries if entry["name"] == name]
    require(len(found) == 1)
    return fields(fields(found[0], frozenset({"name", kind})).get(kind), known)
