"""What should become of a queue by calculation, and the loads on it."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


TOLERANCE: Final = 0.1
_SYNC_SECONDS: Final = 15.0
_ANSWER_SECONDS: Final = 5.0
_MEAN_SECONDS: Final = 60.0
_LEAST_STEP: Final = 4


class Rule(StrEnum):
    """What replicas are reckoned from."""

    BACKLOG = "backlog"  # seconds of work that waits, and nothing else
    BUSY = "busy"  # the larger of that and the replicas at work
    TOUCHED = "touched"  # the same, each counted as at work for all of 5 s in which it did anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One run; times in seconds. `rate` gives messages a second at a time."""

    rate: Callable[[float], float]
    rule: Rule
    message: float = 0.5
    target: float = 5.0
    utilization: float = 0.8
    start: float = 20.0
    window: float = 300.0
    most: int = 100
    length: float = 3600.0
    warm_up: float = 600.0
    seed: int = 1


def waits_of(times: Sequence[float], message: float, replicas: int) -> list[float]:
    """Return how long each message waits for so many replicas that are always there."""
    free = [0.0] * replicas
    waits = []
    for at in times:
        begins = max(at, heapq.heappop(free))
        heapq.heappush(free, begins + message)
        waits.append(begins - at)
    return waits


def percentile(values: Sequence[float], part: float) -> float:
    """Return what so large a part of the values does not exceed."""
    return sorted(values)[max(math.ceil(len(values) * part) - 1, 0)]


def least_fixed(times: Sequence[float], message: float, target: float) -> int:
    """Return the fewest fixed replicas with which 99 of 100 messages meet the target."""
    replicas = 1
    while percentile(waits_of(times, message, replicas), 0.99) > target:
        replicas += 1
    return replicas


class Moment(NamedTuple):
    at: float
    replicas: int
    working: int
    waiting: int


class Run(NamedTuple):
    """What came of it after the warm-up; `least` is the load in whole replicas."""

    moments: tuple[Moment, ...]
    mean_replicas: float
    most_replicas: int
    least: float
    wait_p99: float
    over_target: float


@dataclass(slots=True)
class _Pool:
    settings: Settings
    replicas: int = 1
    number: int = 0
    starting: dict[int, float] = field(default_factory=dict)
    free: deque[int] = field(default_factory=deque)
    working: dict[int, float] = field(default_factory=dict)
    leaving: set[int] = field(default_factory=set)
    waiting: deque[float] = field(default_factory=deque)
    waits: list[tuple[float, float]] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    worked: float = 0.0  # replica-seconds, up to `counted_at`
    counted_at: float = 0.0
    shares: deque[float] = field(default_factory=deque)
    wanted: deque[tuple[float, int]] = field(default_factory=deque)
    events: list[tuple[float, str, int]] = field(default_factory=list)

    def add(self, at: float, ready: float) -> None:
        self.number += 1
        self.starting[self.number] = ready
        heapq.heappush(self.events, (ready, "ready", self.number))
        del at

    def count(self, now: float) -> None:
        self.worked += len(self.working) * (now - self.counted_at)
        self.counted_at = now

    def serve(self, now: float) -> None:
        while self.free and self.waiting:
            worker, came = self.free.popleft(), self.waiting.popleft()
            self.count(now)
            self.waits.append((now, now - came))
            self.working[worker] = now
            self.touched.add(worker)
            heapq.heappush(self.events, (now + self.settings.message, "done", worker))

    def done(self, now: float, worker: int) -> None:
        self.count(now)
        del self.working[worker]
        self.touched.add(worker)
        if worker in self.leaving:
            self.leaving.discard(worker)
        else:
            self.free.append(worker)

    def scale(self, now: float, replicas: int) -> None:
        for _ in range(replicas - self.replicas):
            self.add(now, now + self.settings.start)
        for _ in range(self.replicas - replicas):
            self._take_one()
        self.replicas = replicas

    def _take_one(self) -> None:
        """Take one that has not started, else the newest, as a ReplicaSet does."""
        if self.starting:
            del self.starting[max(self.starting)]
            return
        staying = [*self.free, *(one for one in self.working if one not in self.leaving)]
        newest = max(staying)
        if newest in self.free:
            self.free.remove(newest)
        else:
            self.leaving.add(newest)


