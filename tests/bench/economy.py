"""
A day of 40 workloads on 8 cards: fixed limits and `gpufence.io/burst` at the same promises.

`python -m tests.bench.economy` prints the table of docs/burst.md (minutes). The judge is the
agent's own; workloads, cards and the start-up hook's rule are simulated, by the second.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent.model.pod import PodLimit
from agent.model.policy import EvictionPolicy
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, pod
from tests.support.agent.world import World
from tests.support.builders import T4_BYTES

DAY: Final = 86_400
HOUR: Final = 3600
MINUTE: Final = 60
AGAIN_SECONDS: Final = 45
"""From an eviction to the first allocation of the pod that replaces it."""

LOOK_SECONDS: Final = 2
CONTEXT: Final = 300 * MIB
WORTH: Final = 64 * MIB
BESIDE: Final = 1 * GIB


@dataclass(frozen=True, slots=True)
class Kind:
    """A workload's request, and what it may use at most, in MiB; how many of 40 are such."""

    name: str
    count: int
    request: int
    limit: int


SERVER = Kind("server", 14, 2560, 5120)
BURSTER = Kind("burst of a minute", 8, 2048, 6144)
NOTEBOOK = Kind("notebook", 12, 2560, 5120)
TRAINING = Kind("training", 6, 5120, 5120)
KINDS = (SERVER, BURSTER, NOTEBOOK, TRAINING)


@dataclass(frozen=True, slots=True)
class Phase:
    """From a second on a workload needs so many MiB, and is at work or not."""

    begin: int
    need: int
    busy: bool


def phases(kind: Kind, dice: random.Random) -> list[Phase]:
    """Generate a day of one workload."""
    found = sorted(_GENERATORS[kind.name](dice), key=lambda each: each.begin)
    return [Phase(0, found[0].need, busy=False), *found] if found[0].begin else found


def _server(dice: random.Random) -> Iterator[Phase]:
    """Requests come by the hour; one in some needs the memory of a large batch for a minute."""
    weights, peak = dice.randint(1200, 1900), dice.uniform(12, 17)
    second = 0.0
    while second < DAY:
        load = max(0.02, math.cos((second / HOUR - peak) / 24 * 2 * math.pi))
        yield Phase(int(second), weights + int(600 * load), busy=True)
        if dice.random() < 0.06 * load:
            need = dice.randint(2600, SERVER.limit - 512)
            yield Phase(int(second) + 5, need, busy=True)
            yield Phase(int(second) + 5 + dice.randint(20, 90), weights + 400, busy=True)
            second += 100
        yield Phase(int(second) + 15, weights + 200, busy=False)
        second += 16 + dice.expovariate(1 / (40 / load))


def _burster(dice: random.Random) -> Iterator[Phase]:
    """It waits, and takes much for a minute, about every forty."""
    small, second = dice.randint(800, 1500), dice.uniform(0, HOUR)
    yield Phase(0, small, busy=False)
    while second < DAY:
        yield Phase(int(second), dice.randint(3000, BURSTER.limit - 512), busy=True)
        yield Phase(int(second) + dice.randint(40, 80), small, busy=False)
        second += MINUTE + dice.expovariate(1 / (40 * MINUTE))


def _notebook(dice: random.Random) -> Iterator[Phase]:
    """Some sessions a day, cell by cell; between them it keeps what its last cell left."""
    yield Phase(0, 700, busy=False)
    second = dice.uniform(8, 11) * HOUR
    while second < 20 * HOUR:
        end = second + dice.uniform(15, 60) * MINUTE
        while second < end:
            large = dice.random() < 0.15
            need = dice.randint(2600, NOTEBOOK.limit - 512) if large else dice.randint(900, 2400)
            yield Phase(int(second), need, busy=True)
            second += dice.uniform(20, 120)
            yield Phase(int(second), dice.randint(900, 2300), busy=False)
            second += dice.uniform(20, 180)
        second += dice.uniform(1, 4) * HOUR


