"""The grammar of a hostile tenant: what takes a neighbour's memory, and what befalls a node."""

import json
from collections.abc import Iterable
from enum import StrEnum
from random import Random
from typing import NamedTuple

THIEVES = 3
"""Pods of the tenant that his controllers make again whenever they are gone."""


class Kind(StrEnum):
    """What a tenant does, up to `SHIELD`; the rest befalls a node."""

    HOLD = "hold"  # holds so much above the limit
    SAWTOOTH = "sawtooth"  # does so for a part of each period
    CHURN = "churn"  # new processes in each period
    SWITCH = "switch"  # takes what it holds from card to card
    EPHEMERAL = "ephemeral"  # another container holds the excess
    LEAVE = "leave"  # ends its first thread and holds on in another (running programs only)
    FORK = "fork"  # spreads what it holds over three processes (running programs only)
    WORDS = "words"  # contradicts itself in another system's words (running programs only)
    FAT = "fat"  # pods as large as the API server takes, beside it (running programs only)
    CLAIM = "claim"  # his pods use one resource claim together (deciding half only)
    GROW = "grow"  # what is held grows by 1 MiB in each second
    MOVE = "move"  # the limit is lower by so much for a part of each period (deciding half only)
    OPEN = "open"  # nothing says what the limit is when a period begins (deciding half only)
    NAMELESS = "nameless"  # a process without a figure beside the others (deciding half only)
    STRANGER = "stranger"  # a process of no pod holds a little (deciding half only)
    BURST = "burst"  # the limit is higher by so much than the request (deciding half only)
    LULL = "lull"  # the neighbour is idle for a part of each period, and lends (deciding half only)
    UNASKED = "unasked"  # the pod asks for no GPU, and may hold nothing (deciding half only)
    LABELS = "labels"  # thousands of labels written after create (running programs only)
    LINGER = "linger"  # takes long to end
    DECOYS = "decoys"  # a small pod comes and goes in each period, slow to end
    CROWD = "crowd"  # many pods in three namespaces go over a little, so that limits look wrong
    SHIELD = "shield"  # a disruption budget allows nobody to go
    RESTART = "restart"  # the agent is started anew
    BLIND = "blind"  # no list of processes can be read
    SLOW = "slow"  # a list of processes takes as long as a period, up to ten seconds
    AWAY = "away"  # the API server is out of reach
    SWITCHED_OFF = "switched-off"  # an operator's kill switch

    @property
    def befalls(self) -> bool:
        return self in _BEFALL


_BEFALL = frozenset({Kind.RESTART, Kind.BLIND, Kind.AWAY, Kind.SWITCHED_OFF})
_DRAWN = (*(Kind.HOLD,) * 4, *(Kind.SAWTOOTH,) * 3, *Kind)
_AMOUNTS = (40, 63, 65, 100, 200, 255, 260, 400, 600, 1200, 2500, 5000, 9000, 16000)
_PERIODS = (1, 2, 3, 4, 5, 8, 10, 15, 20, 30, 31, 35, 40, 45, 60, 90, 120, 180, 300)
_SECONDS = (1, 3, 5, 10, 30, 60, 120, 300, 600, 900, 3600)


class Trick(NamedTuple):
    """
    One thing that is done from second `at` on for `seconds`.

    `who` is which of the thieves. `mebibytes` is an amount; `percent` of each `period` it lasts.
    """

    kind: Kind
    who: int
    at: int
    seconds: int
    mebibytes: int
    period: int
    percent: int

    def is_on(self, second: int) -> bool:
        return self.at <= second < self.at + self.seconds

    def is_up(self, second: int) -> bool:
        """Return whether this second is in the part of its period that counts."""
        since = second - self.at
        return self.is_on(second) and since % self.period * 100 < self.period * self.percent

    def begins(self, second: int) -> bool:
        """Return whether a period begins."""
        return self.is_on(second) and (second - self.at) % self.period == 0


Scheme = tuple[Trick, ...]
"""Everything that is tried at once."""

MOST_TRICKS = 9


def drawn(dice: Random, seconds: int) -> Scheme:
    """Draw a scheme of a few tricks within so many seconds."""
    return tuple(_trick(dice, seconds) for _ in range(dice.randint(1, 6)))


def changed(dice: Random, scheme: Scheme, seconds: int) -> Scheme:
    """Change a scheme a little: one trick more, one less, or one that is done otherwise."""
    tricks = list(scheme)
    for _ in range(dice.choice((1, 1, 2, 3))):
        way = dice.random()
        if not tricks or (way < 0.25 and len(tricks) < MOST_TRICKS):
            tricks.append(_trick(dice, seconds))
        elif way < 0.4 and len(tricks) > 1:
            tricks.pop(dice.randrange(len(tricks)))
        else:
            place = dice.randrange(len(tricks))
            fresh = _trick(dice, seconds)
            field = dice.choice(("who", "at", "seconds", "mebibytes", "period", "percent"))
            tricks[place] = tricks[place]._replace(**{field: getattr(fresh, field)})
    return tuple(tricks)


def written(scheme: Scheme) -> str:
    """Write a scheme so that it can be read again and put into a test."""
    return json.dumps([[str(trick.kind), *trick[1:]] for trick in scheme], separators=(",", ":"))


def read(text: str) -> Scheme:
    rows: Iterable[list[object]] = json.loads(text)
    return tuple(Trick(Kind(str(kind)), *map(_whole, numbers)) for kind, *numbers in rows)


def _whole(number: object) -> int:
    return int(str(number))


def _trick(dice: Random, seconds: int) -> Trick:
    return Trick(
        kind=dice.choice(_DRAWN),
        who=dice.randrange(THIEVES),
        at=dice.choice((0, 0, dice.randrange(seconds))),
        seconds=dice.choice(_SECONDS),
        mebibytes=dice.choice(_AMOUNTS),
        period=dice.choice(_PERIODS),
        percent=dice.choice((5, 10, 20, 30, 33, 40, 50, 60, 75, 90)),
    )
