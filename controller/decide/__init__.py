"""What becomes of owners whose pods do not use their GPUs: pure functions of what is known."""

from controller.decide.brakes import refused, released
from controller.decide.last_look import last_look, why_not
from controller.decide.release import decide
from controller.decide.room import Places

__all__ = [
    "Places",
    "decide",
    "last_look",
    "refused",
    "released",
    "why_not",
]
