"""
What users write on pods and namespaces, as typed values; every mistake is kept, none is guessed at.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gpufence import names
from gpufence.errors import InvalidError, Problem, annotation_problem
from gpufence.quantity import MIB, read_bytes
from gpufence.shape import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
D = TypeVar("D")

MOST_PROCESSES = 1024

_POD_KEYS = frozenset((*names.USER_KEYS, *names.WRITTEN_KEYS))
_WORKING_KEYS = f"those that do: {', '.join(names.USER_KEYS)}"


class Headroom(StrEnum):
    """
    How much of the limit is left to what no framework counts.
    """

    FACTOR = "factor"  # three tenths, TensorFlow's rule of thumb
    AUTO = "auto"  # the same, but never more than 1.5 GiB unless the contexts need it


class PodOptions(NamedTuple):
    """
    A pod's own words.

    `unreadable` are values nobody can act on, refused in evict; `notes` are keys that do nothing.
    """

    memory_bytes: int | None = None
    memory_of: Mapping[str, int] = MappingProxyType({})
    processes: int = 1
    headroom: Headroom = Headroom.FACTOR
    python_hook: bool = False
    args: bool = False
    growth: bool = False
    inject: bool = True
    framework: str = ""
    unreadable: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


_NO_OPTIONS = PodOptions()


class NamespaceOptions(NamedTuple):
    """
    A namespace's words about the pods in it.
    """

    max_memory_bytes: int | None = None
    implied_limits: bool = False
    unreadable: tuple[Problem, ...] = ()


def read_pod_options(annotations: Mapping[str, str], containers: frozenset[str]) -> PodOptions:
    """
    Read the annotations of a pod whose containers are known by name.
    """
    if not any(key.startswith(names.PREFIX) for key in annotations):
        return _NO_OPTIONS
    read = _Annotations(annotations)
    memory_of, notes = _memory_of(read, containers)
    return PodOptions(
        memory_bytes=read.value(names.MEMORY, read_memory, None),
        memory_of=memory_of,
        processes=read.value(names.PROCESSES_PER_CARD, _processes, 1),
        headroom=Headroom(read.choice(names.HEADROOM, tuple(Headroom), Headroom.FACTOR)),
        python_hook=read.choice(names.PYTHON_HOOK, ("enabled", "disabled")) == "enabled",
        args=read.choice(names.ARGS, ("enabled", "disabled")) == "enabled",
        growth=read.choice(names.GROWTH, ("enabled", "disabled")) == "enabled",
        inject=read.choice(names.INJECT, ("enabled", "disabled")) != "disabled",
        framework=annotations.get(names.FRAMEWORK, ""),
        unreadable=tuple(read.problems),
        notes=(*notes, *_unknown(annotations)),
    )


def read_namespace_options(annotations: Mapping[str, str]) -> NamespaceOptions:
    """
    Read what a namespace's annotations say about all of its pods.
    """
    read = _Annotations(annotations)
    return NamespaceOptions(
        max_memory_bytes=read.value(names.MAX_MEMORY, read_memory, None),
        implied_limits=read.choice(names.IMPLIED_LIMITS, ("enabled", "disabled")) == "enabled",
        unreadable=tuple(read.problems),
    )


def defaults_from(
    namespace: Mapping[str, str], pod: Mapping[str, str], containers: frozenset[str]
) -> dict[str, str]:
    """
    Return the namespace's words that hold for a pod because the pod does not say otherwise.

    A pod that sets its own memory in any form takes none of the namespace's amounts.
    """
    own_memory = any(key == names.MEMORY or _container_of(key) for key in pod)
    return {
        key: value
        for key, value in namespace.items()
        if key not in pod
        and (
            (key in names.USER_KEYS and not (key == names.MEMORY and own_memory))
            or (_container_of(key) in containers and not own_memory)
        )
    }


def read_memory(text: str, field_name: str) -> int:
    """
    Read an amount a person wrote for GPU memory: at least 1 MiB.
    """
    amount = read_bytes(text, field_name)
    if amount >= MIB:
        return amount
    raise InvalidError(
        Problem(field_name, text, "is under 1 MiB", "write an amount with its unit, such as 6Gi")
    )


def _processes(text: str, field_name: str) -> int:
    return whole_number(text, field_name, most=MOST_PROCESSES)


def _container_of(key: str) -> str | None:
    if key.startswith(names.MEMORY_OF_CONTAINER):
        return key.removeprefix(names.MEMORY_OF_CONTAINER) or None
    return None


def _memory_of(
    read: _Annotations, containers: frozenset[str]
) -> tuple[dict[str, int], list[Problem]]:
    amounts: dict[str, int] = {}
    notes: list[Problem] = []
    for key, text in sorted(read.annotations.items()):
        container = _container_of(key)
        if container in containers:
            amount = read.value(key, read_memory, None)
            if amount is not None:
                amounts[container] = amount
        elif container:
            remedy = f"end the key with one of {', '.join(sorted(containers))}"
            notes.append(Problem(key, text, "is for a container the pod does not have", remedy))
    return amounts, notes


def _unknown(annotations: Mapping[str, str]) -> list[Problem]:
    return [
        Problem(key, text, "is for a key that does nothing on a pod", _WORKING_KEYS)
        for key, text in sorted(annotations.items())
        if key.startswith(names.PREFIX) and key not in _POD_KEYS and not _container_of(key)
    ]


class _Annotations:
    """
    Reads annotation by annotation and keeps what was wrong.
    """

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self.annotations = annotations
        self.problems: list[Problem] = []

    def value(self, key: str, parse: Callable[[str, str], T], default: D) -> T | D:
        text = self.annotations.get(key)
        if text is None:
            return default
        try:
            return parse(text, f"metadata.annotations[{key}]")
        except InvalidError as error:
            self.problems.append(error.problem._replace(key=key))
            return default

    def choice(self, key: str, choices: tuple[str, ...], default: str = "") -> str:
        text = self.annotations.get(key, default)
        if text == default or text in choices:
            return text
        self.problems.append(
            annotation_problem(key, text, "is not a choice", f"write one of {', '.join(choices)}")
        )
        return default
