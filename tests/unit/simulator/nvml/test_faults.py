"""
Which functions a name stands for.
"""

import pytest

from gpufence.errors import InvalidError
from simulator.nvml.faults import FUNCTIONS, span
from simulator.nvml.layout import MAX_FUNCTIONS

MEMORY = "nvmlDeviceGetMemoryInfo"


def named(name: str) -> tuple[str, ...]:
    first, last = span(name)
    return FUNCTIONS[first : last + 1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (MEMORY, (MEMORY, f"{MEMORY}_v2")),
        (f"{MEMORY}_v1", (MEMORY,)),
        (f"{MEMORY}_v2", (f"{MEMORY}_v2",)),
        ("nvmlInit", ("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags")),
        ("nvmlInitWithFlags", ("nvmlInitWithFlags",)),
        ("nvmlDeviceGetName", ("nvmlDeviceGetName",)),
        ("*", FUNCTIONS),
    ],
)
def test_a_name_stands_for_its_versions(name: str, expected: tuple[str, ...]) -> None:
    """
    A name without a version means all versions, one with a version that one.
    """
    assert expected == named(name)


def test_a_name_from_nowhere_is_refused() -> None:
    """
    A fault for a function that is not there would never act, so it cannot be made.
    """
    with pytest.raises(InvalidError, match="is no function of the library"):
        span("open")


def test_all_functions_fit_the_state() -> None:
    """
    There is a counter for each function.
    """
    assert len(FUNCTIONS) <= MAX_FUNCTIONS
    assert len(FUNCTIONS) == len(set(FUNCTIONS))
