"""Turns and words on threads of their own, through failures."""

import logging
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kube import ForbiddenError, ServerError, ThrottledError, UnreachableError
from kube.background import Background
from kube.errors import Failure
from kube.repeating import COMPLAINT_SECONDS, Repeating
from tests.http.kube.builders import FakeClock
from tests.support.observing import wait_until

AWAY = UnreachableError("GET /x: nobody answers")


def refusal(kind: type[ForbiddenError | ServerError | ThrottledError]) -> Exception:
    return kind(Failure("PATCH /x", 403, "Forbidden", "no", retry_after_seconds=7.0))


class Script:
    """Turns that return or raise what a test says, the last of it for ever."""

    def __init__(self, *steps: float | Exception) -> None:
        self.steps = list(steps)
        self.turns = 0

    def __call__(self) -> float:
        self.turns += 1
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        return step


@contextmanager
def repeating(
    turn: Callable[[], float], clock: FakeClock, forbidden: str = ""
) -> Iterator[Repeating]:
    made = Repeating("cards", turn, clock=clock, forbidden=forbidden)
    made.start()
    yield made
    assert made.stop(30)


def test_a_turn_says_when_the_next_is_due() -> None:
    """Pauses are as long as turns say, and a pause without bound lasts until it is woken."""
    script = Script(3.0, 5.0, math.inf)
    with repeating(script, clock := FakeClock()) as made:
        wait_until(lambda: 3 == script.turns)
        made.wake()
        wait_until(lambda: 4 == script.turns)

    assert [3.0, 5.0] == clock.pauses


def test_the_first_turn_may_be_waited_for() -> None:
    """What has just been done by its owner is not done again at once."""
    script, clock = Script(math.inf), FakeClock()
    made = Repeating("cards", script, clock=clock)
    made.start(9.0)
    wait_until(lambda: 1 == script.turns)

    assert made.stop(30)
    assert [9.0] == clock.pauses


