"""
The language of workloads.
"""

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import GIB, MIB
from simulator.workload.script import (
    Action,
    Busy,
    Crash,
    Exit,
    Fork,
    Hold,
    Resize,
    Slide,
    Wait,
    read_script,
)


def actions(text: str) -> list[Action]:
    return [step.action for step in read_script(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hold 2Gi", Hold(2 * GIB)),
        ("hold 1.5Gi managed", Hold(1536 * MIB, managed=True)),
        ("hold 1500M", Hold(1_500_000_000)),
        ("free", Hold(0)),
        ("grow 512Mi", Resize(512 * MIB)),
        ("shrink 512Mi", Resize(-512 * MIB)),
        ("grow 512Mi/s to 6Gi", Slide(512 * MIB, 6 * GIB, up=True)),
        ("shrink 1Gi/s to 0", Slide(GIB, 0, up=False)),
        ("busy 60%", Busy(60)),
        ("busy 60 %", Busy(60)),
        ("busy 0", Busy(0)),
        ("wait 500ms", Wait(0.5)),
        ("wait 2m", Wait(120.0)),
        ("wait 1.5s", Wait(1.5)),
        ("fork 3", Fork(3)),
        ("exit 0", Exit(0)),
        ("crash", Crash()),
    ],
)
def test_each_action_has_its_words(text: str, expected: Action) -> None:
    """
    A step is one action.
    """
    assert [expected] == actions(text)


def test_steps_follow_each_other() -> None:
    """
    Steps are separated by semicolons; after is a wait before one.
    """
    assert [
        Hold(2 * GIB),
        Wait(5.0),
        Slide(512 * MIB, 6 * GIB, up=True),
        Fork(3),
        Exit(0),
    ] == actions("hold 2Gi; after 5s grow 512Mi/s to 6Gi; fork 3; exit 0")


def test_empty_steps_are_nothing() -> None:
    """
    A trailing semicolon and an empty script are fine.
    """
    assert [Hold(GIB)] == actions(" hold 1Gi ; ; ")
    assert [] == actions("")


def test_a_step_keeps_its_words() -> None:
    """
    What is shown of a step is what was written.
    """
    texts = [step.text for step in read_script("after 5s busy 60%; hold 1Gi")]

    assert ["wait 5s", "busy 60%", "hold 1Gi"] == texts


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hold", 'step 1: "hold" ends too early; write an amount such as 2Gi'),
        ("hold 2Gx", 'step 1: "2Gx" is no amount of memory; write an amount such as 2Gi'),
        ("hold -1Gi", '"-1Gi" is no amount of memory'),
        ("hold 1Gi; jump 3", 'step 2: "jump" is no action; use one of after, hold, grow'),
        ("hold 1Gi now", '"now" is one word too many; write ";" before the next step'),
        ("grow 1Gi/s", "ends too early"),
        ("grow 1Gi/s for 3s", '"for" is out of place; write "to"'),
        ("grow 0/s to 1Gi", '"0/s" is no rate; write more than zero'),
        ("after soon hold 1Gi", '"soon" is no duration; write a duration such as 5s'),
        ("after 5s", '"after 5s" ends too early; write an action'),
        ("wait 5", '"5" is no duration'),
        ("busy 101%", '"101" is out of place; write a whole number from 0 to 100'),
        ("fork -1", '"-1" is out of place; write a whole number from 0 to 64'),
        ("exit 256", "from 0 to 255"),
        ("exit ²", "from 0 to 255"),
    ],
)
def test_the_offending_word_is_quoted(text: str, complaint: str) -> None:
    """
    An error names the step, the word and what was expected in its place.
    """
    with pytest.raises(InvalidError) as caught:
        read_script(text)

    assert complaint in str(caught.value)
