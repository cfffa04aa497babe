"""
PURE. The pod's annotations: what the namespace adds, what is dropped as forged, what is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.annotations import defaults_from, read_pod_options
from gpufence.dialects import BOOKKEEPING_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.errors import Problem
    from webhook.operations import Patch

MOST_BYTES = 250 * 1024
"""The API server takes 256 KiB on one object; the rest is for whoever comes after us."""

_FORGEABLE = BOOKKEEPING_KEYS.union(names.WRITTEN_KEYS)
_WIDEST = 4  # bytes of one character
_PATH = ("metadata", "annotations")


def is_forged(key: str) -> bool:
    """
    Tell whether only schedulers, device plugins or gpufence itself may write a key.
    """
    return key in _FORGEABLE or key.startswith(names.ENV_PREFIX)


def words_for(
    namespace: Mapping[str, str], own: Mapping[str, str], containers: frozenset[str]
) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """
    Return the namespace's defaults for a pod, without those nobody can read, and what is wrong with
    those: a typing error of the namespace's owner must not keep anybody's pod out.
    """
    words = defaults_from(namespace, own, containers)
    problems = read_pod_options(words, containers).unreadable if words else ()
    for problem in problems:
        words.pop(problem.key, None)
    return words, problems


def scheduler_books(annotations: Mapping[str, str]) -> list[str]:
    """
    Return the keys by which a pod would meddle with a scheduler's books.
    """
    return (
        []
        if BOOKKEEPING_KEYS.isdisjoint(annotations)
        else sorted(BOOKKEEPING_KEYS & annotations.keys())
    )


def settle_annotations(patch: Patch, present: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """
    Make the annotations what they should be, naming only what differs.
    """
    for key in present:
        if is_forged(key) and key not in wanted:
            patch.remove(_PATH, key)
    if not present.keys().isdisjoint(wanted):
        wanted = {key: text for key, text in wanted.items() if present.get(key) != text}
    patch.update(_PATH, wanted)


def fits(present: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """
    Tell whether the API server will take all these annotations together.
    """
    if (_characters(present) + _characters(wanted)) * _WIDEST <= MOST_BYTES:
        return True
    both = {**present, **wanted}
    return sum(len(f"{key}{text}".encode()) for key, text in both.items()) <= MOST_BYTES


def _characters(annotations: Mapping[str, str]) -> int:
    return len("".join(annotations)) + len("".join(annotations.values()))
