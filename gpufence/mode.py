"""How far gpufence may go: the ladder observe, cap, evict."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from gpufence.errors import InvalidError, Problem
from gpufence.names import MODE, POLICY_CONFIGMAP, POLICY_DEFAULT_MAX_MODE, POLICY_MAX_MODE

if TYPE_CHECKING:
    from collections.abc import Mapping


class Mode(IntEnum):
    """The rungs, each doing all that those below it do."""

    OBSERVE = 1
    CAP = 2
    EVICT = 3

    def __str__(self) -> str:
        return self._name_.lower()


MODES = tuple(str(mode) for mode in Mode)


def read_mode(text: str, field: str) -> Mode:
    if text in MODES:
        return Mode[text.upper()]
    raise InvalidError(Problem(field, text, "is no mode", f"write one of {', '.join(MODES)}"))


def namespace_mode(labels: Mapping[str, str]) -> Mode | None:
    """
    Return the mode a namespace asks for, or None where it has not opted in.

    A label gpufence cannot read counts as not opted in: the policy that should have refused it was
    away, and doing nothing is the one answer that harms nobody.
    """
    text = labels.get(MODE)
    return Mode[text.upper()] if text in MODES and text is not None else None


def highest_mode(data: Mapping[str, str] | None) -> Mode:
    """
    Return the highest mode the kill switch allows the agents.

    None stands for a ConfigMap that is absent or cannot be read: then no pod is evicted. The same
    holds for a value that cannot be read; a ConfigMap without the keys lets the namespaces decide.
    """
    if data is None:
        return Mode.CAP
    return _allowed(data, switch_of(data))


def switch_of(data: Mapping[str, str]) -> str:
    """
    Return the key of the kill switch that decides: the lower of what people set and what is
    installed, and of equals the one that people set.

    No manifest has the key that people write, so that no upgrade takes back their word.
    """
    return min(POLICY_MAX_MODE, POLICY_DEFAULT_MAX_MODE, key=lambda key: _allowed(data, key))


def _allowed(data: Mapping[str, str], key: str) -> Mode:
    try:
        return read_mode(
            data.get(key, str(Mode.EVICT)), f"configmap/{POLICY_CONFIGMAP} data[{key}]"
        )
    except InvalidError:
        return Mode.CAP


def effective_mode(namespace: Mode | None, highest: Mode) -> Mode | None:
    """Return the lower of what the namespace asks for and what the kill switch allows."""
    return None if namespace is None else min(namespace, highest)
