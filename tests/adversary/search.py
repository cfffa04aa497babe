"""A seeded search for the scheme that takes most: it keeps and changes what did well."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple, TypeAlias

from gpufence.quantity import GIB, MIB
from tests.adversary.stage import Haul
from tests.adversary.tricks import Scheme, changed, drawn, written

SURVIVORS: Final = 8
"""By each of the goals."""
FRESH: Final = 0.25
"""What share of the schemes is drawn anew."""

Play: TypeAlias = Callable[[Scheme, int], Haul]


class Finding(NamedTuple):
    haul: Haul
    scheme: Scheme


def told(finding: Finding) -> str:
    """Say what a scheme came to, and how to play it again."""
    haul = finding.haul
    mean, most = (amount / GIB / max(haul.seconds, 1) for amount in (haul.stolen, haul.allowed))
    false = ", ".join(f"{act.pod} in second {act.second}" for act in haul.false)
    return (
        f"{mean:.3f} GiB on average over {haul.seconds} s, {most:.3f} are allowed;"
        f" {haul.evictions} evictions; wrongly: {false or 'nobody'}\n"
        f"  --replay '{written(finding.scheme)}'"
    )


def _taken(haul: Haul) -> float:
    return haul.stolen


def _of_what_is_allowed(haul: Haul) -> float:
    return haul.stolen / max(haul.allowed, MIB)


def _per_eviction(haul: Haul) -> float:
    return haul.stolen / (haul.evictions + 1)


GOALS: Final = (_taken, _of_what_is_allowed, _per_eviction)
"""To take most; to come nearest to what is allowed; to take most without being caught."""


@dataclass
class Search:
    """With the same `seed` and number of plays it tries the same schemes, `known` ones first."""

    seed: int
    seconds: int
    play: Play
    known: Sequence[Scheme] = ()
    best: dict[Callable[[Haul], float], list[Finding]] = field(default_factory=dict)
    broken: list[Finding] = field(default_factory=list)
    plays: int = 0

    def __post_init__(self) -> None:
        self._dice = Random(f"adversary {self.seed}")

    def go_on(self, plays: int) -> None:
        """Try so many schemes more."""
        for _ in range(plays):
            scheme = self._next()
            finding = Finding(self.play(scheme, self.seconds), scheme)
            self.plays += 1
            if finding.haul.broke_a_promise:
                self.broken.append(finding)
            for goal in GOALS:
                kept = [*self.best.get(goal, ()), finding]
                kept.sort(key=lambda item: goal(item.haul), reverse=True)
                self.best[goal] = kept[:SURVIVORS]

    @property
    def worst(self) -> list[Finding]:
        """Return what broke a promise, or the worst by each goal."""
        return self.broken or [kept[0] for kept in self.best.values()]

    def _next(self) -> Scheme:
        dice = self._dice
        if self.plays < len(self.known):
            return self.known[self.plays]
        if self.plays < SURVIVORS or dice.random() < FRESH:
            return drawn(dice, self.seconds)
        kept = self.best[dice.choice(GOALS)]
        # The better a scheme did, the more often it is changed.
        place = min(dice.randrange(len(kept)), dice.randrange(len(kept)))
        return changed(dice, kept[place].scheme, self.seconds)
