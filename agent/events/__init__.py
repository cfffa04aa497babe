"""PURE. What people are told, in one line each: the sentences, whom they concern, and how often."""

from agent.events.episodes import (
    NO_EPISODES,
    Damping,
    Episodes,
    EventCreate,
    EventPatch,
    Notice,
    damped,
    is_urgent,
)
from agent.events.notices import (
    NOTHING_ANNOUNCED,
    new_notices,
    notices,
    notices_of_act,
    unreadable,
)
from kube.events import Regarding

__all__ = [
    "NOTHING_ANNOUNCED",
    "NO_EPISODES",
    "Damping",
    "Episodes",
    "EventCreate",
    "EventPatch",
    "Notice",
    "Regarding",
    "damped",
    "is_urgent",
    "new_notices",
    "notices",
    "notices_of_act",
    "unreadable",
]
