"""A session replaces children that hang, crash or talk nonsense."""

from itertools import pairwise

import pytest

from agent.nvml.faults import Code
from agent.nvml.protocol import Ask, Counted, Limited, NvmlFailure, Opened, Question
from agent.nvml.session import MOST_STUCK, Aside, Session
from tests.support.agent.builders import (
    COUNT,
    CRASH,
    HANG,
    NONSENSE,
    OPEN,
    SETTINGS,
    Script,
    ask,
    look,
    looked,
    processes_of,
)


def test_everything_is_answered(session: Session, script: Script) -> None:
    """A child that does well answers all and stays."""
    assert ["count", "look 0", "look 1", "look 2"] == ask(session, script)
    assert ["count", "look 0", "look 1", "look 2"] == ask(session, script)
    assert (1, "580.95.05", "") == (session.started, session.driver, session.trouble.text)


def test_a_hanging_question_costs_half_a_sample(session: Session, script: Script) -> None:
    """What was answered before counts; the child is killed and the next one started at once."""
    script.answers[look(1)] = HANG
    begin = script.clock()

    assert ["count", "look 0"] == ask(session, script)
    assert 2.0 == script.clock() - begin
    assert [True, False] == [child.killed for child in script.children]
    assert "for the memory of card 1, the driver gave no answer for 2.0 s; " in session.trouble.text


@pytest.mark.parametrize(
    ("question", "answer", "words"),
    [
        (COUNT, HANG, "asked how many cards there are, the driver gave no answer"),
        (processes_of("GPU-0"), HANG, "asked for the processes of card GPU-0, the driver gave no"),
        (processes_of("GPU-0"), CRASH, "signal 11 (Segmentation fault)"),
        (look(1), NONSENSE, "does not make sense"),
    ],
)
def test_what_ends_a_child_is_said_until_the_next_one_is_well(
    session: Session, script: Script, question: Question, answer: str, words: str
) -> None:
    """The trouble names what was asked, or how the child ended, and no line is guessed at."""
    good, script.answers[question] = script.answers[question], answer
    answered = ask(session, script, [question])
    said, killed = session.trouble.text, script.children[0].killed
    script.answers[question] = good

    assert [] == answered
    assert words in said
    assert killed
    assert not session.avoided(question)
    assert 4 == len(ask(session, script))
    assert "" == session.trouble.text


def test_what_concerns_one_card_does_not(session: Session, script: Script) -> None:
    """A lost card is an answer like any other."""
    script.answers[look(1)] = NvmlFailure(Code.GPU_IS_LOST, "nvmlCall")

    assert 4 == len(ask(session, script))
    assert (1, "") == (session.started, session.trouble.text)


def test_an_answer_to_nothing_is_ignored(session: Session, script: Script) -> None:
    """A number that was never asked harms nobody; the question behind it counts as silent."""
    script.answers[look(1)] = "[999,false,[]]"

    assert "look 0" in ask(session, script)
    assert 2 == session.started


def test_a_slow_driver_is_not_killed(session: Session, script: Script) -> None:
    """What does not fit comes with the next sample, which waits for it and asks no more."""
    script.seconds = 1.5
    session.ready(script.clock() + 4)
    first = ask(session, script)
    asked: list[list[str]] = []
    again = script.asked_since(lambda: asked.append(ask(session, script, [look(1), look(2)])))

    assert ["count", "look 0"] == first
    assert [["look 1", "look 2"]] == asked
    assert [] == again
    assert 1 == session.started


def test_a_list_that_comes_late_is_an_answer(session: Session, script: Script) -> None:
    """A list that came while something else was waited for is there when it is asked for again."""
    session.ready(script.clock() + 4)
    script.seconds = 3.0
    question = processes_of("GPU-0")
    in_time = session.ask([question], script.clock() + 2)
    other = session.ask([COUNT], script.clock() + 4)
    late = script.asked_since(lambda: session.ask([question], script.clock() + 4))

    assert {} == in_time
    assert question in other
    assert [] == late


def test_a_list_may_take_all_of_a_sample(session: Session, script: Script) -> None:
    """A list gets twice the time of any other question before its child is replaced."""
    script.answers[processes_of("GPU-0")] = HANG
    begin = script.clock()
    ask(session, script, [processes_of("GPU-0")])

    assert 4.0 == script.clock() - begin
    assert script.children[0].killed


