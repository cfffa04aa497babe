"""
The plan: what the webhook decided for a pod and why, as it stands on the pod.

The one source for the binder, the agent's explanations and the plugin. It explains; what an agent
enforces it works out itself, from the pod.
"""

from __future__ import annotations

import json
from enum import StrEnum
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gpufence.annotations import MOST_PROCESSES, Headroom
from gpufence.errors import InvalidError, Problem
from gpufence.mode import Mode, read_mode
from gpufence.names import DRIVER_LIMIT, PLAN
from gpufence.quantity import read_bytes, write_bytes, write_mebibytes
from gpufence.shape import (
    Object,
    as_integer,
    as_object,
    as_text,
    as_texts,
    objects,
    read_versioned,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

E = TypeVar("E", bound=StrEnum)

VERSION = 1

FRACTIONS = frozenset({"fraction", "share", "pytorch", "arguments"})
"""The forms of settings that are a fraction of the card."""

DRIVER_FORM = "driver"
"""The form of the variables by which the driver itself holds a container to its limit."""

_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Done(StrEnum):
    """What became of a setting."""

    SET = "set"  # ours, where the user had none
    LOWERED = "lowered"  # the user's was larger than the share allows
    KEPT = "kept"  # the user's is within the share
    LEFT = "left"  # the user's cannot be read and stays
    PLANNED = "planned"  # observe: what cap would do


class Setting(NamedTuple):
    """
    One variable or flag of one container and the figures behind its value.

    L, C, T and A of the design: the container's part, the context reserve, the card, the allowance.
    `form` names the way the value is written, as the webhook's table of frameworks has it.
    """

    env: str
    slot: str
    form: str
    done: Done
    user: str | None = None
    limit_bytes: int | None = None
    reserve_bytes: int | None = None
    card_bytes: int | None = None
    allowance_bytes: int | None = None


class ContainerPlan(NamedTuple):
    """
    `runs` names the program that is known to run there, `reads` the settings which that is known
    to read; empty where it is none of those that gpufence knows. `kept` is False where nothing is
    known that keeps to the cap: it is offered to whatever may read it.
    """

    limit_bytes: int | None
    processes: int
    headroom: Headroom
    cap_bytes: int | None
    settings: tuple[Setting, ...] = ()
    runs: str = ""
    reads: tuple[str, ...] = ()
    kept: bool = True


class ProfileUsed(NamedTuple):
    """Which profile's amounts a pod holds to, and in which generation of its spec."""

    name: str
    generation: int


class Plan(NamedTuple):
    """
    `namespace` holds the namespace's annotations that counted when the pod was created: whoever
    computes again at binding must not ask what they are by then. `profile` is whose amounts the
    pod's are, None where nobody's but its own. Of `limit_bytes` a pod that bursts is promised
    `request_bytes`, any other all, which is None.
    """

    mode: Mode
    dialect: str
    limit_bytes: int | None
    containers: Mapping[str, ContainerPlan] = MappingProxyType({})
    namespace: Mapping[str, str] = MappingProxyType({})
    profile: ProfileUsed | None = None
    request_bytes: int | None = None


def write_plan(plan: Plan) -> str:
    """Write the annotation: one line of JSON."""
    containers = {
        name: write_container(item, ",".join(map(write_setting, item.settings)))
        for name, item in plan.containers.items()
    }
    return join_plan(plan, containers)


def write_setting(setting: Setting, amounts: str | None = None) -> str:
    """Write one setting, with `amounts` in the place of its own."""
    env, slot, form, done, user, *own = setting
    return (
        f'{{"env":{quoted(env)},"slot":{quoted(slot)},"form":{quoted(form)},'
        f'"user":{"null" if user is None else quoted(user)},"done":{quoted(done)},'
        f"{write_amounts(*own) if amounts is None else amounts}}}"
    )


@lru_cache(maxsize=64)
def write_amounts(
    limit: int | None, reserve: int | None, card: int | None, allowance: int | None
) -> str:
    """Write L, C, T and A of a setting, which most settings of a container have in common."""
    own = f'"T":{_amount(card)},"A":{_amount(allowance)}'
    return f'"L":{_amount(limit)},"C":{_amount(reserve)},{own}'


def write_container(container: ContainerPlan, settings: str) -> str:
    """Write one container's part of the annotation, whose settings have been written already."""
    cap = "null" if container.cap_bytes is None else f'"{write_mebibytes(container.cap_bytes)}"'
    runs = ""
    if container.runs or container.reads:
        reads = ",".join(map(quoted, container.reads))
        runs = f'"runs":{quoted(container.runs)},"reads":[{reads}],'
    runs += "" if container.kept else '"kept":false,'
    return (
        f'{{"limit":{_amount(container.limit_bytes)},"processes":{container.processes},'
        f'"headroom":"{container.headroom.value}","cap":{cap},{runs}"settings":[{settings}]}}'
    )


def join_plan(plan: Plan, containers: Mapping[str, str]) -> str:
    """Write the annotation of a plan whose containers have been written already."""
    namespace = f'"namespace":{_ENCODER.encode(dict(plan.namespace))},' if plan.namespace else ""
    if plan.profile is not None:
        namespace += f'"profile":{_ENCODER.encode(plan.profile._asdict())},'
    if plan.request_bytes is not None:
        namespace += f'"request":{_amount(plan.request_bytes)},'
    parts = ",".join([f"{quoted(name)}:{text}" for name, text in containers.items()])
    return (
        f'{{"v":{VERSION},"mode":"{plan.mode.name.lower()}","dialect":{quoted(plan.dialect)},'
        f'"limit":{_amount(plan.limit_bytes)},{namespace}"containers":{{{parts}}}}}'
    )


def read_plan(text: str, alike: dict[object, Setting] | None = None) -> Plan:
    """
    Read the annotation; `alike` are settings that have been read before, for whoever reads
    thousands: those of one node and one framework are the same.

    Raises:
        UnknownVersionError: a newer webhook wrote it; work the limits out instead.
        InvalidError: it is not what a webhook writes.
    """
    written = read_versioned(text, PLAN, VERSION)
    containers = as_object(written.get("containers"), f"{PLAN}.containers")
    alike = {} if alike is None else alike
    return Plan(
        mode=read_mode(as_text(written.get("mode"), f"{PLAN}.mode"), f"{PLAN}.mode"),
        dialect=as_text(written.get("dialect"), f"{PLAN}.dialect"),
        limit_bytes=_bytes(written.get("limit"), f"{PLAN}.limit"),
        containers={
            name: _container(as_object(item, f"{PLAN}.containers[{name}]"), name, alike)
            for name, item in containers.items()
        },
        namespace=as_texts(written.get("namespace"), f"{PLAN}.namespace"),
        profile=_profile(written.get("profile"), f"{PLAN}.profile"),
        request_bytes=_bytes(written.get("request"), f"{PLAN}.request"),
    )


def _profile(value: object, path: str) -> ProfileUsed | None:
    if value is None:
        return None
    written = as_object(value, path)
    name = as_text(written.get("name"), f"{path}.name")
    return ProfileUsed(name, as_integer(written.get("generation"), f"{path}.generation"))


def _container(written: Object, name: str, alike: dict[object, Setting]) -> ContainerPlan:
    path = f"{PLAN}.containers[{name}]"
    known: dict[str, int] = {}  # most settings of a container have the same amounts
    return ContainerPlan(
        limit_bytes=_bytes(written.get("limit"), f"{path}.limit"),
        processes=as_integer(
            written.get("processes"), f"{path}.processes", least=1, most=MOST_PROCESSES
        ),
        headroom=_member(Headroom, written.get("headroom"), f"{path}.headroom"),
        cap_bytes=_bytes(written.get("cap"), f"{path}.cap"),
        settings=tuple(
            _setting(item, f"{path}.settings[{position}]", known, alike)
            for position, item in enumerate(objects(written.get("settings"), f"{path}.settings"))
        ),
        runs=as_text(written.get("runs"), f"{path}.runs"),
        reads=texts(written.get("reads"), f"{path}.reads"),
        kept=written.get("kept") is not False,
    )


def _setting(
    written: Object, path: str, known: dict[str, int], alike: dict[object, Setting]
) -> Setting:
    same = tuple(written.items())
    try:
        found = alike.get(same)
    except TypeError:  # something is no text, and the reader says what
        return _read_setting(written, path, known)
    if found is None:
        found = alike[same] = _read_setting(written, path, known)
    return found


def _read_setting(written: Object, path: str, known: dict[str, int]) -> Setting:
    user = written.get("user")
    return Setting(
        env=as_text(written.get("env"), f"{path}.env"),
        slot=as_text(written.get("slot"), f"{path}.slot"),
        form=as_text(written.get("form"), f"{path}.form"),
        done=_member(Done, written.get("done"), f"{path}.done"),
        user=None if user is None else as_text(user, f"{path}.user"),
        limit_bytes=_known_bytes(written.get("L"), f"{path}.L", known),
        reserve_bytes=_known_bytes(written.get("C"), f"{path}.C", known),
        card_bytes=_known_bytes(written.get("T"), f"{path}.T", known),
        allowance_bytes=_known_bytes(written.get("A"), f"{path}.A", known),
    )


def driver_bytes(container: ContainerPlan) -> int | None:
    """Return to how much the driver is to hold a container on each card; None where it is not."""
    held = [
        each.limit_bytes
        for each in container.settings
        if each.env == DRIVER_LIMIT and each.done is not Done.PLANNED
    ]
    return held[0] if held else None


def _amount(amount: int | None) -> str:
    return "null" if amount is None else f'"{write_bytes(amount, largest="Mi")}"'


def _bytes(value: object, path: str) -> int | None:
    return None if value is None else read_bytes(value, path)


def _known_bytes(value: object, path: str, known: dict[str, int]) -> int | None:
    amount = known.get(value) if isinstance(value, str) else None
    if amount is None:
        amount = _bytes(value, path)
        if amount is not None:
            known[str(value)] = amount
    return amount


def _member(members: type[E], value: object, path: str) -> E:
    text = as_text(value, path)
    try:
        return members(text)
    except ValueError as error:
        remedy = f"write one of {', '.join(members)}"
        raise InvalidError(Problem(path, text, "is not a choice", remedy)) from error
