"""PURE. What goes wrong and when, drawn before anything begins: the same seed, the same weather."""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Trouble(StrEnum):
    """What can go wrong."""

    CHILD_KILLED = "the child that reads NVML is killed"
    CHILD_STOPPED = "the child stops, as if a call never returned"
    LIBRARY_CRASHES = "a call of NVML crashes its caller"
    LIBRARY_HANGS = "a call of NVML never returns"
    DRIVER_UPGRADED = "the driver is replaced"
    CARD_LOST = "a card falls off the bus"
    LIST_REFUSED = "a card's processes may not be listed"
    LIST_UNKNOWN = "a card's processes are listed without what they hold"
    LIST_ZERO = "a card's processes are listed as holding nothing"
    LIST_GARBLED = "a card's list is nonsense"
    SLOW = "every call of NVML takes its time"
    CARD_FULL = "a card runs short of memory that no process shows"
    OUTAGE = "the API server is away"
    KILL_SWITCH = "the operator lets nobody be evicted for a while"
    POLICY_GONE = "the operator's word is not there"
    AGENT_KILLED = "the agent is killed and started again"


OF_CHILD: Final = frozenset(
    {
        Trouble.CHILD_KILLED,
        Trouble.CHILD_STOPPED,
        Trouble.LIBRARY_CRASHES,
        Trouble.LIBRARY_HANGS,
        Trouble.DRIVER_UPGRADED,
    }
)
"""The agent waits longer for each new child in a row, so these keep a distance."""

OF_CARD: Final = (
    Trouble.CARD_LOST,
    Trouble.LIST_REFUSED,
    Trouble.LIST_UNKNOWN,
    Trouble.LIST_ZERO,
    Trouble.LIST_GARBLED,
)
_CHILD_SECONDS = 20.0
_BREAK_SECONDS = (8.0, 25.0)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One trouble from a second on, for some seconds; `card` is where it hits if it hits one."""

    at: float
    trouble: Trouble
    seconds: float
    card: int


def short_program(dice: random.Random, cards: int) -> list[Disturbance]:
    """Draw the weather of a little more than a minute: one of each sort, clear sky in between."""
    program = (
        (5.0, dice.choice([Trouble.CHILD_KILLED, Trouble.LIBRARY_CRASHES]), 0.0),
        (10.0, dice.choice(OF_CARD), 3.0),
        (17.0, Trouble.CARD_FULL, 6.0),
        (26.0, dice.choice([Trouble.KILL_SWITCH, Trouble.POLICY_GONE]), 3.0),
        (33.0, Trouble.AGENT_KILLED, 0.0),
        (45.0, dice.choice([Trouble.CHILD_STOPPED, Trouble.DRIVER_UPGRADED]), 2.0),
        (53.0, Trouble.OUTAGE, 4.0),
        (65.0, Trouble.SLOW, 3.0),
    )
    return [Disturbance(*item, dice.randrange(cards)) for item in program]


def long_program(dice: random.Random, cards: int, seconds: float) -> list[Disturbance]:
    """Draw as much weather as there is time for, in no order."""
    program = []
    at, last_of_child = dice.uniform(*_BREAK_SECONDS), 0.0
    while at < seconds - 30:
        trouble = dice.choice(tuple(Trouble))
        if trouble in OF_CHILD and at - last_of_child < _CHILD_SECONDS:
            continue
        if trouble in OF_CHILD:
            last_of_child = at
        lasts = dice.uniform(1, 6)
        program.append(Disturbance(at, trouble, lasts, dice.randrange(cards)))
        at += lasts + dice.uniform(*_BREAK_SECONDS)
    return program