def _training(dice: random.Random) -> Iterator[Phase]:
    """It works all day, and holds about the same."""
    for begin in range(0, DAY, 20 * MINUTE):
        yield Phase(begin, dice.randint(3600, 4700), busy=True)


_GENERATORS = {
    "server": _server,
    "burst of a minute": _burster,
    "notebook": _notebook,
    "training": _training,
}


@dataclass
class Workload:
    """One pod: what it needs now, what it holds, and when it last gave back or worked."""

    name: str
    kind: Kind
    day: list[Phase]
    hooked: bool
    card: int = 0
    held: int = 0
    place: int = 0
    worked_at: int = 0
    gave_at: int = -DAY
    away_until: int = 0
    wanting: bool = False

    def phase(self, now: int) -> Phase:
        while self.place + 1 < len(self.day) and self.day[self.place + 1].begin <= now:
            self.place += 1
            self.wanting = False
        return self.day[self.place]


@dataclass
class Figures:
    """What a day came to."""

    cards: int = 0
    bursts: int = 0
    refused: int = 0
    evicted: int = 0
    evicted_within: int = 0
    waits: list[int] = field(default_factory=list)
    given_back: int = 0


def workloads(seed: int, hooked: float) -> list[Workload]:
    dice = random.Random(seed)
    made = [
        Workload(
            f"{kind.name.split()[0]}-{number}", kind, phases(kind, dice), dice.random() < hooked
        )
        for kind in KINDS
        for number in range(kind.count)
    ]
    dice.shuffle(made)
    return made


def first_fit(sizes: Sequence[int], most: int) -> list[int]:
    """Return the card of each, the first one with room, in the order in which they come."""
    room: list[int] = []
    found = []
    for size in sizes:
        card = next((index for index, left in enumerate(room) if left >= size), len(room))
        if card == len(room):
            room.append(most)
        room[card] -= size
        found.append(card)
    return found


