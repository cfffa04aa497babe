"""
What becomes of owners whose pods do not use their GPUs: pure functions of what is known.
"""

from controller.decide.brakes import refused, released
from controller.decide.last_look import last_look, why_not
from controller.decide.release import decide
from controller.decide.room import NodeLeft, nodes_left, room, room_of

__all__ = [
    "NodeLeft",
    "decide",
    "last_look",
    "nodes_left",
    "refused",
    "released",
    "room",
    "room_of",
    "why_not",
]
