"""The language of workloads, and a script's way through time, without waiting."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import GIB, MIB
from simulator.nvml.state import State
from simulator.workload.errors import StoppedError
from simulator.workload.frameworks import FRAMEWORKS
from simulator.workload.memory import AllocatorProgram, FrameworkMemory
from simulator.workload.run import RunContext, ScriptRun
from simulator.workload.script import (
    Action,
    Await,
    Busy,
    Crash,
    Exit,
    Fork,
    Hold,
    Leave,
    Resize,
    Serve,
    Slide,
    Wait,
    read_script,
)
from simulator.workload.signals import Workers


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
        ("await /tmp/go", Await("/tmp/go")),
        ("fork 3", Fork(3)),
        ("exit 0", Exit(0)),
        ("crash", Crash()),
        ("leave", Leave()),
        ("serve 127.0.0.1:61613/jobs", Serve("127.0.0.1", 61613, "jobs")),
    ],
)
def test_each_action_has_its_words(text: str, expected: Action) -> None:
    """A step is one action."""
    assert [expected] == actions(text)


def test_steps_follow_each_other() -> None:
    """Steps are separated by semicolons; after is a wait before one."""
    assert [
        Hold(2 * GIB),
        Wait(5.0),
        Slide(512 * MIB, 6 * GIB, up=True),
        Fork(3),
        Exit(0),
    ] == actions("hold 2Gi; after 5s grow 512Mi/s to 6Gi; fork 3; exit 0")


def test_empty_steps_are_nothing() -> None:
    """A trailing semicolon and an empty script are fine."""
    assert [Hold(GIB)] == actions(" hold 1Gi ; ; ")
    assert [] == actions("")


def test_a_step_keeps_its_words() -> None:
    """What is shown of a step is what was written."""
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
        ("await", '"await" ends too early; write the path of a file'),
        ("busy 101%", '"101" is out of place; write a whole number from 0 to 100'),
        ("fork -1", '"-1" is out of place; write a whole number from 0 to 64'),
        ("exit 256", "from 0 to 255"),
        ("exit ²", "from 0 to 255"),
    ],
)
def test_the_offending_word_is_quoted(text: str, complaint: str) -> None:
    """An error names the step, the word and what was expected in its place."""
    with pytest.raises(InvalidError) as caught:
        read_script(text)

    assert complaint in str(caught.value)


class FakePauses:
    """Time that passes only in pauses and ends for good at a given second."""

    def __init__(self, end: float = 1000.0) -> None:
        self.time = 0.0
        self.end = end
        self.at: dict[float, Callable[[], None]] = {}

    def now(self) -> float:
        return self.time

    def pause(self, seconds: float | None) -> None:
        self.time = self.end if seconds is None else self.time + seconds
        for due in [moment for moment in self.at if moment <= self.time]:
            self.at.pop(due)()
        if self.time >= self.end:
            raise StoppedError(15)


class Stage:
    """A machine with one T4, a process on it, and what that process said."""

    def __init__(self, folder: Path, *, patient: bool = False) -> None:
        self.state = State.create(folder / "cards", "T4")
        self.pauses = FakePauses()
        self.lines: list[str] = []
        self.memory = FrameworkMemory(
            self.state, self.state.find("0"), 0, AllocatorProgram(FRAMEWORKS["none"], {})
        )
        workers = Workers(self.lines.append)
        around = RunContext(self.pauses, workers, self.lines.append, patient=patient)
        self.run = ScriptRun([self.memory], around)

    def play(self, script: str) -> int:
        return self.run.follow(read_script(script))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_each_step_says_what_it_led_to(stage: Stage) -> None:
    """There is a line per step with what the card shows after it."""
    code = stage.play("hold 2Gi; grow 512Mi; shrink 1Gi; busy 50%; free; exit 7")

    assert 7 == code
    assert [
        "hold 2Gi: 2048 MiB on the card",
        "grow 512Mi: 2560 MiB on the card",
        "shrink 1Gi: 1536 MiB on the card",
        "busy 50%: 1536 MiB on the card",
        "free: 0 MiB on the card",
        "exit 7",
    ] == stage.lines


def test_growth_takes_its_time(stage: Stage) -> None:
    """512 MiB a second from 2 to 6 GiB take eight seconds and end exactly there."""
    stage.play("hold 2Gi; grow 512Mi/s to 6Gi; exit 0")

    assert 6 * GIB == stage.memory.in_use
    assert pytest.approx(8.0, abs=0.1) == stage.pauses.time


def test_shrinking_takes_its_time(stage: Stage) -> None:
    """The way down is as steady as the way up."""
    stage.play("hold 3Gi; shrink 1Gi/s to 1Gi; exit 0")

    assert GIB == stage.memory.in_use
    assert pytest.approx(2.0, abs=0.1) == stage.pauses.time


def test_giving_back_more_than_there_is_ends_at_nothing(stage: Stage) -> None:
    """Less than nothing cannot be held."""
    stage.play("hold 1Gi; shrink 2Gi; exit 0")

    assert 0 == stage.memory.in_use


def test_without_an_exit_it_holds_on(stage: Stage) -> None:
    """After the last step the process stays until it is stopped, and keeps its memory."""
    with pytest.raises(StoppedError) as stopped:
        stage.play("hold 1Gi")

    assert 143 == stopped.value.code
    assert GIB == stage.memory.shown
    assert "script done, holding on" == stage.lines[-1]


def test_a_patient_process_waits_for_memory(tmp_path: Path) -> None:
    """Out of memory, it says so once, keeps what it has and goes on when there is room."""
    stage = Stage(tmp_path, patient=True)
    neighbour = stage.state.processes.put(stage.state.find("0"), 4_000_000, 10 * GIB, kept=True)
    stage.pauses.at[3.0] = neighbour.release
    stage.play("hold 2Gi; grow 8Gi; exit 0")

    assert 10 * GIB == stage.memory.in_use
    assert pytest.approx(3.0, abs=0.3) == stage.pauses.time
    assert 1 == sum("Waiting for memory." in line for line in stage.lines)
