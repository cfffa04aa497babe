"""
When a process started, by /proc/PID/stat.
"""

from __future__ import annotations

import pytest

from agent.procfs.stat import Stat, parse_stat


def line(command: str = "python3", state: str = "S", started: str = "4711") -> str:
    """
    Write a line as the kernel does.
    """
    middle = " ".join(str(number) for number in range(4, 22))
    return f"17 ({command}) {state} {middle} {started} 23 24\n"


@pytest.mark.parametrize("command", ["python3", "a) R (b 1", "", "((", "two words", ") Z 1 2"])
def test_name_may_hold_anything(command: str) -> None:
    """
    The fields are counted from the last parenthesis, whatever the program is called.
    """
    assert Stat(command, gone=False, started_ticks=4711) == parse_stat(line(command))


@pytest.mark.parametrize(("state", "gone"), [("R", False), ("D", False), ("Z", True), ("X", True)])
def test_processes_that_have_ended(state: str, gone: bool) -> None:  # noqa: FBT001 - a column
    """
    A zombie is gone, a process that waits for its driver is not.
    """
    assert Stat("python3", gone, 4711) == parse_stat(line(state=state))


@pytest.mark.parametrize("text", ["", "17", "17 (x)", "17 (x) S 1 2 3", line(started="soon")])
def test_line_cut_short(text: str) -> None:
    """
    What is not a whole line names no process.
    """
    assert parse_stat(text) is None
