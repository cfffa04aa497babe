"""What becomes of owners whose pods do not use their GPUs: pure functions of what is known."""

from controller.decide.owners import last_look, nodes_of, refused, released, why_not
from controller.decide.release import decide
from controller.decide.room import Places

__all__ = [
    "Places",
    "decide",
    "last_look",
    "nodes_of",
    "refused",
    "released",
    "why_not",
]
