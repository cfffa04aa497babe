"""
Look at processes and wait for what must become true.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.1


def wait_until(
    condition: Callable[[], object], what: object = "", seconds: float = PATIENCE_SECONDS
) -> None:
    """
    Wait until the condition holds, and say what did not become so.
    """
    assert eventually(condition, seconds), what or "it never became so"


def eventually(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> bool:
    """
    Wait, within bounds, until the condition holds; return whether it did.

    Many a condition starts a program, so it is looked at less often the longer it takes.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    return True


def processes_naming(text: str) -> set[int]:
    """
    Find the living processes whose command line contains the text, ourselves left out.
    """
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in command:
                found.add(int(entry.name))
    return found
