"""
What a program needs in its environment to see the simulated cards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.nvml.build import CURRENT, library_path

if TYPE_CHECKING:
    from pathlib import Path

STATE_VARIABLE = "GPUFENCE_SIMULATOR_STATE"
LIBRARY_VARIABLE = "LD_LIBRARY_PATH"


def environment(
    state: Path, variant: str = CURRENT, *, cache: Path | None = None
) -> dict[str, str]:
    """
    Return the variables to start a client with; both are read when it starts, not later.
    """
    return {
        STATE_VARIABLE: str(state.absolute()),
        LIBRARY_VARIABLE: str(library_path(variant, cache=cache).parent),
    }
