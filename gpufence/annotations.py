"""
What users write on pods and namespaces, as typed values; every mistake is kept, none is guessed at.
"""

from __future__ import annotations

import re
from enum import StrEnum
from heapq import nsmallest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from gpufence import names
from gpufence.burst import WHOLE_PERCENT, Burst
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import InvalidError, Problem
from gpufence.quantity import MIB, read_bytes
from gpufence.shape import whole_number
from gpufence.text import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

MOST_PROCESSES = 1024
_MOST_NOTES = 16

_POD_KEYS = frozenset((*names.USER_KEYS, *names.WRITTEN_KEYS))
_WORKING_KEYS = f"those that do: {', '.join(names.USER_KEYS)}"
_SWITCH = ("enabled", "disabled")
_BURST_FORMS = "write an amount such as 10Gi, a percentage of the request such as 200%, or card"
_PERCENT = re.compile("([0-9]{3,9})%")
_OF_CONTAINERS = (names.MEMORY_OF_CONTAINER, names.FRAMEWORK_OF_CONTAINER)


class Headroom(StrEnum):
    """How much of the limit is left to what no framework counts."""

    FACTOR = "factor"  # three tenths, TensorFlow's rule of thumb
    AUTO = "auto"  # the same, but never more than 1.5 GiB unless the contexts need it


class HookCarrier(StrEnum):
    """How the start-up hook gets into an interpreter."""

    NONE = "disabled"
    SITE = "enabled"  # a line in the site folders that images have: hides nothing
    PATH = "pythonpath"  # in front of PYTHONPATH, and of what only the image says there


class PodOptions(NamedTuple):
    """
    What a pod's annotations ask for.

    `unreadable` are values nobody can act on, refused in evict; `notes` are keys that do nothing.
    """

    memory_bytes: int | None = None
    memory_of: Mapping[str, int] = MappingProxyType({})
    processes: int = 1
    headroom: Headroom = Headroom.FACTOR
    python_hook: HookCarrier = HookCarrier.NONE
    args: bool = False
    growth: bool = False
    oom_message: bool | None = None
    inject: bool = True
    framework: str = ""
    framework_of: Mapping[str, str] = MappingProxyType({})
    cpu_counts: bool | None = None
    burst: Burst | None = None
    burst_servers: bool = False
    unreadable: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()

    @property
    def grants_memory(self) -> bool:
        """Return whether the pod names an amount itself, as a whole or for some container."""
        return self.memory_bytes is not None or bool(self.memory_of)


_NO_OPTIONS = PodOptions()


class NamespaceOptions(NamedTuple):
    """What a namespace's annotations say about the pods in it."""

    max_memory_bytes: int | None = None
    max_burst: Burst | None = None
    quota_bytes: int | None = None
    implied_limits: bool = False
    evicts_undeclared: bool = False
    unreadable: tuple[Problem, ...] = ()


def read_pod_options(annotations: Mapping[str, str], containers: frozenset[str]) -> PodOptions:
    """Read the annotations of a pod whose containers are known by name."""
    own = {key: text for key, text in annotations.items() if key.startswith(names.PREFIX)}
    if not own:
        return _NO_OPTIONS
    problems: list[Problem] = []
    memory_of: dict[str, int] = {}
    framework_of: dict[str, str] = {}
    strange = own.keys() - _POD_KEYS
    if strange:
        memory_of = _read_of_containers(
            names.MEMORY_OF_CONTAINER, own, containers, _own_memory, problems
        )
        framework_of = _read_of_containers(
            names.FRAMEWORK_OF_CONTAINER, own, containers, _framework, problems
        )
        strange -= {f"{prefix}{name}" for prefix in _OF_CONTAINERS for name in containers if name}
    values = _read_values(own, _POD_OPTIONS, problems)
    return PodOptions(
        memory_of=memory_of,
        framework_of=framework_of,
        unreadable=tuple(problems),
        notes=_notes(strange, own, containers) if strange else (),
        **values,
    )


def _read_of_containers(
    prefix: str,
    own: Mapping[str, str],
    containers: frozenset[str],
    read: Callable[[str, str], Any],
    problems: list[Problem],
) -> dict[str, Any]:
    """Read what is said of each container by its name; nothing is kept of what cannot be read."""
    values = {}
    for name in sorted(containers):
        text = own.get(key := f"{prefix}{name}")
        if name and text is not None:
            value = _read_value(key, text, read, problems)
            if value is not None:
                values[name] = value
    return values


def _notes(
    keys: Collection[str], own: Mapping[str, str], containers: frozenset[str]
) -> tuple[Problem, ...]:
    """Note the first keys that do nothing, and how many more there are: there may be thousands."""
    notes = []
    for key in nsmallest(_MOST_NOTES + 1, keys):
        reason, remedy = "is for a key that does nothing on a pod", _WORKING_KEYS
        if _container_of(key):
            reason = "is for a container the pod does not have"
            remedy = f"end the key with one of {listed(sorted(containers))}"
        notes.append(Problem(key, own[key], reason, remedy))
    if len(keys) > _MOST_NOTES:
        more = f"and {len(keys) - _MOST_NOTES} more keys do nothing on a pod"
        notes[-1] = notes[-1]._replace(reason=more)
    return tuple(notes)


def read_namespace_options(annotations: Mapping[str, str]) -> NamespaceOptions:
    """Read what a namespace's annotations say about all of its pods."""
    problems: list[Problem] = []
    values = _read_values(annotations, _NAMESPACE_OPTIONS, problems)
    return NamespaceOptions(unreadable=tuple(problems), **values)


