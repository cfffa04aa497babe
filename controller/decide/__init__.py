"""
What becomes of owners whose pods do not use their GPUs: pure functions of what is known.
"""

from controller.decide.brakes import refused, released
from controller.decide.last_look import agents_word, last_look, why_not
from controller.decide.release import decide
from controller.decide.room import room

__all__ = ["agents_word", "decide", "last_look", "refused", "released", "room", "why_not"]
