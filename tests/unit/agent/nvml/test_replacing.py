"""When a new child is started, and what it is not asked."""

from itertools import pairwise

import pytest

from agent.nvml.faults import Code
from agent.nvml.protocol import Counted, NvmlFailure, Opened, Question
from agent.nvml.session import MOST_STUCK, Session
from tests.support.agent.nvml import COUNT, CRASH, HANG, OPEN, Script, ask, look, looked


@pytest.mark.parametrize("harm", [HANG, CRASH])
def test_a_question_that_ends_two_children_is_left_out(
    session: Session, script: Script, harm: str
) -> None:
    """From the third sample on the other cards are read as before."""
    script.answers[look(1)] = harm
    ask(session, script)
    ask(session, script)

    assert ["count", "look 0", "look 2"] == ask(session, script)
    assert 3 == session.started
    assert "has ended 2 NVML processes in a row" in session.avoided(look(1)).text
    assert not session.avoided(look(0))


def test_what_has_not_changed_is_said_in_the_same_words(session: Session, script: Script) -> None:
    """Who logs a new trouble does not log this one each second."""
    script.answers[look(1)] = HANG
    ask(session, script)
    ask(session, script)
    first = session.avoided(look(1))
    script.clock.now += 17

    assert first == session.avoided(look(1))


def test_a_question_left_out_is_tried_again(session: Session, script: Script) -> None:
    """After a while it is asked again, and if it is answered, nothing is held against it."""
    script.answers[look(1)] = HANG
    ask(session, script)
    ask(session, script)
    script.clock.now += 61
    script.answers[look(1)] = looked("GPU-1")

    assert 4 == len(ask(session, script))
    script.answers[look(1)] = HANG
    ask(session, script)
    assert not session.avoided(look(1))


def test_a_question_that_goes_on_doing_harm_is_left_out_for_longer(
    session: Session, script: Script
) -> None:
    """The third child in a row that it ends doubles the time."""
    script.answers[look(1)] = HANG
    ask(session, script)
    ask(session, script)
    script.clock.now += 61
    ask(session, script)
    script.clock.now += 100

    assert "ended 3 NVML processes" in session.avoided(look(1)).text
    script.clock.now += 21
    assert not session.avoided(look(1))


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (look(1), Code.LIB_RM_VERSION_MISMATCH),
        (look(1), Code.UNINITIALIZED),
        (look(1), Code.DRIVER_NOT_LOADED),
        (COUNT, Code.UNKNOWN),
    ],
)
def test_what_concerns_everything_calls_for_a_new_child(
    session: Session, script: Script, question: Question, code: Code
) -> None:
    """A new driver needs a new process, which is no fault of the card that was asked for."""
    script.answers[question] = NvmlFailure(code, "nvmlCall")
    ask(session, script)
    trouble = session.trouble.text
    script.answers |= {look(1): looked("GPU-1"), COUNT: Counted(3), OPEN: Opened("590.44.01")}

    assert 4 == len(ask(session, script))
    assert (2, "590.44.01") == (session.started, session.driver)
    assert f"nvmlCall: code {int(code)}" in trouble


def test_a_driver_that_stays_away_is_asked_for_ever_more_rarely(
    session: Session, script: Script
) -> None:
    """Two children at once, then one after 1 s, 2 s, 4 s and so on up to a minute."""
    script.answers[OPEN] = NvmlFailure(Code.DRIVER_NOT_LOADED, "nvmlInit")
    starts = []
    for _ in range(200):
        before = session.started
        ask(session, script)
        starts += [script.clock()] * (session.started - before)
        script.clock.now += 1
    gaps = [int(late - early) for early, late in pairwise(starts)]

    assert [0, 1, 2, 4, 8, 16, 32, 60, 60] == gaps
    assert "the NVIDIA driver is not loaded" in session.trouble.text


def test_a_child_that_did_well_for_long_is_replaced_at_once(
    session: Session, script: Script
) -> None:
    """Failures long ago do not count."""
    for _ in range(3):
        ask(session, script)
        script.answers[COUNT] = CRASH
        ask(session, script)
        script.answers[COUNT] = Counted(3)
        script.clock.now += 100
        ask(session, script)
        script.clock.now += 100

    assert 4 == session.started


def test_children_that_cannot_be_killed_are_not_piled_up(session: Session, script: Script) -> None:
    """After three of them there is no fourth until one of them is gone."""
    script.answers[COUNT] = HANG
    script.unkillable = True
    for _ in range(10):
        ask(session, script)
        script.clock.now += 100
    stuck = session.trouble.text
    script.unkillable = False
    script.answers[COUNT] = Counted(3)

    assert MOST_STUCK == len(script.children)
    assert "cannot be killed; drain the node and reboot it" in stuck
    assert 4 == len(ask(session, script))


def test_a_process_that_cannot_be_started_is_tried_again(session: Session, script: Script) -> None:
    """A machine out of processes is trouble, not the end."""
    script.refuse_start = True
    answered = ask(session, script)
    trouble = session.trouble.text
    script.refuse_start = False

    assert [] == answered
    assert "Resource temporarily unavailable" in trouble
    assert 4 == len(ask(session, script))