class Day:
    """A node on which workloads come first fit by their promises, with or without loans."""

    def __init__(self, seed: int, *, burst: bool, hooked: float = 1.0, tenths: float = 1.0) -> None:
        self.pods = workloads(seed, hooked)
        self.burst = burst
        self.figures = Figures()
        self.floor = max(GIB, int(T4_BYTES * tenths / 10))
        cards = first_fit([each.kind.request for each in self.pods], T4_BYTES // MIB)
        self.figures.cards = max(cards) + 1
        policy = EvictionPolicy(interval_seconds=LOOK_SECONDS)
        self.world = World(policy, cards=self.figures.cards)
        for each, card in zip(self.pods, cards, strict=True):
            each.card = card
            self._start(each)
        self.world.settle_in()
        self.waiting: Counter[str] = Counter()

    def run(self, seconds: int = DAY) -> Figures:
        for now in range(seconds):
            self._live(now)
            if self.burst and now % LOOK_SECONDS == 0:
                self._look(now)
        self.figures.waits += self.waiting.values()
        return self.figures

    def _start(self, each: Workload) -> None:
        limit = each.kind.limit if self.burst else each.kind.request
        uuid = CARDS[each.card].uuid
        limits = {uuid: PodLimit(limit * MIB, share_bytes=each.kind.request * MIB)}
        assigned = frozenset({uuid})
        made = pod(each.name, limits=limits, assigned=assigned, namespace=f"team-{each.name}")
        self.world.add(made, 0, card=each.card)
        each.held = 0

    def _live(self, now: int) -> None:
        free = [T4_BYTES // MIB] * self.figures.cards
        for each in self.pods:
            free[each.card] -= each.held
        for each in self.pods:
            if each.away_until:
                if now < each.away_until:
                    continue
                each.away_until = 0
                self._start(each)
            phase = each.phase(now)
            need = phase.need + CONTEXT // MIB
            if phase.busy or need > each.held:  # to ask for memory again and again is work
                each.worked_at = now
            first, each.wanting = not each.wanting, True
            self.figures.bursts += first and need > each.kind.request
            if need > each.held:
                free[each.card] -= self._take(each, need, free[each.card], first=first)
            elif self._gives(each, need, free[each.card], now):
                free[each.card] += each.held - need
                each.held, each.gave_at = need, now
                self.figures.given_back += 1

    def _take(self, each: Workload, need: int, free: int, *, first: bool) -> int:
        """Take what is needed, or wait for it within the request, or be refused above it."""
        most = each.kind.limit if self.burst else each.kind.request
        if need <= most and need - each.held <= free:
            taken, each.held = need - each.held, need
            self._waited(each)
            return taken
        if need > each.kind.request:
            self.figures.refused += first
            self._waited(each)
        else:
            self.waiting[each.name] += 1
        return 0

    def _waited(self, each: Workload) -> None:
        if each.name in self.waiting:
            self.figures.waits.append(self.waiting.pop(each.name))

    def _gives(self, each: Workload, need: int, free: int, now: int) -> bool:
        """Decide as the start-up hook does (webhook/python/sitecustomize.py)."""
        above = each.held * MIB + BESIDE > each.kind.request * MIB
        worth = (each.held - need) * MIB >= WORTH
        near = free * MIB < self.floor and now - each.gave_at > MINUTE
        return self.burst and each.hooked and above and worth and near

    def _look(self, now: int) -> None:
        world = self.world
        world.now = now
        world.idle = {}
        for each in self.pods:
            if each.away_until:
                continue
            world.hold(each.name, each.held * MIB, card=each.card)
            if now > each.worked_at:
                world.idle[each.name] = float(now - each.worked_at)
        before = set(world.pods)
        acts = len(world.acts)
        world.tick()
        evicted = {act.pod for act in world.acts[acts:]}
        for each in self.pods:
            if each.name in evicted:
                self.figures.evicted += 1
                self.figures.evicted_within += each.held <= each.kind.request
            if each.name in before and each.name not in world.pods:
                world.restart(each.name)
                each.held, each.away_until = 0, now + AGAIN_SECONDS


def spread(values: Sequence[float]) -> str:
    """Write a median and between what all lie."""
    middle = statistics.median(values)
    return f"{middle:g} ({min(values):g}-{max(values):g})"


def at_the_peak(seed: int) -> int:
    """Return how many cards it takes where each workload is promised the most it may need."""
    sizes = [each.kind.limit for each in workloads(seed, 1.0)]
    return max(first_fit(sizes, T4_BYTES // MIB)) + 1


ARMS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "fixed": ("fixed limits: the requests", {"burst": False}),
    "burst": ("burst, the hook in each", {"burst": True}),
    "bare": ("burst, no hook", {"burst": True, "hooked": 0.0}),
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.economy", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("arm", nargs="*", help=", ".join(ARMS))
    parser.add_argument("--tenths", type=float, default=1.0)
    arguments = parser.parse_args(argv)
    seeds = range(arguments.seeds)
    peaks = spread([at_the_peak(seed) for seed in seeds])
    print("| | cards | bursts | refused | evicted | given back | waits | seconds | longest |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    print(f"| fixed limits: the most that is needed | {peaks} | | 0 | 0 | | 0 | 0 | 0 |")
    for name, options in (ARMS[each] for each in arguments.arm or ARMS):
        days = [
            Day(seed, tenths=arguments.tenths, **options).run(int(arguments.hours * HOUR))
            for seed in seeds
        ]
        cells = [
            spread([each.cards for each in days]),
            spread([each.bursts for each in days]),
            spread([each.refused for each in days]),
            spread([each.evicted for each in days]),
            spread([each.given_back for each in days]),
            spread([len(each.waits) for each in days]),
            spread([sum(each.waits) for each in days]),
            spread([max(each.waits, default=0) for each in days]),
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        assert not any(each.evicted_within for each in days)
    return 0


if __name__ == "__main__":
    sys.exit(main())
