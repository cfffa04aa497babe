"""
Workloads whose need is known, since they are made up: what they would take, day by day.

Every kind is a way in which models of real users take memory. All of it is drawn from seeds that
are texts, so that each run sees the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from gpufence.need import CardNeed
from gpufence.quantity import GIB, MIB

DAYS = 14
HORIZON = 7
STEPS = 48
OF_EACH_KIND = 20
Kind = Callable[[Random], "Workload"]
CARDS = (
    CardNeed("Tesla T4", 15_360 * MIB, 512 * MIB),
    CardNeed("NVIDIA L4", 23_034 * MIB, 640 * MIB),
    CardNeed("NVIDIA A100 40GB", 40_960 * MIB, 640 * MIB),
    CardNeed("NVIDIA H100 80GB", 81_559 * MIB, 768 * MIB),
)


@dataclass(frozen=True)
class Day:
    """
    What the allocators of one pod would take together, half hour by half hour, if nothing stopped
    them; `version` is another once the model is. Without a limit nothing does stop them.
    """

    steps: tuple[int, ...]
    pods: int = 2
    started: int = 0
    hours: float = 24.0
    limit_bytes: int | None = None
    version: int = 0


@dataclass(frozen=True)
class Workload:
    """
    One container on one model of card. `parts` are the shares of its processes in what is
    allocated, `shares` how many processes it says share its part. `takes_all` is a cache that takes
    what it gets, whatever it needs; `told` whether frameworks are told their share of a limit.
    """

    name: str
    card: CardNeed
    context_bytes: int
    days: tuple[Day, ...]
    parts: tuple[float, ...] = (1.0,)
    shares: int = 1
    takes_all: bool = False
    told: bool = True

    def need_on(self, day: int) -> int:
        """Return the most that will be allocated until a week after `day`, by its version."""
        version = self.days[day].version
        coming = self.days[: day + HORIZON + 1]
        return max(max(item.steps) for item in coming if item.version == version)


def workloads() -> Iterator[Workload]:
    """Yield every workload of every kind."""
    for kind in KINDS:
        for number in range(OF_EACH_KIND):
            name = f"{kind.__name__}-{number}"
            yield replace(kind(Random(name)), name=name)


def _made(random: Random, steps: Callable[[int], tuple[int, ...]], **more: object) -> Workload:
    """
    Make a workload of some pods, of which some are new each day, on a card that is large enough to
    share.
    """
    pods, renewed = random.randint(2, 5), random.randint(1, 3)
    days = tuple(
        Day(steps(day), pods, pods if day == 0 else int(day % renewed == 0))
        for day in range(DAYS + HORIZON)
    )
    most = max(max(day.steps) for day in days)
    card = random.choice([card for card in CARDS if card.memory_bytes > most * 2] or CARDS[-1:])
    context = int(card.reserve_bytes * random.uniform(0.4, 1.0))
    return replace(Workload("", card, context, days), **more)  # type: ignore[arg-type]  # by name


def _base(random: Random) -> int:
    """Draw a size, as many small ones as large ones in proportion."""
    return int(2 ** random.uniform(0.0, 5.0) * GIB)


def _about(random: Random, size: int, spread: float) -> tuple[int, ...]:
    return tuple(int(size * random.uniform(1 - spread, 1)) for _ in range(STEPS))


def steady(random: Random) -> Workload:
    """A server: weights, and a little more under load."""
    size = _base(random)
    return _made(random, lambda _: _about(random, size, 0.1))


def warm_up(random: Random) -> Workload:
    """Loads its weights twice when it starts, for half an hour of a day or of a week."""
    size, every = _base(random), random.choice((1, 2, 7))
    rest = random.uniform(0.5, 0.8)

    def steps(day: int) -> tuple[int, ...]:
        calm = _about(random, int(size * rest), 0.05)
        return (size, *calm[1:]) if day % every == 0 else calm

    return _made(random, steps)


def batches(random: Random) -> Workload:
    """Memory by the batch of the hour; the largest comes once in five days."""
    size = _base(random)

    def steps(day: int) -> tuple[int, ...]:
        usual = [int(size * random.choice((0.4, 0.5, 0.6, 0.8))) for _ in range(STEPS)]
        return (size, *usual[1:]) if day % 5 == 0 else tuple(usual)

    return _made(random, steps)


def several_processes(random: Random) -> Workload:
    """Two to four processes on one card, alike or not, which say so or not."""
    count = random.randint(2, 4)
    weights = [random.uniform(0.3, 1.0) if random.random() < 0.5 else 1.0 for _ in range(count)]
    parts = tuple(weight / sum(weights) for weight in weights)
    size = _base(random)
    shares = random.choice((1, count))
    return _made(random, lambda _: _about(random, size, 0.1), parts=parts, shares=shares)


def slow_growth(random: Random) -> Workload:
    """An index or a table that grows by up to two hundredths a day."""
    size, rate = _base(random), random.uniform(0.002, 0.02)
    return _made(random, lambda day: _about(random, int(size * (1 + rate) ** day), 0.05))


def fast_growth(random: Random) -> Workload:
    """The same by two to eight hundredths a day: no week tells the next."""
    size, rate = _base(random) // 2, random.uniform(0.02, 0.08)
    return _made(random, lambda day: _about(random, int(size * (1 + rate) ** day), 0.05))


def leak(random: Random) -> Workload:
    """Loses memory until it is started again, every few days."""
    size, rate, life = _base(random), random.uniform(0.02, 0.1), random.randint(2, 6)
    return _made(random, lambda day: _about(random, int(size * (1 + rate * (day % life))), 0.03))


def cache(random: Random) -> Workload:
    """Takes what it gets, under a limit or without one, and needs much less."""
    size = _base(random)
    made = _made(random, lambda _: _about(random, size, 0.05), takes_all=True)
    if random.random() < 0.7:
        limit = min(int(size * random.uniform(1.6, 3.0)) + GIB, made.card.memory_bytes)
        return _limited(made, lambda _: limit)
    return made


def limited(random: Random) -> Workload:
    """Begins under a limit that is too small; somebody raises it after some days, or nobody."""
    size, raised_on = _base(random), random.randint(1, 16)
    made = _made(random, lambda _: _about(random, size, 0.3), told=random.random() < 0.6)
    small, enough = int(size * random.uniform(0.6, 1.2)), int(size * 1.9) + GIB
    return _limited(made, lambda day: small if day < raised_on else enough)


def scheduled(random: Random) -> Workload:
    """A job of some hours each night, each by a new pod."""
    size, hours = _base(random), random.uniform(1, 6)
    made = _made(random, lambda _: _about(random, size, 0.2))
    return replace(
        made, days=tuple(replace(day, pods=1, started=1, hours=hours) for day in made.days)
    )


def single(random: Random) -> Workload:
    """One pod that nobody ever starts again."""
    size = _base(random)
    made = _made(random, lambda _: _about(random, size, 0.1))
    return replace(
        made,
        days=tuple(replace(day, pods=1, started=int(at == 0)) for at, day in enumerate(made.days)),
    )


def versions(random: Random) -> Workload:
    """Another model is rolled out some day, larger or smaller, and peaks in its first hours."""
    sizes, rolled_on = (_base(random), _base(random)), random.randint(3, 12)
    made = _made(random, lambda day: _peaked(random, sizes[day >= rolled_on]))
    return replace(
        made,
        days=tuple(replace(day, version=int(at >= rolled_on)) for at, day in enumerate(made.days)),
    )


def _peaked(random: Random, size: int) -> tuple[int, ...]:
    return (size, *_about(random, size, 0.2)[1:])


def _limited(made: Workload, limit_on: Callable[[int], int]) -> Workload:
    days = (replace(day, limit_bytes=limit_on(at)) for at, day in enumerate(made.days))
    return replace(made, days=tuple(days))


KINDS: tuple[Kind, ...] = (
    steady,
    warm_up,
    batches,
    several_processes,
    slow_growth,
    fast_growth,
    leak,
    cache,
    limited,
    scheduled,
    single,
    versions,
)
