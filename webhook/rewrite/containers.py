"""
PURE. What a pod's containers say already, before and after a pass of ours.

A pass before this one has put slots in the place of the user's values and kept those in the plan.
Taking them from there is no act of trust: a user who forges a plan can wish no more by it than by
writing the value itself, and every wish is held against the limit.
"""

from __future__ import annotations

import re
from operator import methodcaller
from typing import TYPE_CHECKING, NamedTuple, cast

from gpufence import names
from gpufence.annotations import HookCarrier
from gpufence.dialects import GPU_RESOURCES, PREFIXES
from gpufence.errors import GpufenceError
from gpufence.plan import read_plan
from gpufence.shape import as_object, as_text, objects, texts
from webhook.engines.budget import STEPS, Budget, SpentError
from webhook.engines.catalog import VARIABLES, alone, by_first
from webhook.engines.launch import read_launch
from webhook.frameworks.table import DEFEATS, GROWTH, TABLE
from webhook.rewrite.rows import ContainerText, Variable

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from gpufence.annotations import PodOptions
    from gpufence.shape import Object
    from webhook.engines.launch import ServerLaunch
    from webhook.operations import Path

SETTABLE = VARIABLES.union(row.env for row in (*TABLE, *GROWTH))
WATCHED = SETTABLE.union(DEFEATS, [names.PYTHON_PATH])

_SLOT_PATH = re.compile(rf"metadata\.annotations\['{re.escape(names.ENV_PREFIX)}(.*)'\]")
_SLOT = re.compile(r"s(0|[1-9][0-9]{0,3})")
_SLOTS = 10_000  # that this can name
_KEEPERS = frozenset(("pytorch", "jax", "cupy", "paddle", "julia"))
_KEEPING_WORDS = (
    *("torch", *alone("jax", "flax", "julia"), "cupy", "paddle", "transformers", "diffusers"),
    *("lightning", "deepspeed", "accelerate", "unsloth", "fairseq"),
)
_KEEPING = by_first(*_KEEPING_WORDS)
_KEEPING_HOOKED = by_first(*_KEEPING_WORDS, "tensorflow", "keras")
"""What betrays a framework that keeps to its variables; TensorFlow does so by the hook alone."""
_TEXT = frozenset((str,))
_MANY = 64  # variables: from here on reading them all at once is faster than each
_name_of = methodcaller("get", "name")
_text_of = methodcaller("get", "value", "")
_source_of = methodcaller("get", "valueFrom")
_NO_VARIABLES: dict[str, Variable] = {}
_NO_POSITIONS: dict[str, list[int]] = {}


class GpuContainer(NamedTuple):
    """
    One container of the manifest that asks for the GPU.

    `positions` tells where in its `env` each variable of interest stands, in order.
    """

    text: ContainerText
    manifest: Object
    path: Path
    positions: Mapping[str, list[int]]


class Started(NamedTuple):
    """What a container starts, and whether it names a framework that keeps to its variables."""

    launch: ServerLaunch | None
    framework: bool


class Starts:
    """
    What the containers of one pod run: each is looked into once, all of them within one budget.
    """

    def __init__(self, steps: int = STEPS) -> None:
        self._budget = Budget(steps)
        self._seen: dict[int, Started] = {}

    def of(self, item: Object, name: str, options: PodOptions, earlier: _EarlierPass) -> Started:
        """Recognise what one container runs, whether it asks for the GPU or not."""
        found = self._seen.get(id(item))
        if found is None:
            found = self._seen[id(item)] = self._look(item, name, options, earlier)
        return found

    def _look(self, item: Object, name: str, options: PodOptions, earlier: _EarlierPass) -> Started:
        image = as_text(item.get("image"), "image")
        command, args = texts(item.get("command"), "command"), texts(item.get("args"), "args")
        entries = objects(item.get("env"), f"containers[{name}].env")
        said = {} if self._budget.left < 0 else _as_the_user_wrote(entries, name, earlier)
        word = options.framework_of.get(name, options.framework)
        launch = read_launch(image, command, args, word, said, self._budget, name)
        keeping = _KEEPING if options.python_hook is HookCarrier.NONE else _KEEPING_HOOKED
        text = word or " ".join((image, *command, *args))
        try:
            self._budget.read(len(text))
            framework = word in _KEEPERS or keeping.search(text.lower()) is not None
        except SpentError:  # of what is unread nothing is known
            framework = word in _KEEPERS
        return Started(launch, framework)


def read_containers(
    pod: Object, wanted: Container[str], options: PodOptions, starts: Starts
) -> list[GpuContainer]:
    """Read the containers of these names in a manifest that `read_pod` has read before."""
    spec = cast("Mapping[str, list[Object] | None]", pod["spec"])
    earlier = _EarlierPass(pod)
    found = [
        (item, (field, position))
        for field in ("initContainers", "containers")
        for position, item in enumerate(spec.get(field) or ())
        if item.get("name") in wanted
    ]
    return [_read(item, ("spec", *place), options, earlier, starts) for item, place in found]


def with_free_slots(containers: list[GpuContainer]) -> tuple[list[GpuContainer], int]:
    """
    Return the containers with the first of as many slot numbers in a row, all free, as they could
    need.

    Where slots that somebody has scattered leave no room, none of them is used again.
    """
    used = sorted(
        int(variable.slot[1:])
        for item in containers
        for variable in item.text.variables.values()
        if variable.slot
    )
    first, needed = 0, len(containers) * len(SETTABLE)
    for slot in used:
        if slot - first >= needed:
            return containers, first
        first = slot + 1
    if first + needed <= _SLOTS:
        return containers, first
    return [_without_slots(item) for item in containers], 0


