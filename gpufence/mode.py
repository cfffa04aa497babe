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

    None stands for a ConfigMap that is absent or cannot be read: then nobody is evicted. So does a
    value nobody can read; a ConfigMap without the keys leaves the namespaces their way.
    """
    if data is None:
        return Mode.CAP
    try:
        key, text = switch_of(data)
        return read_mode(text, f"configmap/{POLICY_CONFIGMAP} data[{key}]")
    except InvalidError:
        return Mode.CAP


def switch_of(data: Mapping[str, str]) -> tuple[str, str]:
    """
    Return the key of the kill switch that counts, and what it says.

    No manifest has the key that people write, so that no upgrade takes back their word.
    """
    key = POLICY_MAX_MODE if POLICY_MAX_MODE in data else POLICY_DEFAULT_MAX_MODE
    return key, data.get(key, str(Mode.EVICT))


def effective_mode(namespace: Mode | None, highest: Mode) -> Mode | None:
    """Return the lower of what the namespace asks for and what the kill switch allows."""
    return None if namespace is None else min(namespace, highest)
