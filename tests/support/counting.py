"""How much is done, told by counts, which no other work on the machine changes."""

import sys
from collections.abc import Callable
from types import FrameType


def calls(do: Callable[[], object]) -> int:
    """Return how many functions were called."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        do()
    finally:
        sys.setprofile(before)
    return count
