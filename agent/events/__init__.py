"""
PURE. What people are told, in one line each: the sentences, whom they concern, and how often.
"""

from agent.events.episodes import NO_EPISODES, Damping, Episodes, EventCreate, EventPatch, damped
from agent.events.notice import Notice, Regarding
from agent.events.report import notices, notices_of

__all__ = [
    "NO_EPISODES",
    "Damping",
    "Episodes",
    "EventCreate",
    "EventPatch",
    "Notice",
    "Regarding",
    "damped",
    "notices",
    "notices_of",
]
