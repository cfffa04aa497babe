"""
How much of the processor a call takes, told as on one quiet machine.

Whatever else runs on a machine makes the same call dearer, by half and more: it shares caches and
the threads of a core. So a fixed loop of the interpreter is measured at the same moment in the same
way, and what the call takes is told by what that loop takes where nothing else runs. No tracer is
there meanwhile (that of coverage triples the time), and of garbage only what the call makes counts.
"""

import gc
import sys
import time
from collections.abc import Callable
from typing import TypeVar

Given = TypeVar("Given")

YARDSTICK_SECONDS = 0.00083
"""
What `_yardstick` takes where nothing else runs: the least of 12,000, Python 3.11,
AMD EPYC (Zen 5) at 2.6 GHz. The lowest thousandth of them lay within a hundredth of it.
"""

_STEPS = 8000
_ROUNDS = 12
_LOOKS = 3  # before and behind each round's call


def quiet_seconds(
    call: Callable[[Given], object],
    given: Callable[[], Given],
    *,
    enough: float = 0.0,
    rounds: int = _ROUNDS,
) -> float:
    """
    Return the least that a call takes the processor, as on the quiet machine of the yardstick.

    Each round hands it something made anew; no other begins once less than `enough` was taken.
    """
    least = yardstick = float("inf")
    for _ in range(rounds):
        value = given()
        yardstick = min(yardstick, *(_seconds(_yardstick, _STEPS) for _ in range(_LOOKS)))
        least = min(least, _seconds(call, value))
        yardstick = min(yardstick, *(_seconds(_yardstick, _STEPS) for _ in range(_LOOKS)))
        if least / yardstick * YARDSTICK_SECONDS < enough:
            break
    return least / yardstick * YARDSTICK_SECONDS


def _yardstick(steps: int) -> None:
    """Do what an interpreter does most: call, look up, and make short texts."""
    seen: dict[str, int] = {}
    for number in range(steps):
        key = f"k{number % 512}"
        seen[key] = seen.get(key, 0) + len(key)


def _seconds(call: Callable[[Given], object], value: Given) -> float:
    """Return what one call takes of the processor in this thread, and nothing of a tracer's."""
    trace, profile = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    sys.setprofile(None)
    gc.freeze()  # what is there already is no garbage of the call's
    try:
        began = time.thread_time()
        call(value)
        return time.thread_time() - began
    finally:
        gc.unfreeze()
        sys.setprofile(profile)
        sys.settrace(trace)
