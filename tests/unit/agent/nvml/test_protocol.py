"""What parent and child say to each other, and what the child makes of a driver's answers."""

import ctypes
import struct
from typing import Any

import pytest
from pynvml import c_nvmlProcessUtilizationSample_t as Entry

from agent.model.sample import CardSensors, CardWork, GpuProcess
from agent.nvml.faults import Code
from agent.nvml.process_lists import SENTINELS, WIDEST, ProcessLists, read_entries
from agent.nvml.protocol import (
    Accounted,
    Answer,
    AnswerLine,
    Ask,
    Counted,
    Limited,
    NvmlFailure,
    Opened,
    Question,
    read_answer,
    read_line,
    read_question,
    write_answer,
    write_question,
)
from agent.nvml.utilization import Mark, Samples, mark_to_go_on_from, read_samples, shares
from gpufence.errors import InvalidError
from gpufence.quantity import MIB
from tests.support.agent.builders import LOST, card_memory, cut, listed, looked

CARD = ["GPU-0", "T4", None]
ANSWERS: list[tuple[Ask, Answer]] = [
    (Ask.OPEN, Opened("580.95.05")),
    (Ask.COUNT, Counted(8)),
    (Ask.LOOK, looked(memory=card_memory(5, None), capability=None)),
    (Ask.LOOK, looked(memory=LOST)),
    (Ask.LOOK, cut("GPU-1", "MIG-1", "MIG-2", gaps=(LOST,))),
    (Ask.LIST, listed(1.5, GpuProcess(1, None), graphics=(GpuProcess(2, 3),))),
    (Ask.LIST, listed(1.5, GpuProcess(1, None), mps=(GpuProcess(2, 3), GpuProcess(1, 4)))),
    (Ask.WORK, CardWork(1.5, 6.5, 40.0, {7: 0.25, 9: 1.0})),
    (Ask.WORK, CardWork(1.5, 1.5, 0.0, None, garbled=True)),
    (Ask.LIST, listed(1.5, GpuProcess(1, 9), graphics=(GpuProcess(1, None), GpuProcess(2, 3)))),
    (Ask.PEAKS, Accounted(on=False)),
    (Ask.PEAKS, Accounted(on=True, peaks=(GpuProcess(7, 2**33), GpuProcess(9, 1)))),
    (Ask.SENSE, CardSensors(61, 42, None)),
    (Ask.LIMITS, Limited(0, 2**64 - 1, 3)),
    (Ask.LIST, NvmlFailure(None, "list", "entries of no known layout")),
    (Ask.LIST, NvmlFailure(-1, "nvmlOdd")),
]


def test_every_question_has_words_of_its_own() -> None:
    """What a child was asked can be told in a sentence."""
    words = {Question(ask, "3").in_words for ask in Ask}

    assert len(Ask) == len(words)


@pytest.mark.parametrize(
    "question",
    [
        Question(Ask.LOOK, "3"),
        Question(Ask.OPEN),
        Question(Ask.LIMITS, "GPU-0", "/sys/fs/cgroup/\u00e4 b"),
    ],
)
def test_a_question_arrives_as_it_was_asked(question: Question) -> None:
    """Number, verb and subject of a question survive the line."""
    line = write_question(7, question)

    assert (7, question) == read_question(line)
    assert 1 == line.count("\n")


@pytest.mark.parametrize(("ask", "answer"), ANSWERS)
def test_an_answer_arrives_as_it_was_given(ask: Ask, answer: Answer) -> None:
    """Every kind of answer survives the line, what is unknown included."""
    line = write_answer(7, answer)

    read = read_line(line)
    assert (7, answer) == (read.number, read_answer(read, ask))
    assert 1 == line.count("\n")


@pytest.mark.parametrize(
    "line", ['[1,"dance","",""]', '[1,"look","3"]', '{"ask":"open"}', "[]", "NVRM: warning"]
)
def test_what_is_no_question_is_refused(line: str) -> None:
    """A verb that nobody knows and a line of another shape are errors."""
    with pytest.raises(InvalidError, match="is not what the other end writes"):
        read_question(line)


