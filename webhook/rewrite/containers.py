"""
PURE. What a pod's containers say already, before and after a pass of ours, what they start, and
which variables hold for them.

A pass before this one has put slots in the place of the user's values and kept those in the plan.
Taking them from there is no act of trust: a user who forges a plan can wish no more by it than by
writing the value itself, and every wish is held against the limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import count, filterfalse
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from gpufence import names
from gpufence.annotations import HookCarrier
from gpufence.errors import GpufenceError
from gpufence.plan import read_plan
from gpufence.shape import as_object, as_text, objects, texts
from webhook.driver_limits import VARIABLES as DRIVER_VARIABLES
from webhook.driver_limits import is_written, user_text
from webhook.engines.catalog import VARIABLES, alone, by_first
from webhook.engines.launch import Budget, SpentError, read_launch
from webhook.frameworks.figures import Base, Basis
from webhook.frameworks.table import (
    DEFEATS,
    GROWTH,
    TABLE,
    XLA,
    XLA_NEW,
    XLA_NEW_BLANK,
    FixedRow,
    FrameworkRow,
)
from webhook.rewrite.burst import VARIABLES as BURST_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from gpufence.annotations import PodOptions
    from gpufence.plan import Setting
    from gpufence.shape import Object
    from webhook.engines.catalog import Engine
    from webhook.engines.launch import ServerLaunch
    from webhook.frameworks.figures import PodTerms

_HOOKED = frozenset((names.ENV_FRACTION, names.ENV_TF_FRACTION, names.ENV_LIMIT_BYTES))


class Variable(NamedTuple):
    """
    What a container says about one variable already.

    `user` is the user's own text, also where a pass before this one has replaced it. `points`
    marks a variable that reads a slot, or is what that pass wrote for the driver; `slot` is that
    slot if it can be used again. `hidden` marks a value that cannot be read (valueFrom, `$(VAR)`).
    """

    user: str | None = None
    slot: str = ""
    points: bool = False
    hidden: bool = False


class ContainerText(NamedTuple):
    """
    What one container says, as far as frameworks go. `framework` marks that one is named which
    keeps to what its variables say.
    """

    name: str
    variables: Mapping[str, Variable]
    launch: ServerLaunch | None = None
    env_from: bool = False
    framework: bool = False


ABSENT = Variable()


def table_rows(
    text: ContainerText, terms: PodTerms, *, aware: bool, driver: bool
) -> Iterator[FrameworkRow | FixedRow]:
    """Yield the rows of the table that hold for a container, which the `driver` may hold, too."""
    launch = text.launch
    for row in TABLE:
        if driver and isinstance(row, FrameworkRow) and row.base is Base.NOTHING:
            continue
        if launch is not None and isinstance(row, FrameworkRow) and row.of_torch:
            points = terms.bound and text.variables.get(row.env, ABSENT).points
            if points or (aware and launch.pytorch and _heeded(launch, row.env, terms)):
                yield row if launch.pytorch else row._replace(basis=Basis.SHARE)
            continue
        if launch is not None and not _heeded(launch, row.env, terms):
            continue
        if row is XLA:
            yield from _xla_rows(text)
        elif row is not XLA_NEW_BLANK:
            yield row


def _heeded(launch: ServerLaunch, env: str, terms: PodTerms) -> bool:
    """Return whether anything in the container reads a variable of the table."""
    engine = launch.engine
    if engine is None or engine.heeds(env) or env in launch.refers:
        return True
    return terms.hook and engine.hooked and env in _HOOKED


def own_rows(
    engine: Engine, launch: ServerLaunch, *, told: bool
) -> Iterator[FrameworkRow | FixedRow]:
    """
    Yield the rows of a known program's own variables, and of the one that its flag reads, or could.
    """
    lever, heard = engine.lever, launch.overridden is None
    yield from (row for row in engine.rows if heard or lever is None or row is not lever.row)
    if lever is None or lever.row in engine.rows:
        return
    if (lever.appends and heard) or told or lever.row.env in launch.refers:
        yield lever.row


def _xla_rows(text: ContainerText) -> Iterator[FrameworkRow | FixedRow]:
    """
    Yield JAX's two names: the one that every version reads, and the other as blank.

    Where one of them cannot be read, setting the other could make both non-empty, so both stay.
    """
    old = text.variables.get(XLA.env, ABSENT)
    new = text.variables.get(XLA_NEW.env, ABSENT)
    if old.hidden or new.hidden:
        yield from (row for row, each in ((XLA, old), (XLA_NEW, new)) if each.hidden)
    else:
        yield from (XLA, XLA_NEW_BLANK)


SETTABLE = VARIABLES.union(BURST_VARIABLES, (row.env for row in (*TABLE, *GROWTH)))
WATCHED = SETTABLE.union(DEFEATS, [names.PYTHON_PATH], DRIVER_VARIABLES)

_SLOT_PATH = re.compile(rf"metadata\.annotations\['{re.escape(names.ENV_PREFIX)}(.*)'\]")
_SLOT = re.compile(r"([A-Za-z]\w*)(?:\.([1-9][0-9]{0,3}))?", re.ASCII)
_OLD_SLOT = re.compile(r"s(0|[1-9][0-9]{0,3})")  # of versions before, which numbered them
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
_NO_VARIABLES: dict[str, Variable] = {}
_NO_POSITIONS: dict[str, list[int]] = {}


Path: TypeAlias = tuple[str | int, ...]
"""Fields of Kubernetes and positions: nothing that a pointer has to escape."""


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


@dataclass(slots=True)
class Starts:
    """
    What the containers of one pod run: each is looked into once, all of them within one budget.
    """

    _budget: Budget = field(default_factory=Budget)
    _seen: dict[int, Started] = field(default_factory=dict)

    def of(self, item: Object, name: str, options: PodOptions, earlier: _EarlierPass) -> Started:
        """Recognise what one container runs, whether it asks for the GPU or not."""
        found = self._seen.get(id(item))
        if found is not None:
            return found
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
        found = self._seen[id(item)] = Started(launch, framework)
        return found


def read_containers(
    pod: Object, wanted: Container[str], options: PodOptions, starts: Starts
) -> list[tuple[GpuContainer, int]]:
    """
    Read the containers of these names in a manifest that `read_pod` has read before, each with the
    number that its slots have already, or with one that is free.
    """
    spec = cast("Mapping[str, list[Object] | None]", pod["spec"])
    earlier = _EarlierPass(pod)
    found = [
        (item, (field, position))
        for field in ("initContainers", "containers")
        for position, item in enumerate(spec.get(field) or ())
        if item.get("name") in wanted
    ]
    read = [_read(item, ("spec", *place), options, earlier, starts) for item, place in found]
    numbers = earlier.numbers
    free = filterfalse(frozenset(numbers.values()).__contains__, count())
    return [
        (item, numbers[item.text.name] if item.text.name in numbers else next(free))
        for item in read
    ]


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


@dataclass(slots=True)
class _EarlierPass:
    """
    What a pass before this one has left: slots, each to be used once, and in the plan the user's
    own values that they replaced. The plan is read when the first of those is asked for. `numbers`
    are those that the slots of containers have.
    """

    _pod: Object
    numbers: dict[str, int] = field(default_factory=dict)
    _old: set[str] = field(default_factory=set)
    _settings: dict[tuple[str, str], Setting] | None = None

    def again(self, slot: str, container: str, env: str) -> str:
        """Return a slot if this variable can use it again, else nothing."""
        match = _SLOT.fullmatch(slot)
        if match is not None and match[1] == env:
            number = int(match[2] or 0)
            if container not in self.numbers and number not in self.numbers.values():
                self.numbers[container] = number
            ours = self.numbers.get(container) == number
        else:
            ours = _OLD_SLOT.fullmatch(slot) is not None and slot not in self._old
            self._old.add(slot)
        return slot if ours else ""

    def original(self, container: str, env: str) -> str | None:
        found = self.setting(container, env)
        return None if found is None else found.user

    def setting(self, container: str, env: str) -> Setting | None:
        if self._settings is None:
            self._settings = _settings(self._pod)
        return self._settings.get((container, env))


def _settings(pod: Object) -> dict[tuple[str, str], Setting]:
    metadata = as_object(pod.get("metadata"), "metadata")
    annotations = as_object(metadata.get("annotations"), "metadata.annotations")
    try:
        plan = read_plan(as_text(annotations.get(names.PLAN), names.PLAN))
    except GpufenceError:
        return {}
    return {
        (name, setting.env): setting
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
    named = [entry.get("name") for entry in entries]
    if WATCHED.isdisjoint(named):
        text = ContainerText(name, _NO_VARIABLES, launch, env_from, framework)
        return GpuContainer(text, item, path, _NO_POSITIONS)
    positions: dict[str, list[int]] = {}
    for at, env in enumerate(named):
        if env in WATCHED:
            positions.setdefault(env, []).append(at)
    variables = {
        env: _variable(env, entries[at[-1]], name, earlier) for env, at in positions.items()
    }
    text = ContainerText(name, variables, launch, env_from, framework)
    return GpuContainer(text, item, path, positions)


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
    if len(entries) > _MANY and not any(entry.get("valueFrom") for entry in entries):
        plain = {entry.get("name"): entry.get("value", "") for entry in entries}
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
        else:  # it goes, with those of its name before it
            said.pop(env, None)
    return said


def _variable(env: str, entry: Object, container: str, earlier: _EarlierPass) -> Variable:
    slot = slot_of(entry)
    if slot is not None and env in SETTABLE:
        again = earlier.again(slot, container, env)
        return Variable(earlier.original(container, env), again, points=True)
    text = as_text(entry.get("value"), f"containers[{container}].env[{env}].value")
    if env in DRIVER_VARIABLES:
        ours = is_written(entry, earlier.setting(container, names.DRIVER_LIMIT))
        return Variable(earlier.original(container, env) if ours else user_text(entry), points=ours)
    return Variable(text, hidden=bool(entry.get("valueFrom")) or "$(" in text)