def defaults_from(
    namespace: Mapping[str, str], pod: Mapping[str, str], containers: frozenset[str]
) -> dict[str, str]:
    """
    Return the namespace's annotations that hold for a pod because the pod does not say otherwise.

    A pod that sets its own memory in any form takes none of the namespace's amounts.
    """
    own_memory = names.MEMORY in pod or any(
        key.startswith(names.MEMORY_OF_CONTAINER) for key in pod
    )
    return {
        key: value
        for key, value in namespace.items()
        if key not in pod
        and (key in names.USER_KEYS or _container_of(key) in containers)
        and not (own_memory and key.startswith(names.MEMORY))
    }


def read_memory(text: str, field: str) -> int:
    """Read an amount a person wrote for GPU memory: at least 1 MiB."""
    amount = read_bytes(text, field)
    if amount >= MIB:
        return amount
    raise InvalidError(
        Problem(field, text, "is under 1 MiB", "write an amount with its unit, such as 6Gi")
    )


def _read_values(
    annotations: Mapping[str, str], options: Iterable[_Option], problems: list[Problem]
) -> dict[str, Any]:
    """Read the options that are there; what is wrong goes to `problems`, and its default holds."""
    values = {}
    for option in options:
        text = annotations.get(option.key)
        if text is not None:
            value = _read_value(option.key, text, option.read, problems)
            if value is not None:
                values[option.name] = value
    return values


def _read_value(
    key: str, text: str, read: Callable[[str, str], Any], problems: list[Problem]
) -> Any:  # noqa: ANN401 - whatever the option is
    try:
        return read(text, f"metadata.annotations[{key}]")
    except InvalidError as error:
        problems.append(error.problem._replace(key=key))
        return None


def _container_of(key: str) -> str | None:
    """Return the container that a key is for."""
    for prefix in _OF_CONTAINERS:
        if key.startswith(prefix):
            return key.removeprefix(prefix) or None
    return None


def _own_memory(text: str, field: str) -> int:
    """Read what a pod grants itself: more than any card holds would be no limit at all."""
    amount = read_memory(text, field)
    if amount <= LARGEST_CARD:
        return amount
    remedy = "write what one card can hold, such as 6Gi"
    raise InvalidError(Problem(field, text, "is more than any card holds", remedy))


def _burst(text: str, field: str) -> Burst:
    """Read how far above its request a pod may go; what is below that is no burst."""
    if text == "card":
        return Burst()
    percent = _PERCENT.fullmatch(text)
    if percent is not None and int(percent[1]) >= WHOLE_PERCENT:
        return Burst(percent=int(percent[1]))
    if text.endswith("%"):
        reason = "is not a whole percentage from 100% to 999999999%"
        raise InvalidError(Problem(field, text, reason, _BURST_FORMS))
    try:
        return Burst(_own_memory(text, field))
    except InvalidError as error:
        raise InvalidError(error.problem._replace(remedy=_BURST_FORMS)) from error


def _quota(text: str, field: str) -> int:
    """Read what all pods of a namespace may ask for; 0 lets none in."""
    return 0 if text == "0" else read_memory(text, field)


def _processes(text: str, field: str) -> int:
    return whole_number(text, field, most=MOST_PROCESSES)


def _headroom(text: str, field: str) -> Headroom:
    return Headroom(_choice(text, field, tuple(Headroom)))


def _carrier(text: str, field: str) -> HookCarrier:
    return HookCarrier(_choice(text, field, tuple(HookCarrier)) if text else HookCarrier.NONE)


def _enabled(text: str, field: str) -> bool:
    return bool(text) and _choice(text, field, _SWITCH) == "enabled"


def _switched(text: str, field: str) -> bool | None:
    return _choice(text, field, _SWITCH) == "enabled" if text else None


def _evict(text: str, field: str) -> bool:
    return bool(text) and _choice(text, field, ("report", "evict")) == "evict"


def _not_disabled(text: str, field: str) -> bool:
    return not text or _choice(text, field, _SWITCH) != "disabled"


def _framework(text: str, field: str) -> str:
    return text and _choice(text, field, (*names.ENGINES, *names.FRAMEWORKS))


def _all_evidence(text: str, field: str) -> bool | None:
    return _choice(text, field, ("all", "gpu")) == "all" if text else None


def _choice(text: str, field: str, choices: tuple[str, ...]) -> str:
    if text in choices:
        return text
    remedy = f"write one of {', '.join(choices)}"
    raise InvalidError(Problem(field, text, "is not a choice", remedy))


class _Option(NamedTuple):
    key: str
    name: str
    read: Callable[[str, str], Any]


_POD_OPTIONS = (
    _Option(names.MEMORY, "memory_bytes", _own_memory),
    _Option(names.PROCESSES_PER_CARD, "processes", _processes),
    _Option(names.HEADROOM, "headroom", _headroom),
    _Option(names.PYTHON_HOOK, "python_hook", _carrier),
    _Option(names.ARGS, "args", _enabled),
    _Option(names.GROWTH, "growth", _enabled),
    _Option(names.OOM_MESSAGE, "oom_message", _switched),
    _Option(names.INJECT, "inject", _not_disabled),
    _Option(names.FRAMEWORK, "framework", _framework),
    _Option(names.IDLE_EVIDENCE, "cpu_counts", _all_evidence),
    _Option(names.BURST, "burst", _burst),
    _Option(names.BURST_SERVERS, "burst_servers", _enabled),
)
_NAMESPACE_OPTIONS = (
    _Option(names.MAX_MEMORY, "max_memory_bytes", read_memory),
    _Option(names.MAX_BURST, "max_burst", _burst),
    _Option(names.QUOTA_MEMORY, "quota_bytes", _quota),
    _Option(names.IMPLIED_LIMITS, "implied_limits", _enabled),
    _Option(names.UNDECLARED_USE, "evicts_undeclared", _evict),
)
