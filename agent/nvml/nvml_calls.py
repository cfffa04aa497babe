"""How pynvml is called: every way in which it fails is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import pynvml

from agent.nvml.faults import Code
from agent.nvml.protocol import NvmlFailure

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
P = ParamSpec("P")

_ABSENT: Final = frozenset(
    {
        Code.NOT_SUPPORTED,
        Code.FUNCTION_NOT_FOUND,
        Code.INVALID_ARGUMENT,
        Code.ARGUMENT_VERSION_MISMATCH,
    }
)
"""How cards and drivers say that they do not have a feature, or not in this version."""


class CallError(Exception):
    """Raised by a call that failed, up to a caller that can do without it."""

    def __init__(self, failure: NvmlFailure) -> None:
        super().__init__(failure)
        self.failure = failure

    @property
    def absent(self) -> bool:
        return self.failure.code in _ABSENT


def call(function: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T:
    """Call pynvml, and turn every way in which it fails into one."""
    name = getattr(function, "__name__", "pynvml")
    try:
        return function(*arguments, **more)
    except pynvml.NVMLError as error:
        raise CallError(NvmlFailure(error.value, name)) from error
    except UnicodeDecodeError as error:
        raise CallError(NvmlFailure(None, name, "text that is not UTF-8")) from error


def or_none(function: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T | None:
    """Call pynvml for something that we can do without."""
    try:
        return call(function, *arguments, **more)
    except CallError:
        return None