def test_trouble_is_told_once_and_answered_by_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One complaint in ten minutes, with the remedy where a right is missing."""
    script = Script(*[refusal(ForbiddenError)] * 3, math.inf)
    with caplog.at_level(logging.INFO), repeating(script, clock := FakeClock(), forbidden="help"):
        wait_until(lambda: 4 == script.turns)
        wait_until(lambda: "cards: well again" in caplog.messages)

    complaints = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert ["cards: PATCH /x: 403 Forbidden: no; help"] == [each.message for each in complaints]
    assert [7.0, 7.0, 7.0] == clock.pauses


def test_trouble_is_there_to_be_asked_for_while_it_lasts() -> None:
    """What is wrong stands in `trouble` until a turn is well."""
    script = Script(AWAY, math.inf)
    clock = FakeClock(pauses=1)
    with repeating(script, clock) as made:
        assert clock.rested.wait(30)
        during = made.trouble
        made.wake()
        wait_until(lambda: 2 == script.turns and not made.trouble)

    assert str(AWAY) == during
    assert [0.25 + 0.25] == clock.pauses


def test_trouble_that_lasts_is_told_again(caplog: pytest.LogCaptureFixture) -> None:
    """After ten minutes, not at each turn."""
    clock = FakeClock(pauses=60)
    with repeating(Script(AWAY), clock):
        assert clock.rested.wait(30)

    told = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert 1 + int(sum(clock.pauses) // COMPLAINT_SECONDS) == len(told)


def test_a_bug_ends_no_turns() -> None:
    """It is logged and counted, and the next turn comes."""
    script = Script(ValueError("a bug"), math.inf)
    with repeating(script, FakeClock()) as made:
        wait_until(lambda: 2 == script.turns)

    assert 1 == made.bugs


def test_the_end_comes_on_the_same_thread() -> None:
    """What is finished there belongs to the thread that turned; a turn itself may end it."""
    seen: list[threading.Thread] = []

    def turn() -> float:
        seen.append(threading.current_thread())
        made.stop()
        return 0.0

    made = Repeating("ending", turn, finish=lambda: seen.append(threading.current_thread()))
    made.start()
    wait_until(lambda: not made.running)

    assert seen[0] is seen[1] is not threading.current_thread()
    assert 2 == len(seen)


class Paper:
    """Takes what is written, or refuses it as a test says, by key."""

    def __init__(self) -> None:
        self.written: list[tuple[str, int]] = []
        self.tried: list[str] = []
        self.refusing: dict[str, Exception] = {}
        self.refused_times = math.inf

    def __call__(self, key: str, value: int) -> None:
        self.tried.append(key)
        if key in self.refusing and self.tried.count(key) <= self.refused_times:
            raise self.refusing[key]
        self.written.append((key, value))


@contextmanager
def writing(
    paper: Paper, clock: FakeClock, keep: int = 10, lane: Callable[[str, int], str] | None = None
) -> Iterator[Background[str, int]]:
    made = Background("words", paper, keep=keep, lane=lane, clock=clock)
    yield made
    made.stop(30)


def test_of_each_key_the_last_word_is_written() -> None:
    """Urgent ones first, the others in the order in which their keys came."""
    with writing(paper := Paper(), FakeClock()) as made:
        for key, value in (("a", 1), ("b", 2), ("a", 3)):
            made.put(key, value)
        made.put("c", 4, urgent=True)
        made.put("b", 5, urgent=True)
        made.start()
        wait_until(lambda: 3 == made.written)

    assert [("c", 4), ("b", 5), ("a", 3)] == paper.written


def test_what_waits_has_a_bound() -> None:
    """What finds no place is dropped and counted; a newer word of what waits always finds one."""
    with writing(paper := Paper(), FakeClock(), keep=2) as made:
        for key, value in (("a", 1), ("b", 2), ("c", 3), ("a", 4)):
            made.put(key, value)
        made.put("urgent", 5, urgent=True)
        made.start()
        wait_until(lambda: not len(made))

    assert 1 == made.dropped
    assert [("urgent", 5), ("a", 4), ("b", 2)] == paper.written


def test_while_the_server_is_away_everything_waits() -> None:
    """Nothing is lost by an outage, however long, and the newest word is what is written."""
    paper, clock = Paper(), FakeClock(pauses=20)
    paper.refusing["a"] = AWAY
    with writing(paper, clock) as made:
        made.put("a", 1)
        made.put("b", 2)
        made.start()
        assert clock.rested.wait(30)
        before = (made.trouble, len(made), made.dropped)
        paper.refusing.clear()
        made.put("a", 3)
        wait_until(lambda: 2 == made.written)

    assert (str(AWAY), 2, 0) == before
    assert [("a", 3), ("b", 2)] == paper.written
    assert "" == made.trouble


def test_the_servers_wish_to_wait_is_obeyed() -> None:
    """Throttling holds up all, since it is about the server."""
    paper, clock = Paper(), FakeClock()
    paper.refusing["a"], paper.refused_times = refusal(ThrottledError), 1
    with writing(paper, clock) as made:
        made.put("a", 1)
        made.start()
        wait_until(lambda: 1 == made.written)

    assert [7.0] == clock.pauses


def test_a_server_that_has_just_started_forbids_for_a_moment() -> None:
    """What it forbids is tried again for a few seconds, and holds up nothing else meanwhile."""
    paper = Paper()
    paper.refusing["a"], paper.refused_times = refusal(ForbiddenError), 3
    with writing(paper, FakeClock()) as made:
        made.put("a", 1)
        made.put("b", 2)
        made.start()
        wait_until(lambda: 2 == made.written)

    assert [("b", 2), ("a", 1)] == paper.written
    assert 0 == made.refused


def test_what_stays_forbidden_is_given_up_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Of fifty words of one lane that is forbidden, the first is tried long, the others once."""
    paper = Paper()
    paper.refusing |= {str(number): refusal(ForbiddenError) for number in range(50)}
    with writing(paper, FakeClock(), keep=60, lane=lambda key, _: key.isdigit() * "full") as made:
        for number in range(50):
            made.put(str(number), number)
        made.put("other", 1)
        made.start()
        wait_until(lambda: 50 == made.refused)

    assert "other" in paper.tried[:2]
    assert len(paper.tried) < 50 + 10
    assert 1 == sum(each.levelno == logging.WARNING for each in caplog.records)


def test_a_server_that_stays_broken_for_one_is_given_up_after_a_while() -> None:
    """It is dropped, not refused: the fault is the server's."""
    paper = Paper()
    paper.refusing["a"] = refusal(ServerError)
    with writing(paper, FakeClock()) as made:
        made.put("a", 1)
        made.start()
        wait_until(lambda: 1 == made.dropped)

    assert (0, 0) == (made.written, made.refused)
    assert len(paper.tried) > 3


def test_a_bug_with_one_word_ends_no_writing(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, the word is lost, and the next is written."""
    paper = Paper()
    paper.refusing["a"] = ValueError("a bug")
    with writing(paper, FakeClock()) as made:
        made.put("a", 1)
        made.put("b", 2)
        made.start()
        wait_until(lambda: 1 == made.written)

    assert 1 == made.dropped
    assert "words: a word is not written" in caplog.messages


def test_what_waits_at_the_end_gets_its_last_chance() -> None:
    """Also what was to be tried later; what the server does not take then is counted."""
    paper, clock = Paper(), FakeClock(pauses=1)
    paper.refusing["a"] = refusal(ForbiddenError)
    with writing(paper, clock) as made:
        made.put("a", 1)
        made.start()
        assert clock.rested.wait(30)
        made.put("b", 2)
        made.stop(30)

    assert [("b", 2)] == paper.written
    assert (1, 1, 0) == (made.written, made.refused, made.dropped)


def test_a_server_that_is_away_at_the_end_is_not_waited_for() -> None:
    """What is lost by that is counted."""
    paper, clock = Paper(), FakeClock(pauses=1)
    paper.refusing["a"] = AWAY
    with writing(paper, clock) as made:
        for key in "abc":
            made.put(key, 1)
        made.start()
        assert clock.rested.wait(30)
        made.stop(30)

    assert 3 == made.dropped
    assert ["a", "a"] == paper.tried