@pytest.mark.parametrize(
    ("ask", "content"),
    [
        (Ask.OPEN, [5]),
        (Ask.COUNT, [None]),
        (Ask.COUNT, [-1]),
        (Ask.COUNT, [10**9]),
        (Ask.LOOK, [[*CARD, [1, 2], ""], None, []]),
        (Ask.LOOK, [[*CARD, None, ""], None, []]),
        (Ask.LOOK, [[*CARD, [1, None, 3, 4], ""], None, []]),
        (Ask.LOOK, [[*CARD, [1, 2, 3, 4], ""], [7], []]),
        (Ask.LOOK, [[*CARD, [1, 2, 3, 4], ""], None, [7]]),
        (Ask.LIST, [None, [], [], [], []]),
        (Ask.LIST, [1.0, False, [1], [1], []]),
        (Ask.LIST, [1.0, ["1"], [1], [1], []]),
        (Ask.LIST, [1.0, [], [1], [], []]),
        (Ask.LIST, [1.0, [], ["1"], [1], []]),
        (Ask.LIST, [1.0, [], [1], ["1"], []]),
        (Ask.LIST, [1.0, [], [1], [None], 7]),
        (Ask.LIST, [1.0, [], [1], [None], [[1, "7"]]]),
        (Ask.WORK, [1.0, 2.0, 3.0, ["1"], False]),
        (Ask.WORK, [1.0, 2.0, 3.0, 7, False]),
        (Ask.PEAKS, [1, [], []]),
        (Ask.SENSE, [61, 42]),
        (Ask.SENSE, [61, 42, 70.5]),
        (Ask.PEAKS, [True, [1], []]),
        (Ask.PEAKS, [True, [1], [1.5]]),
    ],
)
def test_nonsense_is_no_answer(ask: Ask, content: object) -> None:
    """What is not of the agreed shape raises; it never becomes a number."""
    with pytest.raises(InvalidError):
        read_answer(AnswerLine(1, False, content), ask)  # noqa: FBT003 - a column of the line


@pytest.mark.parametrize("line", ["NVRM: warning", "[1,2,3]", "[" * 100_000])
def test_a_line_of_another_shape_is_refused(line: str) -> None:
    """What a library prints to stdout is no answer."""
    with pytest.raises(InvalidError):
        read_line(line)


SENTINEL = SENTINELS[0]
CAPACITY = 64
NOBODY = 2**32 - 1
NOT_AVAILABLE = 2**64 - 1
WIDTHS = (16, 24, 32)
V3 = "nvmlDeviceGetComputeRunningProcesses_v3"
DEVICE = object()


class Library:
    """A library with one function, which answers the next code of its script, then success."""

    def __init__(self, name: str = V3, *codes: int, count: int = 1, garbage: int = 0) -> None:
        self.calls: list[int] = []
        self._codes = list(codes)
        self._count = count
        self._garbage = garbage
        setattr(self, name, self._answer)

    def _answer(self, device: object, count: Any, buffer: Any) -> int:
        assert device is DEVICE
        room = count._obj
        self.calls.append(room.value)
        code = self._codes.pop(0) if self._codes else 0
        if code == 0 and room.value < self._count:
            code = Code.INSUFFICIENT_SIZE
        room.value = self._count
        if code == 0:
            pid = 0 if self._garbage > 0 else 1000
            self._garbage -= 1
            whole = b"".join(
                struct.pack("=I4xQII", pid and pid + i, MIB, 0, 0) for i in range(self._count)
            )
            ctypes.memmove(buffer, whole, len(whole))
        return code


def read(library: Library) -> tuple[GpuProcess, ...] | NvmlFailure:
    lists = ProcessLists(library)  # type: ignore[arg-type]  # stands in for a CDLL
    return lists.read(DEVICE, "Compute")


ONE = (GpuProcess(1000, MIB),)


@pytest.mark.parametrize(
    ("library", "expected", "calls"),
    [
        (Library(), ONE, [64]),
        (Library(V3.replace("_v3", "_v2")), ONE, [64]),
        (Library(V3.replace("_v3", "")), ONE, [64]),
        (Library("nvmlInit"), NvmlFailure(Code.FUNCTION_NOT_FOUND, V3.removesuffix("_v3")), []),
        (
            Library(V3, *[Code.INSUFFICIENT_SIZE] * 99, count=2**31),
            NvmlFailure(Code.INSUFFICIENT_SIZE, V3),
            [64, 65536, 65536, 65536],
        ),
        (Library(V3, Code.NOT_SUPPORTED), NvmlFailure(Code.NOT_SUPPORTED, V3), [64]),
        (Library(garbage=1), ONE, [64, 64]),
    ],
    ids=[
        *("one call is enough", "an older version", "the oldest", "no version at all"),
        *("a storm ends somewhere", "a code that will not change", "caught in a change"),
    ],
)
def test_how_a_list_is_asked_for(
    library: Library, expected: tuple[GpuProcess, ...] | NvmlFailure, calls: list[int]
) -> None:
    """By the newest function there is, again where that may help, and in bounded room."""
    assert expected == read(library)
    assert calls == library.calls


def test_room_that_was_made_stays() -> None:
    """A long list is asked for again with twice its room, and the next one takes one call."""
    library = Library(count=100)
    lists = ProcessLists(library)  # type: ignore[arg-type]  # stands in for a CDLL
    found = [lists.read(DEVICE, "Compute") for _ in range(2)]

    assert [100, 100] == [len(each) for each in found]
    assert [64, 200, 200] == library.calls


def test_a_layout_that_nobody_knows_is_a_failure() -> None:
    """Entries that never make sense are unknown, not nobody."""
    failure = read(Library(garbage=99))

    assert NvmlFailure(None, V3, "entries of no known layout") == failure