def test_opening_may_take_longer_than_a_sample(session: Session, script: Script) -> None:
    """Cards that wake up slowly hold up no sample beyond its deadline, and are waited for."""
    script.answers[OPEN] = HANG
    begin = script.clock()
    late = session.ready(begin + 4)
    script.answers[OPEN] = Opened("580")

    assert not late
    assert begin + 4 == script.clock()
    assert "NVML is being opened" in session.trouble.text
    assert session.ready(script.clock() + 4)
    assert (1, "") == (session.started, session.trouble.text)


def test_opening_does_not_take_for_ever(session: Session, script: Script) -> None:
    """A child that cannot open NVML for a minute is replaced."""
    script.answers[OPEN] = HANG
    for _ in range(20):
        session.ready(script.clock() + 4)

    assert script.children[0].killed
    assert 2 == session.started
    assert "NVML is being opened" in session.trouble.text


def test_before_it_is_open_nothing_else_is_asked(session: Session, script: Script) -> None:
    """A child that is still opening NVML is asked nothing else, and killed at the end."""
    script.answers[OPEN] = HANG
    answered = ask(session, script)
    session.close()

    assert [] == answered
    assert [OPEN] == script.asked
    assert (True, False) == (script.children[0].killed, script.children[0].closed)


def test_after_its_end_nothing_is_started(session: Session, script: Script) -> None:
    """A session that was closed has let its child end, if there was one, and starts no other."""
    ask(session, script)
    session.close()
    never = Session(SETTINGS, script.start, script.clock)
    never.close()

    assert script.children[0].closed
    assert [] == ask(session, script)
    assert (1, 0) == (session.started, never.started)


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


def test_a_question_left_out_is_tried_again(session: Session, script: Script) -> None:
    """After a while it is asked again; answered, nothing is held against it."""
    script.answers[look(1)] = HANG
    ask(session, script)
    ask(session, script)
    first = session.avoided(look(1))
    script.clock.now += 17
    same = session.avoided(look(1))
    script.clock.now += 44
    script.answers[look(1)] = looked("GPU-1")
    well = ask(session, script)
    script.answers[look(1)] = HANG
    ask(session, script)

    assert first == same  # so that it is logged once
    assert 4 == len(well)
    assert not session.avoided(look(1))


def test_a_question_that_goes_on_doing_harm_is_left_out_for_longer(
    session: Session, script: Script
) -> None:
    """The third child in a row that it ends doubles the time."""
    script.answers[look(1)] = HANG
    for seconds in (0, 61, 100):
        ask(session, script)
        script.clock.now += seconds

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


LIMIT_OF = Question(Ask.LIMITS, "GPU-0", "/sys/fs/cgroup/a")


def test_a_question_aside_has_a_child_of_its_own(script: Script) -> None:
    """The first question starts a child, a rest ends it, and the next question starts another."""
    script.answers[LIMIT_OF] = Limited(0, 5, 3)
    aside = Aside(SETTINGS, script.clock, script.start)
    aside.rest()

    assert [] == script.children
    assert {LIMIT_OF: Limited(0, 5, 3)} == aside.ask([LIMIT_OF])
    aside.rest()
    assert {LIMIT_OF: Limited(0, 5, 3)} == aside.ask([LIMIT_OF])
    assert [True, False] == [child.closed for child in script.children]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HANG, "for the memory limit of a cgroup on card GPU-0, the driver gave no answer"),
        (CRASH, "signal 11"),
        (NONSENSE, "does not make sense"),
    ],
)
def test_what_is_not_answered_aside_has_a_reason(script: Script, answer: str, words: str) -> None:
    """A hang, a crash and a child that goes mad are values."""
    script.answers[LIMIT_OF] = answer
    aside = Aside(SETTINGS, script.clock, script.start)

    assert words in str(aside.ask([LIMIT_OF])[LIMIT_OF])


def test_a_driver_that_opens_slowly_has_not_answered_yet(script: Script) -> None:
    """Nobody waits longer for an answer aside than for a look."""
    script.answers[OPEN] = HANG
    aside = Aside(SETTINGS, script.clock, script.start)
    begin = script.clock()

    assert "NVML is being opened" in str(aside.ask([LIMIT_OF])[LIMIT_OF])
    assert SETTINGS.deadline_seconds == script.clock() - begin
