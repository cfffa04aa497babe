"""PURE. What comes in: a steady load, a wave and a burst, in seconds of a cluster."""

import math
from collections.abc import Callable, Mapping
from typing import Final

MESSAGE_SECONDS: Final = 2.0
START_SECONDS: Final = 20.0
WARM_UP_SECONDS: Final = 240.0
LENGTH_SECONDS: Final = 1440.0
MOST: Final = 24

_WAVE_SECONDS = 1200.0
_CALM, _LOUD = 3.0, 8.0


def _steady(_: float) -> float:
    return 8.5 / MESSAGE_SECONDS


def _wave(at: float) -> float:
    return (6 + 3 * math.sin(2 * math.pi * at / _WAVE_SECONDS)) / MESSAGE_SECONDS


def _burst(at: float) -> float:
    return (_LOUD if at % _WAVE_SECONDS > _WAVE_SECONDS * 0.75 else _CALM) / MESSAGE_SECONDS


LOADS: Final[Mapping[str, Callable[[float], float]]] = {
    "steady": _steady,
    "wave": _wave,
    "burst": _burst,
}
"""Messages a second at a time."""