def entry(width: int, pid: int, used: int, instance: int = NOBODY) -> bytes:
    whole = struct.pack("=IIQIIQ", pid, 0, used, instance, instance, 0)
    return whole[:width]


def buffer(*entries: bytes, fill: int = SENTINEL) -> bytes:
    return b"".join(entries).ljust(CAPACITY * WIDEST, bytes([fill]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_the_bytes_written_tell_the_width(width: int, count: int) -> None:
    """Entries of every known width are read right, however many there are."""
    expected = tuple(GpuProcess(1000 + i, (i + 1) * MIB) for i in range(count))
    raw = buffer(*(entry(width, item.pid, item.used_bytes or 0) for item in expected))

    assert expected == read_entries(raw, count, SENTINEL)


@pytest.mark.parametrize("width", WIDTHS)
def test_memory_that_is_not_available_is_none(width: int) -> None:
    """2^64-1 is neither zero nor huge."""
    raw = buffer(entry(width, 7, NOT_AVAILABLE))

    assert (GpuProcess(7, None),) == read_entries(raw, 1, SENTINEL)


def test_no_entries_are_an_empty_list() -> None:
    """A count of zero needs no layout."""
    assert () == read_entries(buffer(), 0, SENTINEL)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_wiped_buffer_is_read_by_what_makes_sense(width: int) -> None:
    """A driver that clears the whole buffer hides its width; then the entries themselves tell."""
    raw = buffer(*(entry(width, 1000 + i, 300 * MIB, 1) for i in range(3)), fill=0)
    pids = [item.pid for item in read_entries(raw, 3, SENTINEL) or ()]

    assert [1000, 1001, 1002] == pids


@pytest.mark.parametrize(
    "bad",
    [
        entry(24, 0, MIB),
        entry(24, 2**22 + 1, MIB),
        entry(24, 7, 2**48),
        entry(24, 7, MIB, instance=2**20),
    ],
    ids=["no PID", "no such PID", "no such memory", "no such instance"],
)
def test_one_implausible_entry_spoils_the_list(bad: bytes) -> None:
    """A list with an entry that cannot be is unknown as a whole."""
    assert None is read_entries(buffer(entry(24, 7, MIB), bad), 2, SENTINEL)


def test_a_count_beyond_the_buffer_is_no_list() -> None:
    """A driver that claims more than it was given room for is not believed."""
    assert None is read_entries(buffer(entry(24, 7, MIB)), 1_000_000, SENTINEL)


DATE = 1_700_000_000_000_000
MARK = Mark(1000.0, DATE, DATE / 1e6 - 1000.0)


def used(pid: int, date: int = DATE + 5, **use: int) -> Entry:
    return Entry(pid=pid, timeStamp=date, **use)


@pytest.mark.parametrize(
    ("seconds", "begins_anew"), [(5.0, False), (5.9, False), (-3600.0, True), (3600.0, True)]
)
def test_a_clock_that_was_set_begins_anew(seconds: float, *, begins_anew: bool) -> None:
    """
    Where the clock that dates samples moved otherwise than ours, nothing before now is covered.
    """
    mark = mark_to_go_on_from(MARK, 1005.0, DATE + int(seconds * 1e6))

    assert begins_anew is (mark.until == 1005.0)


def test_what_was_seen_is_not_news() -> None:
    """An entry that is no newer than the newest one seen names no worker."""
    found = read_samples([used(7, DATE, smUtil=50), used(8, smUtil=50)], DATE, DATE + 9)

    assert Samples({8: 50}, DATE + 5, garbled=False) == found


@pytest.mark.parametrize("use", ["smUtil", "memUtil", "encUtil", "decUtil"])
def test_any_use_is_work(use: str) -> None:
    """One percent of any engine makes a worker; an entry without any use does not."""
    found = read_samples([used(7, **{use: 1}), used(8)], DATE, DATE + 9)

    assert {7: 1} == found.workers


@pytest.mark.parametrize(
    "odd",
    [
        used(7, smUtil=101),
        used(0, smUtil=1),
        used(7, DATE + 10, smUtil=1),
    ],
)
def test_what_cannot_be_is_garbled(odd: Entry) -> None:
    """
    A share beyond 100 %, an entry of nobody and one from the future spoil the answer, and no later
    question begins after them.
    """
    found = read_samples([odd], DATE, DATE + 9)

    assert (DATE, True) == (found.newest, found.garbled)


@pytest.mark.parametrize(
    ("averaged", "covered", "expected"),
    [
        (5.0, 5.0, 0.2),
        (20.0, 5.0, 0.8),
        (60.0, 5.0, 1.0),
        (4.9, 5.0, 0.2),
        (5.0, 0.0, 0.2),
    ],
)
def test_an_average_over_more_is_a_larger_share_of_less(
    averaged: float, covered: float, expected: float
) -> None:
    """
    What a driver averages since the newest sample was done in the time of the answer, all of it.
    """
    assert {7: expected} == shares({7: 20}, averaged, covered)
