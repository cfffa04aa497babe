"""
PURE. What parent and child say to each other: one line of JSON per question, one per answer.

Both ends are of one image, so a line carries no version, only the question's number. Answers come
in the order of the questions; each is what was asked for, or the failure in its place: what could
not be read is never a number. A line of another shape, which a child that goes mad or a library
that prints may send, is an error of ours and nothing else.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias, TypeGuard

from agent.model.sample import CardMemory, CardSensors, CardWork, GpuProcess
from gpufence.errors import InvalidError, Problem

UNNAMED = "unknown"
"""What stands for a name that the driver does not tell."""

_ENCODER = json.JSONEncoder(separators=(",", ":"))
_MOST_CARDS = 1024  # far more than a machine has; each is asked for
_AMOUNTS = {int, type(None)}
_PIDS = {int}
_SENSORS = len(CardSensors._fields)


class Ask(StrEnum):
    """What can be asked."""

    OPEN = "open"  # load the library, initialise it, and say which driver that is
    COUNT = "count"  # how many cards the driver has
    LOOK = "look"  # what the card of this index is, with its memory and its MIG instances
    LIST = "list"  # the processes of the card or instance of this UUID
    WORK = "work"  # what was done there since the last time
    SENSE = "sense"  # its temperature and power
    PEAKS = "peaks"  # the most that its processes have ever held
    LIMITS = "limits"  # what the driver holds a cgroup to there


_WORDS: Final = {
    Ask.OPEN: "to open NVML",
    Ask.COUNT: "how many cards there are",
    Ask.LOOK: "for the memory of card {}",
    Ask.LIST: "for the processes of card {}",
    Ask.WORK: "what is done on card {}",
    Ask.SENSE: "for the temperature of card {}",
    Ask.PEAKS: "for the most that processes have held on card {}",
    Ask.LIMITS: "for the memory limit of a cgroup on card {}",
}


class Question(NamedTuple):
    """One question; `subject` is an index or a UUID, `path` the folder of a cgroup."""

    ask: Ask
    subject: str = ""
    path: str = ""

    @property
    def in_words(self) -> str:
        """Name it in a sentence."""
        return _WORDS[self.ask].format(self.subject)


class NvmlFailure(NamedTuple):
    """What NVML answered instead; without a code, `text` says what else went wrong."""

    code: int | None
    call: str
    text: str = ""


class Opened(NamedTuple):
    driver: str


class Counted(NamedTuple):
    cards: int


class Seen(NamedTuple):
    """A card, or a MIG instance with its profile."""

    uuid: str
    model: str
    capability: tuple[int, int] | None
    memory: CardMemory | NvmlFailure
    profile: str = ""


class Looked(NamedTuple):
    """
    One physical card; `instances` is None outside MIG mode. `gaps` are instances that are there and
    do not say who they are.
    """

    card: Seen
    instances: tuple[Seen, ...] | None = None
    gaps: tuple[NvmlFailure, ...] = ()


class Listed(NamedTuple):
    """
    A card's processes by PID, and the time just before the driver was asked for them; `mps` are
    those that are clients of an MPS server.
    """

    at: float
    processes: tuple[GpuProcess, ...]
    mps: frozenset[int] = frozenset()


class Accounted(NamedTuple):
    """The most that processes have held, where the driver accounts (`on`)."""

    on: bool
    peaks: tuple[GpuProcess, ...] = ()


class Limited(NamedTuple):
    """
    What the driver holds a cgroup to on a card, in bytes, and what it counts against that; on some
    drivers that of the nearest ancestor with a limit, where the cgroup itself has none.
    """

    soft_bytes: int
    hard_bytes: int
    used_bytes: int


Answer: TypeAlias = (
    Opened | Counted | Looked | Listed | CardWork | CardSensors | Accounted | Limited | NvmlFailure
)


class AnswerLine(NamedTuple):
    """An answer whose kind only the question with this number tells."""

    number: int
    failed: bool
    content: object


def write_question(number: int, question: Question) -> str:
    return _ENCODER.encode([number, *question]) + "\n"


def read_question(line: str) -> tuple[int, Question]:
    """
    Read a question.

    Raises:
        InvalidError: the parent did not write it.
    """
    match _content(line):
        case [int(number), str(ask), str(subject), str(path)] if ask in list(Ask):
            return number, Question(Ask(ask), subject, path)
    raise _no("question", line)


def write_answer(number: int, answer: Answer) -> str:
    content: object = answer  # a tuple of tuples is a list of lists to JSON
    if isinstance(answer, Listed):
        least = [(item.pid, item.least_bytes) for item in answer.processes if item.least_bytes]
        content = answer.at, sorted(answer.mps), *_columns(answer.processes), least
    if isinstance(answer, Accounted):
        content = answer.on, *_columns(answer.peaks)
    if isinstance(answer, CardWork) and answer.workers is not None:
        content = answer._replace(workers=sorted(answer.workers.items()))  # type: ignore[arg-type]  # JSON
    failed = isinstance(answer, NvmlFailure)
    return _ENCODER.encode([number, failed, content]) + "\n"


def read_line(line: str) -> AnswerLine:
    """
    Read which question a line answers.

    Raises:
        InvalidError: it is no line of the child's.
    """
    match _content(line):
        case [int(number), bool(failed), content]:
            return AnswerLine(number, failed, content)
    raise _no("line", line)


def read_answer(line: AnswerLine, ask: Ask) -> Answer:
    """
    Read the answer to such a question.

    Raises:
        InvalidError: it is none.
    """
    return _failure(line.content) if line.failed else _answer(line.content, ask)


def _answer(content: object, ask: Ask) -> Answer:
    match ask, content:
        case Ask.OPEN, [str(driver)]:
            return Opened(driver)
        case Ask.COUNT, [int(cards)] if 0 <= cards <= _MOST_CARDS:
            return Counted(cards)
        case Ask.LOOK, [card, (None | list()) as items, list(gaps)]:
            instances = None if items is None else tuple(map(_seen, items))
            return Looked(_seen(card), instances, tuple(map(_failure, gaps)))
        case Ask.LIST, [float(at), list(mps), list(pids), list(amounts), least] if _are_pids(mps):
            processes = _with_least(_processes(pids, amounts), least)
            return Listed(at, processes, frozenset(mps))
        case Ask.WORK, [float(since), float(until), float(percent), workers, bool(garbled)]:
            return CardWork(since, until, percent, _workers(workers), garbled)
        case Ask.SENSE, [*figures] if len(figures) == _SENSORS and _are_amounts(figures):
            return CardSensors(*figures)
        case Ask.PEAKS, [bool(on), list(pids), list(amounts)]:
            return Accounted(on, _processes(pids, amounts))
        case Ask.LIMITS, [int(soft), int(hard), int(used)]:
            return Limited(soft, hard, used)
    raise _no("answer", content)


def _workers(content: object) -> dict[int, float] | None:
    if content is None:
        return None
    workers: dict[int, float] = {}
    for item in content if isinstance(content, list) else [content]:
        match item:
            case [int(pid), float(share)] if not isinstance(pid, bool) and 0 <= share <= 1:
                workers[pid] = share
            case _:
                raise _no("list of workers", content)
    return workers


def _columns(processes: tuple[GpuProcess, ...]) -> tuple[list[int], list[int | None]]:
    return [item.pid for item in processes], [item.used_bytes for item in processes]


def _processes(pids: list[object], amounts: list[object]) -> tuple[GpuProcess, ...]:
    fits = len(pids) == len(amounts) and _are_pids(pids)
    if not fits or not _are_amounts(amounts):
        raise _no("list of processes", [pids, amounts])
    return tuple(map(GpuProcess, pids, amounts))  # type: ignore[arg-type]  # they are


def _with_least(processes: tuple[GpuProcess, ...], content: object) -> tuple[GpuProcess, ...]:
    """Add what those hold at least of which the driver does not say how much they hold."""
    if content == []:
        return processes
    least: dict[int, int] = {}
    for pair in content if isinstance(content, list) else [content]:
        match pair:
            case [int(pid), int(amount)]:
                least[pid] = amount
            case _:
                raise _no("list of least amounts", content)
    return tuple(item._replace(least_bytes=least.get(item.pid, 0)) for item in processes)


def _are_amounts(content: list[object]) -> TypeGuard[list[int | None]]:
    return _AMOUNTS.issuperset(map(type, content))


def _are_pids(content: list[object]) -> bool:
    return _PIDS.issuperset(map(type, content))


def _seen(content: object) -> Seen:
    match content:
        case [str(uuid), str(model), (None | [int(), int()]) as version, memory, str(profile)]:
            capability = None if version is None else (version[0], version[1])
            return Seen(uuid, model, capability, _memory(memory), profile)
    raise _no("card", content)


def _memory(content: object) -> CardMemory | NvmlFailure:
    match content:
        case [int(total), int(used), int(free), int() | None as reserved]:
            return CardMemory(total, used, free, reserved)
    return _failure(content)


def _failure(content: object) -> NvmlFailure:
    match content:
        case [int() | None as code, str(call), str(text)]:
            return NvmlFailure(code, call, text)
    raise _no("failure", content)


def _content(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _no("line", line) from error


def _no(what: str, content: object) -> InvalidError:
    remedy = "look above in the agent's log for what its driver printed"
    return InvalidError(Problem(what, repr(content), "is not what the other end writes", remedy))
