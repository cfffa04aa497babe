"""Questions to one child after another: who hangs, crashes or talks nonsense is replaced."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.clock import boottime
from agent.model.sample import NO_TROUBLE, Trouble
from agent.nvml.child import Child, EndedError
from agent.nvml.faults import ends_session, trouble_of
from agent.nvml.protocol import (
    Ask,
    NvmlFailure,
    Opened,
    Question,
    read_answer,
    read_line,
    write_question,
)
from gpufence.errors import GpufenceError
from gpufence.times import doubled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from agent.nvml.child import Channel
    from agent.nvml.protocol import Answer
    from agent.nvml.settings import SamplerSettings

MOST_STUCK: Final = 3
"""Children within the kernel that even SIGKILL does not end; further ones would only join them."""

_OPEN: Final = Question(Ask.OPEN)
_FOR_ALL: Final = frozenset({Ask.OPEN, Ask.COUNT})
_KEPT: Final = frozenset({Ask.LIST, Ask.WORK, Ask.SENSE})
"""Worth something also when they come late."""

_TOLERATED_HARM: Final = 2
_OPENING: Final = Trouble(
    "NVML is being opened, which wakes every card up; turn the driver's persistence mode on if "
    "that takes long"
)
_LATE: Final = Trouble("the driver has not answered yet")
_LOOK: Final = "look in the kernel's log for Xid messages, reset the card or reboot the node"


@dataclass(frozen=True, slots=True)
class _Harm:
    """
    How often in a row a question was the end of a child, how long it is not asked for that, and
    until when.
    """

    strikes: int
    pause: float
    until: float


class Session:
    """
    The current child, its open questions, and what earlier children died of.

    A question that stands open for half of a sample's time, a list for all of it, is taken to hang
    and its child killed. After a first failure the next one starts at once, then after growing
    pauses. A question that harms two children in a row is left out for a while, so that one wedged
    card does not take the figures of the others along; a list until somebody else has had it
    answered and forgives it. `trouble` says why there is no child to ask.
    """

    def __init__(
        self,
        settings: SamplerSettings,
        start: Callable[[SamplerSettings], Channel],
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._start = start
        self._clock = clock
        self._channel: Channel | None = None
        self._stuck: list[Channel] = []
        self._open: dict[int, Question] = {}
        self._harm: dict[Question, _Harm] = {}
        self._late: dict[Question, Answer] = {}
        self._number = 0
        self._progress_at = 0.0
        self._ready_at: float | None = None
        self._start_at = 0.0
        self._failures = 0
        self.started = 0
        self.driver = ""
        self.trouble = NO_TROUBLE

    def ready(self, until: float) -> bool:
        """Have a child that has opened NVML, starting one if it is time; wait for it until then."""
        if self._channel is None:
            self._begin()
        if self._ready_at is None:
            self._await([_OPEN], until)
        return self._ready_at is not None

    def ask(self, questions: Collection[Question], until: float) -> dict[Question, Answer]:
        """
        Ask what is not open already, and return what was answered in time. A list, or the work or
        sensors of a card, that came when it was no longer waited for is an answer all the same.

        The rest is avoided, still open, or lost with its child.
        """
        late = {item: self._late.pop(item) for item in questions if item in self._late}
        if self._ready_at is None:
            return late
        wanted = [item for item in questions if item not in late and not self.avoided(item)]
        asked = frozenset(self._open.values())
        self._send([item for item in wanted if item not in asked])
        answers = self._await(wanted, until)
        self._late |= {
            item: answer
            for item, answer in answers.items()
            if item.ask in _KEPT and item not in questions
        }
        return answers | late

    def forgive(self, question: Question) -> None:
        """Ask again what was left out."""
        self._harm.pop(question, None)

    def avoided(self, question: Question) -> Trouble:
        """
        Return why a question is not asked at present, none if it is. The words stay the same for as
        long as the reason does, so that nobody takes them for news.
        """
        harm = self._harm.get(question)
        if harm is None or harm.until <= self._clock():
            return NO_TROUBLE
        how = f"left alone for {harm.pause:.0f} s"
        if harm.until == math.inf:
            how = "left alone here and asked for apart"
        return Trouble(
            f"asking for it has ended {harm.strikes} NVML processes in a row, "
            f"so it is {how}; {_LOOK}"
        )

    def close(self) -> None:
        """Let the child end; one that is in the middle of something is not waited for."""
        if self._channel is not None and self._open:
            self._channel.kill()
        elif self._channel is not None:
            self._channel.close()
        self._forget()
        self._start_at = math.inf
        self.trouble = Trouble("the agent is stopping")

    def _begin(self) -> None:
        """
        Start a child, unless it is too early for another one or too many cannot be got rid of.
        """
        self._stuck = [channel for channel in self._stuck if not channel.gone()]
        if len(self._stuck) >= MOST_STUCK:
            self.trouble = Trouble(
                f"{len(self._stuck)} NVML processes hang within the driver and cannot be killed; "
                "drain the node and reboot it"
            )
            return
        if self._clock() < self._start_at:
            return
        try:
            self._channel = self._start(self._settings)
        except OSError as error:
            self._fail(
                Trouble(f"no process to ask NVML can be started ({error}); free memory or PIDs")
            )
            return
        self.started += 1
        self._send([_OPEN])

    def _send(self, questions: list[Question]) -> None:
        if self._channel is None or not questions:
            return
        if not self._open:
            self._progress_at = self._clock()
        lines: list[str] = []
        for question in questions:
            self._number += 1
            self._open[self._number] = question
            lines.append(write_question(self._number, question))
        self._channel.send("".join(lines))

    def _await(self, wanted: list[Question], until: float) -> dict[Question, Answer]:
        """Receive until everything wanted is answered, the time is over, or the child is lost."""
        answers: dict[Question, Answer] = {}
        expected = set(wanted)
        while self._channel is not None and expected.intersection(self._open.values()):
            end = min(until, self._progress_at + self._patience)
            try:
                lines = self._channel.receive(max(end - self._clock(), 0.0))
                for line in lines:
                    answers.update(self._take(line))
            except EndedError as error:
                self._lose(Trouble(f"NVML took the process down that asked it ({error}); {_LOOK}"))
            except GpufenceError as error:
                self._open.clear()
                self._lose(Trouble(f"the process that asks NVML does not make sense ({error})"))
            else:
                if not lines and self._clock() >= end:
                    self._judge_silence()
                    break
        return answers

    def _take(self, line: str) -> dict[Question, Answer]:
        answer_line = read_line(line)
        question = self._open.pop(answer_line.number, None)
        if question is None:
            return {}
        self._progress_at = self._clock()
        self._harm.pop(question, None)
        answer = read_answer(answer_line, question.ask)
        if isinstance(answer, Opened):
            self._ready_at = self._progress_at
            self.driver = answer.driver
            self.trouble = NO_TROUBLE
        if isinstance(answer, NvmlFailure) and (question.ask in _FOR_ALL or ends_session(answer)):
            self._open.clear()
            self._lose(trouble_of(answer))
        return {question: answer}

    @property
    def _patience(self) -> float:
        if self._ready_at is None:
            return self._settings.start_seconds
        first = next(iter(self._open.values()), None)
        listing = first is not None and first.ask is Ask.LIST
        return self._settings.deadline_seconds / (1 if listing else 2)

    def _judge_silence(self) -> None:
        """Tell slow from hanging, once nothing has come for a while."""
        patience = self._patience
        if self._clock() >= self._progress_at + patience:
            asked = next(iter(self._open.values())).in_words
            text = f"asked {asked}, the driver gave no answer for {patience:.1f} s; {_LOOK}"
            self._lose(Trouble(text))
        elif self._ready_at is None:
            self.trouble = _OPENING

    def _lose(self, trouble: Trouble) -> None:
        """Get rid of the child; the first open question is the one that it died of."""
        channel, now = self._channel, self._clock()
        culprit = next(iter(self._open.values()), None)
        if culprit is not None and culprit.ask not in _FOR_ALL:
            strikes = 1 + (self._harm[culprit].strikes if culprit in self._harm else 0)
            limits = self._settings.avoid_seconds, self._settings.avoid_limit_seconds
            pause = _pause(strikes, *limits)
            if culprit.ask is Ask.LIST and strikes >= _TOLERATED_HARM:
                pause = math.inf
            self._harm[culprit] = _Harm(strikes, pause, now + pause)
        if channel is not None and not channel.kill():
            self._stuck.append(channel)
        if self._ready_at is not None:
            did_well = now - self._ready_at >= self._settings.restart_limit_seconds
            self._failures = 0 if did_well else self._failures
        self._forget()
        self._fail(trouble)
        if culprit is not None and self.avoided(culprit):
            self._start_at = now  # the next child is not asked what this one died of
        self._begin()

    def _fail(self, trouble: Trouble) -> None:
        self.trouble = trouble
        self._failures += 1
        limits = self._settings.restart_seconds, self._settings.restart_limit_seconds
        self._start_at = self._clock() + _pause(self._failures, *limits)

    def _forget(self) -> None:
        self._channel = None
        self._ready_at = None
        self._open.clear()


class Aside:
    """
    The real `agent.ports.NvmlAside`: a child of its own, started for the first question, ended by
    `rest`. What hangs or crashes it leaves the child that measures alone.
    """

    def __init__(
        self,
        settings: SamplerSettings,
        clock: Callable[[], float] = boottime,
        start: Callable[[SamplerSettings], Channel] = Child,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._start = start
        self._session: Session | None = None

    def ask(self, questions: Collection[Question]) -> dict[Question, Answer | Trouble]:
        """Ask, and wait as long as a look may take; without an answer there is the reason."""
        if self._session is None:
            self._session = Session(self._settings, self._start, self._clock)
        session, until = self._session, self._clock() + self._settings.deadline_seconds
        answers = session.ask(questions, until) if session.ready(until) else {}
        return {item: answers.get(item) or self._why(session, item) for item in questions}

    def rest(self) -> None:
        """Do without a child until the next question."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @staticmethod
    def _why(session: Session, question: Question) -> Trouble:
        return session.avoided(question) or session.trouble or _LATE


def _pause(failures: int, first_seconds: float, limit_seconds: float) -> float:
    """
    Return the pause after so many failures in a row: none after the first, then a growing one.
    """
    return doubled(first_seconds, limit_seconds, failures - 2) if failures > 1 else 0.0