def run(settings: Settings) -> Run:
    """Play one run from a single replica on."""
    pool = _Pool(settings)
    moments: list[Moment] = []
    pool.add(0.0, 0.0)
    for at in arrivals(settings):
        heapq.heappush(pool.events, (at, "message", 0))
    for number in range(1, int(settings.length / _ANSWER_SECONDS)):
        heapq.heappush(pool.events, (number * _ANSWER_SECONDS, "tick", number))
    while pool.events:
        now, kind, number = heapq.heappop(pool.events)
        if now >= settings.length:
            break
        if kind == "message":
            pool.waiting.append(now)
        elif kind == "done":
            pool.done(now, number)
        elif kind == "ready":
            if pool.starting.pop(number, None) is not None:
                pool.free.append(number)
        else:
            _tick(pool, now)
            moments.append(Moment(now, pool.replicas, len(pool.working), len(pool.waiting)))
        pool.serve(now)
    return _summary(settings, moments, pool.waits)


def arrivals(settings: Settings) -> Sequence[float]:
    """Return when messages come: at random, independently of each other."""
    source, at, times = random.Random(settings.seed), 0.0, []
    highest = max(settings.rate(second) for second in range(int(settings.length)))
    while at < settings.length:
        at += source.expovariate(highest)
        if source.random() * highest < settings.rate(at):
            times.append(at)
    return times


def recommended(now: int, averages: Sequence[tuple[float, float]]) -> int:
    """Return what a HorizontalPodAutoscaler wants for totals and their targets by replica."""
    wanted = []
    for total, target in averages:
        ratio = total / (target * now)
        same = abs(ratio - 1) <= TOLERANCE
        wanted.append(now if same else math.ceil(total / target))
    return max(wanted)


def _tick(pool: _Pool, now: float) -> None:
    settings = pool.settings
    pool.count(now)
    share = pool.worked / _ANSWER_SECONDS
    pool.worked = 0.0
    if settings.rule is Rule.TOUCHED:
        share = float(len(pool.touched | set(pool.working)))
    pool.touched = set()
    pool.shares.append(share)
    if len(pool.shares) > _MEAN_SECONDS / _ANSWER_SECONDS:
        pool.shares.popleft()
    if now % _SYNC_SECONDS == 0:
        pool.scale(now, _next(pool, now))


def _next(pool: _Pool, now: float) -> int:
    settings = pool.settings
    averages = [(len(pool.waiting) * settings.message, settings.target)]
    if settings.rule is not Rule.BACKLOG:
        busy = sum(pool.shares) / len(pool.shares)
        averages.append((busy, settings.utilization))
    wanted = min(max(recommended(pool.replicas, averages), 1), settings.most)
    pool.wanted.append((now, wanted))
    while pool.wanted[0][0] <= now - settings.window:
        pool.wanted.popleft()
    if wanted < pool.replicas:
        return min(pool.replicas, max(replicas for _, replicas in pool.wanted))
    return min(wanted, max(2 * pool.replicas, pool.replicas + _LEAST_STEP))


def _summary(
    settings: Settings, moments: Sequence[Moment], waits: Sequence[tuple[float, float]]
) -> Run:
    later = [item for item in moments if item.at > settings.warm_up]
    ordered = sorted(wait for at, wait in waits if at > settings.warm_up)
    loads = [settings.rate(item.at) * settings.message for item in later]
    return Run(
        tuple(moments),
        sum(item.replicas for item in later) / len(later),
        max(item.replicas for item in later),
        sum(math.ceil(load) for load in loads) / len(later),
        ordered[int(len(ordered) * 0.99)],
        sum(wait > settings.target for wait in ordered) / len(ordered),
    )


MESSAGE_SECONDS: Final = 2.0
START_SECONDS: Final = 20.0
WARM_UP_SECONDS: Final = 240.0
LENGTH_SECONDS: Final = 1440.0
MOST: Final = 24

_WAVE_SECONDS = 1200.0
_CALM, _LOUD = 3.0, 8.0


def _steady(_: float) -> float:
    return 8.5 / MESSAGE_SECONDS


def _wave(at: float) -> float:
    return (6 + 3 * math.sin(2 * math.pi * at / _WAVE_SECONDS)) / MESSAGE_SECONDS


def _burst(at: float) -> float:
    return (_LOUD if at % _WAVE_SECONDS > _WAVE_SECONDS * 0.75 else _CALM) / MESSAGE_SECONDS


LOADS: Final[Mapping[str, Callable[[float], float]]] = {
    "steady": _steady,
    "wave": _wave,
    "burst": _burst,
}
"""Messages a second at a time."""
