"""
PURE. What a pod's containers say already, before and after a pass of ours.

A pass before this one has put slots in the place of the user's values and kept those in the plan.
Taking them from there is no act of trust: a user who forges a plan can wish no more by it than by
writing the value itself, and every wish is held against the limit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.plan import read_plan
from gpufence.shape import as_object, as_text, objects, texts
from webhook.frameworks import defeats
from webhook.frameworks.ask import Word
from webhook.frameworks.servers import read_launch, without_ours
from webhook.frameworks.table import GROWTH, TABLE

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from gpufence.annotations import PodOptions
    from gpufence.shape import Object
    from webhook.frameworks.servers import Launch
    from webhook.operations import Path

SETTABLE = frozenset({*(row.env for row in (*TABLE, *GROWTH)), names.ENV_SERVER})
WATCHED = SETTABLE.union(defeats.VARIABLES, [names.PYTHON_PATH])

_SLOT_PATH = re.compile(rf"metadata\.annotations\['{re.escape(names.ENV_PREFIX)}(.*)'\]")
_SLOT = re.compile(r"s(0|[1-9][0-9]{0,3})")
_NO_ENTRIES: dict[str, list[int]] = {}


class Look(NamedTuple):
    """
    What one container says, as plain values that are quickly looked up.

    `hook` is None where nobody asked for the start-up hook, empty where it is to be mounted, and
    else says why it cannot be.
    """

    name: str
    words: tuple[Word, ...] = ()
    launch: Launch | None = None
    env_from: bool = False
    hook: str | None = None


class Seen(NamedTuple):
    """
    One container of the manifest.

    `positions` tells where in its `env` each variable of interest stands, in order.
    """

    look: Look
    item: Object
    path: Path
    positions: Mapping[str, list[int]]


def see(pod: Object, wanted: Container[str], wishes: PodOptions) -> list[Seen]:
    """
    Look at the containers of these names.
    """
    spec = as_object(pod.get("spec"), "spec")
    originals = _Originals(pod)
    taken: set[str] = set()
    return [
        _see(item, ("spec", field, position), wishes, originals, taken)
        for field in ("initContainers", "containers")
        for position, item in enumerate(objects(spec.get(field), f"spec.{field}"))
        if item.get("name") in wanted
    ]


def first_free(seen: Iterable[Seen]) -> int:
    """
    Return the first slot number above all that are in use.
    """
    used = [int(word.slot[1:]) for item in seen for word in item.look.words if word.slot]
    return max(used) + 1 if used else 0


class _Originals:
    """
    The user's own values that an earlier pass replaced, read when the first is asked for.
    """

    def __init__(self, pod: Object) -> None:
        self._pod = pod
        self._found: dict[tuple[str, str], str | None] | None = None

    def of(self, container: str, env: str) -> str | None:
        if self._found is None:
            self._found = _from_plan(self._pod)
        return self._found.get((container, env))


def _from_plan(pod: Object) -> dict[tuple[str, str], str | None]:
    metadata = as_object(pod.get("metadata"), "metadata")
    annotations = as_object(metadata.get("annotations"), "metadata.annotations")
    try:
        plan = read_plan(as_text(annotations.get(names.PLAN), names.PLAN))
    except GpufenceError:
        return {}
    return {
        (name, setting.env): setting.user
        for name, container in plan.containers.items()
        for setting in container.settings
    }


def _see(
    item: Object, path: Path, wishes: PodOptions, originals: _Originals, taken: set[str]
) -> Seen:
    name = as_text(item.get("name"), "name")
    launch = _launch(item, wishes)
    env = item.get("env")
    env_from = bool(item.get("envFrom"))
    if not env:
        return Seen(Look(name, (), launch, env_from), item, path, _NO_ENTRIES)
    entries = objects(env, f"containers[{name}].env")
    variables = [entry.get("name") for entry in entries]
    if WATCHED.isdisjoint(variables):
        return Seen(Look(name, (), launch, env_from), item, path, _NO_ENTRIES)
    positions: dict[str, list[int]] = {}
    for position, variable in enumerate(variables):
        if variable in WATCHED:
            positions.setdefault(str(variable), []).append(position)
    words = tuple(
        _word(variable, entries[found[-1]], name, originals, taken)
        for variable, found in positions.items()
    )
    return Seen(Look(name, words, launch, env_from), item, path, positions)


def _launch(item: Object, wishes: PodOptions) -> Launch | None:
    command, args = item.get("command"), item.get("args")
    said = texts(args, "args") if args else ()
    return read_launch(
        as_text(item.get("image"), "image"),
        texts(command, "command") if command else (),
        without_ours(said) if wishes.args else said,
        wishes.framework,
    )


def _word(env: str, entry: Object, container: str, originals: _Originals, taken: set[str]) -> Word:
    slot = slot_of(entry)
    if slot is not None and env in SETTABLE:
        free = _SLOT.fullmatch(slot) is not None and slot not in taken
        taken.add(slot)
        return Word(env, originals.of(container, env), slot if free else "", points=True)
    text = as_text(entry.get("value"), f"containers[{container}].env[{env}].value")
    return Word(env, text, hidden=bool(entry.get("valueFrom")) or "$(" in text)


def slot_of(entry: Object) -> str | None:
    """
    Return the slot a variable points at; None where it points at none of ours.
    """
    source = entry.get("valueFrom")
    if not source:
        return None
    field = as_object(as_object(source, "valueFrom").get("fieldRef"), "fieldRef")
    match = _SLOT_PATH.fullmatch(as_text(field.get("fieldPath"), "fieldPath"))
    return match[1] if match else None
