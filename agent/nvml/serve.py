"""
The child's loop: a line in, a line out, until the parent closes its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agent.nvml.protocol import Failure, read_question, write_answer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from agent.nvml.protocol import Answer, Question


class Answers(Protocol):
    """
    Who knows the answers; `agent.nvml.driver.Driver` is the real one.
    """

    def answer(self, question: Question) -> Answer: ...


def serve(lines: Iterable[bytes], output: BinaryIO, driver: Answers) -> None:
    """
    Answer question after question, each at once.

    Raises:
        GpufenceError: a line is no question of this release; nothing after it can be trusted.
        OSError: nobody reads the answers any more.
    """
    for line in lines:
        number, question = read_question(line.decode())
        try:
            answer = driver.answer(question)
        except Exception as error:  # noqa: BLE001 - a surprise on one card is no reason to lose all
            answer = Failure(None, question.ask, f"{type(error).__name__}: {error}")
        output.write(write_answer(number, answer).encode())
        output.flush()