def slot_of(entry: Object) -> str | None:
    """Return the slot a variable points at; None where it points at none of ours."""
    source = entry.get("valueFrom")
    if not source:
        return None
    field = as_object(as_object(source, "valueFrom").get("fieldRef"), "fieldRef")
    match = _SLOT_PATH.fullmatch(as_text(field.get("fieldPath"), "fieldPath"))
    return match[1] if match else None


def own_slots(pod: Object, annotations: Mapping[str, str]) -> dict[str, str]:
    """
    Return the annotations of gpufence's that a pod's own variables and files show to its
    containers: where nothing is changed that a container sees, they stay.
    """
    if not any(key.startswith(names.ENV_PREFIX) for key in annotations):
        return {}
    spec = as_object(pod.get("spec"), "spec")
    shown = [
        entry
        for field in ("initContainers", "containers")
        for item in objects(spec.get(field), f"spec.{field}")
        for entry in objects(item.get("env"), "env")
    ]
    for volume in objects(spec.get("volumes"), "spec.volumes"):
        source = as_object(volume.get("downwardAPI"), "downwardAPI")
        shown += [{"valueFrom": item} for item in objects(source.get("items"), "items")]
    keys = {f"{names.ENV_PREFIX}{slot_of(entry)}" for entry in shown}
    return {key: annotations[key] for key in keys.intersection(annotations)}


class _EarlierPass:
    """
    What a pass before this one has left: slots, each to be used once, and in the plan the user's
    own values that they replaced. The plan is read when the first of those is asked for.
    """

    def __init__(self, pod: Object) -> None:
        self._pod = pod
        self._taken: set[str] = set()
        self._originals: dict[tuple[str, str], str | None] | None = None

    def free(self, slot: str) -> str:
        """Return a slot if it can be used again, else nothing."""
        free = _SLOT.fullmatch(slot) is not None and slot not in self._taken
        self._taken.add(slot)
        return slot if free else ""

    def original(self, container: str, env: str) -> str | None:
        if self._originals is None:
            self._originals = _originals(self._pod)
        return self._originals.get((container, env))


def _without_slots(container: GpuContainer) -> GpuContainer:
    variables = {
        env: variable._replace(slot="") for env, variable in container.text.variables.items()
    }
    return container._replace(text=container.text._replace(variables=variables))


def _originals(pod: Object) -> dict[tuple[str, str], str | None]:
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


def _read(
    item: Object, path: Path, options: PodOptions, earlier: _EarlierPass, starts: Starts
) -> GpuContainer:
    name = as_text(item.get("name"), "name")
    env_from = bool(item.get("envFrom"))
    entries = objects(item.get("env"), f"containers[{name}].env")
    launch, framework = starts.of(item, name, options, earlier)
    if WATCHED.isdisjoint(map(_name_of, entries)):
        text = ContainerText(name, _NO_VARIABLES, launch, env_from, framework)
        return GpuContainer(text, item, path, _NO_POSITIONS)
    positions: dict[str, list[int]] = {}
    for at, env in enumerate(map(_name_of, entries)):
        if env in WATCHED:
            positions.setdefault(env, []).append(at)
    variables = {
        env: _variable(env, entries[at[-1]], name, earlier) for env, at in positions.items()
    }
    text = ContainerText(name, variables, launch, env_from, framework)
    return GpuContainer(text, item, path, positions)


def only_requested(spec: Object) -> str:
    """
    Return what to say where a container asks for GPUs in its requests alone, which the API server
    refuses; empty where none does.
    """
    for field in ("initContainers", "containers"):
        for item in objects(spec.get(field), f"spec.{field}"):
            resources = as_object(item.get("resources"), "resources")
            limits = as_object(resources.get("limits"), "limits")
            for key in as_object(resources.get("requests"), "requests"):
                if (key in GPU_RESOURCES or key.startswith(PREFIXES)) and key not in limits:
                    name = as_text(item.get("name"), "name")
                    return (
                        f"{name} asks for {key} in its requests only, which Kubernetes refuses: "
                        "write it in its limits as well"
                    )
    return ""


def read_start(
    item: Object, options: PodOptions, pod: Object, starts: Starts | None = None
) -> ServerLaunch | None:
    """Recognise what one container of a pod runs, whether it asks for the GPU or not."""
    name = as_text(item.get("name"), "name")
    return (starts or Starts()).of(item, name, options, _EarlierPass(pod)).launch


def _as_the_user_wrote(
    entries: list[Object], container: str, earlier: _EarlierPass
) -> dict[str, str | None]:
    """
    Return variables without what an earlier pass has made of them; None is unseen, and of several
    of one name the last counts.
    """
    if len(entries) > _MANY and not any(map(_source_of, entries)):
        plain = dict(zip(map(_name_of, entries), map(_text_of, entries), strict=True))
        if _TEXT.issuperset(map(type, (*plain, *plain.values()))):
            return cast("dict[str, str | None]", plain)
    said: dict[str, str | None] = {}
    for entry in entries:
        env = as_text(entry.get("name"), "name")
        if not entry.get("valueFrom"):
            value = entry.get("value", "")
            if not isinstance(value, str):
                value = as_text(value, f"containers[{container}].env[{env}].value")
            said[env] = value
        elif env not in SETTABLE or slot_of(entry) is None:
            said[env] = None
        elif (text := earlier.original(container, env)) is not None:
            said[env] = text
    return said


def _variable(env: str, entry: Object, container: str, earlier: _EarlierPass) -> Variable:
    slot = slot_of(entry)
    if slot is not None and env in SETTABLE:
        return Variable(earlier.original(container, env), earlier.free(slot), points=True)
    text = as_text(entry.get("value"), f"containers[{container}].env[{env}].value")
    return Variable(text, hidden=bool(entry.get("valueFrom")) or "$(" in text)
