"""
The lines that parent and child exchange.
"""

from __future__ import annotations

import pytest

from agent.model.sample import GpuProcess
from agent.nvml.protocol import (
    Answer,
    Ask,
    Counted,
    Failure,
    Opened,
    Question,
    read_answer,
    read_line,
    read_question,
    write_answer,
    write_question,
)
from gpufence.errors import InvalidError, UnknownVersionError
from tests.support.agent.nvml import LOST, cut, listed, looked, memory

GOOD_CARD = {"uuid": "GPU-0", "model": "T4", "memory": [1, 2, 3, None]}
ANSWERS: list[tuple[Ask, Answer]] = [
    (Ask.OPEN, Opened("580.95.05")),
    (Ask.COUNT, Counted(8)),
    (Ask.LOOK, looked(memory=memory(5, None), capability=None)),
    (Ask.LOOK, looked(memory=LOST)),
    (Ask.LOOK, cut("GPU-1", "MIG-1", "MIG-2", gaps=(LOST,))),
    (Ask.LIST, listed(1.5, GpuProcess(1, None), graphics=(GpuProcess(2, 3),))),
    (Ask.LIST, Failure(None, "list", "entries of no known layout")),
    (Ask.LIST, Failure(-1, "nvmlOdd")),
]


@pytest.mark.parametrize("question", [Question(Ask.LOOK, "3"), Question(Ask.OPEN)])
def test_a_question_arrives_as_it_was_asked(question: Question) -> None:
    """
    Number, verb and subject of a question survive the line.
    """
    line = write_question(7, question)

    assert (7, question) == read_question(line)
    assert 1 == line.count("\n")


@pytest.mark.parametrize(("ask", "answer"), ANSWERS)
def test_an_answer_arrives_as_it_was_given(ask: Ask, answer: Answer) -> None:
    """
    Every kind of answer survives the line, what is unknown included.
    """
    line = write_answer(7, answer)

    number, said = read_line(line)
    assert (7, answer) == (number, read_answer(said, ask))
    assert 1 == line.count("\n")


def test_an_unknown_question_is_refused() -> None:
    """
    A verb that nobody knows is an error that names the known ones.
    """
    with pytest.raises(InvalidError, match="open, count, look, list"):
        read_question('{"v":1,"id":1,"ask":"dance"}')


@pytest.mark.parametrize("line", ['{"v":2,"id":1}', '{"id":1}'])
def test_another_version_is_named(line: str) -> None:
    """
    A line of another version is refused as such by both ends.
    """
    with pytest.raises(UnknownVersionError):
        read_question(line)
    with pytest.raises(UnknownVersionError):
        read_line(line)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (Ask.OPEN, {"driver": 5}),
        (Ask.COUNT, {"cards": -1}),
        (Ask.COUNT, {"cards": None}),
        (Ask.COUNT, {"failure": {"code": "x"}}),
        (Ask.LOOK, {"card": GOOD_CARD | {"memory": [1, 2]}}),
        (Ask.LOOK, {"card": GOOD_CARD | {"memory": None}}),
        (Ask.LOOK, {"card": GOOD_CARD | {"memory": [1, None, 3, 4]}}),
        (Ask.LOOK, {"card": GOOD_CARD, "instances": [7]}),
        (Ask.LOOK, {"card": GOOD_CARD, "gaps": [7]}),
        (Ask.LIST, {"at": None}),
        (Ask.LIST, {"at": True}),
        (Ask.LIST, {"at": 1, "compute": [[0, 1]]}),
        (Ask.LIST, {"at": 1, "compute": [[1]]}),
        (Ask.LIST, {"at": 1, "mps": [[1, -1]]}),
    ],
)
def test_nonsense_is_no_answer(ask: Ask, said: dict[str, object]) -> None:
    """
    What is not of the agreed shape raises; it never becomes a number.
    """
    with pytest.raises(InvalidError):
        read_answer(said, ask)


def test_a_line_that_is_no_json_is_refused() -> None:
    """
    What a library prints to stdout is no answer.
    """
    with pytest.raises(InvalidError):
        read_line("NVRM: warning")
