"""The plan carried out: who comes and goes, and what goes wrong, each at its second."""

from __future__ import annotations

import heapq
import os
import random
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from tests.integration.agent.chaos.people import Trouble, population
from tests.integration.agent.chaos.troubles import trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulator.progress import Progress
    from tests.integration.agent.chaos.people import Disturbance, Person
    from tests.integration.agent.chaos.stage import Stage

SEED = "GPUFENCE_CHAOS_SEED"
SECONDS = "GPUFENCE_CHAOS_SECONDS"
MEMORY_SECONDS = 2.0
AGAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is going to happen, fixed by the seed before it begins."""

    seed: int
    seconds: float
    people: list[Person]
    weather: list[Disturbance]


def planned(
    seed: int, seconds: float, weather: Callable[[random.Random], list[Disturbance]]
) -> Plan:
    """Draw a plan; weather and people have dice of their own, so that one can change alone."""
    people = population(random.Random(f"people {seed}"), seconds)
    return Plan(seed, seconds, people, weather(random.Random(f"weather {seed}")))


def said_seed(otherwise: int | None) -> int:
    """Return the seed that the environment names, or this one, or a new one."""
    text = os.environ.get(SEED, "")
    if text:
        return int(text)
    return random.SystemRandom().randrange(1_000_000) if otherwise is None else otherwise


def said_seconds(otherwise: float) -> float:
    return float(os.environ.get(SECONDS) or otherwise)


@dataclass(slots=True)
class Play:
    """A plan on a stage. `memory` is what agent and child held, every two seconds."""

    stage: Stage
    plan: Plan
    progress: Progress
    memory: list[int] = field(default_factory=list)
    _begin: float = 0.0
    _away: bool = False
    _agenda: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)

    def run(self) -> None:
        """
        Do everything in its order, later where something before it took long, and end all troubles.
        """
        self._begin = time.monotonic()
        with ExitStack() as undo:
            for person in self.plan.people:
                self._at(person.at, partial(self._enter, person))
            for item in self.plan.weather:
                self._at(item.at, partial(self._trouble, item, undo))
            self._at(MEMORY_SECONDS, self._weigh)
            while self._agenda and self._agenda[0][0] <= self.plan.seconds:
                second, _, act = heapq.heappop(self._agenda)
                time.sleep(max(second - self._now, 0.0))
                act()

    @property
    def _now(self) -> float:
        return time.monotonic() - self._begin

    def _at(self, second: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (second, next(self._order), act))

    def _enter(self, person: Person) -> None:
        if self._away:
            self._at(self._now + AGAIN_SECONDS, partial(self._enter, person))
            return
        uid = self.stage.enter(person)
        self._at(self._now + person.stays, partial(self._leave, person, uid))

    def _leave(self, person: Person, uid: str) -> None:
        if self._away:
            self._at(self._now + AGAIN_SECONDS, partial(self._leave, person, uid))
        else:
            self.stage.leave(person, uid)

    def _trouble(self, item: Disturbance, undo: ExitStack) -> None:
        self.progress.say(f"second {self._now:.1f} of seed {self.plan.seed}: {item.trouble}")
        self._away = item.trouble is Trouble.OUTAGE
        running = undo.enter_context(ExitStack())
        running.enter_context(trouble(self.stage, item))
        self._at(self._now + item.seconds, partial(self._relieve, running))

    def _relieve(self, running: ExitStack) -> None:
        running.close()
        self._away = False

    def _weigh(self) -> None:
        held = self.stage.agent.memory()
        if held:
            self.memory.append(held)
        self._at(self._now + MEMORY_SECONDS, self._weigh)
