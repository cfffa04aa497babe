"""
A script's way through time, without waiting.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpufence.quantity import GIB
from simulator.nvml.state import State
from simulator.workload.errors import StoppedError
from simulator.workload.frameworks import FRAMEWORKS
from simulator.workload.memory import AllocatorProgram, FrameworkMemory
from simulator.workload.run import RunContext, ScriptRun
from simulator.workload.script import read_script
from simulator.workload.signals import Workers


class FakePauses:
    """
    Time that passes only in pauses and ends for good at a given second.
    """

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
    """
    A machine with one T4, a process on it, and what that process said.
    """

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
    """
    There is a line per step with what the card shows after it.
    """
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
    """
    512 MiB a second from 2 to 6 GiB take eight seconds and end exactly there.
    """
    stage.play("hold 2Gi; grow 512Mi/s to 6Gi; exit 0")

    assert 6 * GIB == stage.memory.in_use
    assert pytest.approx(8.0, abs=0.1) == stage.pauses.time


def test_shrinking_takes_its_time(stage: Stage) -> None:
    """
    The way down is as steady as the way up.
    """
    stage.play("hold 3Gi; shrink 1Gi/s to 1Gi; exit 0")

    assert GIB == stage.memory.in_use
    assert pytest.approx(2.0, abs=0.1) == stage.pauses.time


def test_giving_back_more_than_there_is_ends_at_nothing(stage: Stage) -> None:
    """
    Less than nothing cannot be held.
    """
    stage.play("hold 1Gi; shrink 2Gi; exit 0")

    assert 0 == stage.memory.in_use


def test_without_an_exit_it_holds_on(stage: Stage) -> None:
    """
    After the last step the process stays until it is stopped, and keeps its memory.
    """
    with pytest.raises(StoppedError) as stopped:
        stage.play("hold 1Gi")

    assert 143 == stopped.value.code
    assert GIB == stage.memory.shown
    assert "script done, holding on" == stage.lines[-1]


def test_a_patient_process_waits_for_memory(tmp_path: Path) -> None:
    """
    Out of memory, it says so once, keeps what it has and goes on when there is room.
    """
    stage = Stage(tmp_path, patient=True)
    neighbour = stage.state.processes.put(stage.state.find("0"), 4_000_000, 10 * GIB, kept=True)
    stage.pauses.at[3.0] = neighbour.release
    stage.play("hold 2Gi; grow 8Gi; exit 0")

    assert 10 * GIB == stage.memory.in_use
    assert pytest.approx(3.0, abs=0.3) == stage.pauses.time
    assert 1 == sum("Waiting for memory." in line for line in stage.lines)
