"""The lines that parent and child exchange."""

import pytest

from agent.model.sample import CardWork, GpuProcess
from agent.nvml.protocol import (
    Accounted,
    Answer,
    AnswerLine,
    Ask,
    Counted,
    NvmlFailure,
    Opened,
    Question,
    read_answer,
    read_line,
    read_question,
    write_answer,
    write_question,
)
from gpufence.errors import InvalidError
from tests.support.agent.nvml import LOST, cut, listed, looked, memory

CARD = ["GPU-0", "T4", None]
ANSWERS: list[tuple[Ask, Answer]] = [
    (Ask.OPEN, Opened("580.95.05")),
    (Ask.COUNT, Counted(8)),
    (Ask.LOOK, looked(memory=memory(5, None), capability=None)),
    (Ask.LOOK, looked(memory=LOST)),
    (Ask.LOOK, cut("GPU-1", "MIG-1", "MIG-2", gaps=(LOST,))),
    (Ask.LIST, listed(1.5, GpuProcess(1, None), graphics=(GpuProcess(2, 3),))),
    (Ask.LIST, listed(1.5, GpuProcess(1, None), mps=(GpuProcess(2, 3), GpuProcess(1, 4)))),
    (Ask.WORK, CardWork(1.5, 6.5, 40.0, {7: 0.25, 9: 1.0})),
    (Ask.WORK, CardWork(1.5, 1.5, 0.0, None, garbled=True)),
    (Ask.LIST, listed(1.5, GpuProcess(1, 9), graphics=(GpuProcess(1, None), GpuProcess(2, 3)))),
    (Ask.PEAKS, Accounted(on=False)),
    (Ask.PEAKS, Accounted(on=True, peaks=(GpuProcess(7, 2**33), GpuProcess(9, 1)))),
    (Ask.LIST, NvmlFailure(None, "list", "entries of no known layout")),
    (Ask.LIST, NvmlFailure(-1, "nvmlOdd")),
]


def test_every_question_has_words_of_its_own() -> None:
    """What a child was asked can be told in a sentence."""
    words = {Question(ask, "3").in_words for ask in Ask}

    assert len(Ask) == len(words)


@pytest.mark.parametrize("question", [Question(Ask.LOOK, "3"), Question(Ask.OPEN)])
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


@pytest.mark.parametrize("line", ['[1,"dance",""]', '{"ask":"open"}', "[]", "NVRM: warning"])
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
