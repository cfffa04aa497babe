"""
PURE. What parent and child say to each other: one line of JSON per question, one per answer.

Every line carries the version `v` and the question's number `id`; answers come in the order of the
questions. An answer is what was asked for, or the failure in its place: what could not be read is
never a number.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from agent.model.sample import CardMemory, GpuProcess
from gpufence.errors import InvalidError, Problem
from gpufence.shape import (
    Object,
    as_integer,
    as_list,
    as_object,
    as_text,
    objects,
    read_versioned,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 1

UNNAMED = "unknown"
"""
What stands for a name that the driver does not tell.
"""

_LINE = "line"


class Ask(StrEnum):
    """
    What can be asked.
    """

    OPEN = "open"  # load the library, initialise it, and say which driver that is
    COUNT = "count"  # how many cards the driver has
    LOOK = "look"  # what the card of this index is, with its memory and its MIG instances
    LIST = "list"  # the processes of the card or instance of this UUID


class Question(NamedTuple):
    """
    One question; `subject` is an index or a UUID.
    """

    ask: Ask
    subject: str = ""


class Failure(NamedTuple):
    """
    What NVML answered instead; without a code, `text` says what else went wrong.
    """

    code: int | None
    call: str
    text: str = ""


class Opened(NamedTuple):
    driver: str


class Counted(NamedTuple):
    cards: int


class Seen(NamedTuple):
    """
    A card, or a MIG instance with its profile.
    """

    uuid: str
    model: str
    capability: tuple[int, int] | None
    memory: CardMemory | Failure
    profile: str = ""


class Looked(NamedTuple):
    """
    One physical card; `instances` is None outside MIG mode. `gaps` are instances that are there and
    do not say who they are.
    """

    card: Seen
    instances: tuple[Seen, ...] | None = None
    gaps: tuple[Failure, ...] = ()


class Listed(NamedTuple):
    """
    The three lists of a card, and the time just before the driver was asked for the first.
    """

    at: float
    compute: tuple[GpuProcess, ...]
    graphics: tuple[GpuProcess, ...]
    mps: tuple[GpuProcess, ...]


Answer: TypeAlias = Opened | Counted | Looked | Listed | Failure


def write_question(number: int, question: Question) -> str:
    said = {"v": VERSION, "id": number, "ask": question.ask, "of": question.subject}
    return _line(said)


def read_question(line: str) -> tuple[int, Question]:
    """
    Read a question.

    Raises:
        InvalidError: nobody of ours wrote it.
        UnknownVersionError: a newer parent did.
    """
    said = read_versioned(line, _LINE, VERSION)
    try:
        ask = Ask(as_text(said.get("ask"), "ask"))
    except ValueError as error:
        known = ", ".join(Ask)
        problem = Problem("ask", repr(said.get("ask")), "is no question", f"ask one of {known}")
        raise InvalidError(problem) from error
    return as_integer(said.get("id"), "id"), Question(ask, as_text(said.get("of"), "of"))


def write_answer(number: int, answer: Answer) -> str:
    match answer:
        case Opened():
            said: dict[str, object] = {"driver": answer.driver}
        case Counted():
            said = {"cards": answer.cards}
        case Looked():
            said = {
                "card": _seen(answer.card),
                "instances": None
                if answer.instances is None
                else [_seen(item) for item in answer.instances],
                "gaps": [_failure(item) for item in answer.gaps],
            }
        case Listed():
            said = {
                "at": answer.at,
                "compute": _processes(answer.compute),
                "graphics": _processes(answer.graphics),
                "mps": _processes(answer.mps),
            }
        case _:
            said = {"failure": _failure(answer)}
    return _line({"v": VERSION, "id": number, **said})


def read_line(line: str) -> tuple[int, Object]:
    """
    Read which question a line answers, and what it says.

    Raises:
        InvalidError: it is no line of the child's.
        UnknownVersionError: the child is of a newer release.
    """
    said = read_versioned(line, _LINE, VERSION)
    return as_integer(said.get("id"), "id"), said


def read_answer(said: Object, ask: Ask) -> Answer:
    """
    Read the answer to such a question.

    Raises:
        InvalidError: it is none.
    """
    if "failure" in said:
        return _as_failure(said["failure"])
    match ask:
        case Ask.OPEN:
            return Opened(as_text(said.get("driver"), "driver"))
        case Ask.COUNT:
            return Counted(as_integer(said.get("cards"), "cards"))
        case Ask.LOOK:
            cut = said.get("instances")
            return Looked(
                _as_seen(said.get("card")),
                None if cut is None else tuple(map(_as_seen, as_list(cut, "instances"))),
                tuple(_as_failure(item) for item in objects(said.get("gaps"), "gaps")),
            )
        case _:
            return Listed(
                _as_time(said.get("at")),
                _as_processes(said, "compute"),
                _as_processes(said, "graphics"),
                _as_processes(said, "mps"),
            )


def _line(said: Object) -> str:
    return json.dumps(said, separators=(",", ":")) + "\n"


def _seen(item: Seen) -> Object:
    memory = item.memory
    return {
        "uuid": item.uuid,
        "model": item.model,
        "cc": item.capability,
        "profile": item.profile,
        "memory": {"failure": _failure(memory)}
        if isinstance(memory, Failure)
        else [memory.total_bytes, memory.used_bytes, memory.free_bytes, memory.reserved_bytes],
    }


def _failure(item: Failure) -> Object:
    return {"code": item.code, "call": item.call, "text": item.text}


def _processes(items: Iterable[GpuProcess]) -> list[tuple[int, int | None]]:
    return [(item.pid, item.used_bytes) for item in items]


def _as_seen(value: object) -> Seen:
    said = as_object(value, "card")
    capability = [as_integer(item, "cc") for item in as_list(said.get("cc"), "cc")]
    return Seen(
        uuid=as_text(said.get("uuid"), "uuid"),
        model=as_text(said.get("model"), "model"),
        capability=(capability[0], capability[1]) if len(capability) > 1 else None,
        memory=_as_memory(said.get("memory")),
        profile=as_text(said.get("profile"), "profile"),
    )


def _as_memory(value: object) -> CardMemory | Failure:
    if isinstance(value, dict):
        return _as_failure(value.get("failure"))
    match as_list(value, "memory"):
        case [total, used, free, reserved]:
            return CardMemory(
                as_integer(total, "memory"),
                as_integer(used, "memory"),
                as_integer(free, "memory"),
                _as_amount(reserved, "memory"),
            )
    raise InvalidError(Problem("memory", repr(value), "is no memory", "write four numbers"))


def _as_failure(value: object) -> Failure:
    said = as_object(value, "failure")
    code = said.get("code")
    return Failure(
        None if code is None else as_integer(code, "code", least=-(2**31)),
        as_text(said.get("call"), "call"),
        as_text(said.get("text"), "text"),
    )


def _as_processes(said: Object, field: str) -> tuple[GpuProcess, ...]:
    return tuple(_as_process(item, field) for item in as_list(said.get(field), field))


def _as_process(value: object, field: str) -> GpuProcess:
    match value:
        case [pid, used]:
            return GpuProcess(as_integer(pid, field, least=1), _as_amount(used, field))
    raise InvalidError(Problem(field, repr(value), "is no process", "write PID and bytes"))


def _as_amount(value: object, field: str) -> int | None:
    return None if value is None else as_integer(value, field)


def _as_time(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise InvalidError(Problem("at", repr(value), "is no time", "write seconds"))
