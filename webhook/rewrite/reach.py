"""
PURE. A pod's limits on every card it might meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence.dialects import Declared, Undeclared, Unreadable, read_declaration
from gpufence.limits import Limits, limits_on
from webhook.frameworks.figures import Met

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpufence.annotations import NamespaceOptions, PodOptions
    from gpufence.candidates import CandidateCard
    from gpufence.dialects import Units
    from gpufence.errors import Problem
    from gpufence.pods import Pod


@dataclass(frozen=True, slots=True)
class Reach:
    """
    The limits on each card, at least one; `unclear` are the problems of cards that gave none.
    """

    found: tuple[tuple[CandidateCard, Limits], ...]
    unclear: tuple[Problem, ...] = ()

    @property
    def limits(self) -> Limits:
        """
        Return the limits on one of the cards, for all that is the same on every card.
        """
        return self.found[0][1]

    @property
    def limit_bytes(self) -> int | None:
        """
        Return the pod's limit: the smallest there is.
        """
        return _smallest(limits.limit_bytes for _, limits in self.found)

    @property
    def enforced(self) -> bool:
        return any(limits.enforced for _, limits in self.found)

    @property
    def library_caps(self) -> bool:
        return all(limits.library_caps for _, limits in self.found)

    def met(self, container: str) -> tuple[Met, ...]:
        """
        Return the cards with the limit of one container on each.
        """
        return tuple(
            Met(part.limit_bytes, choice.memory_bytes, choice.compute_capability)
            for choice, limits in self.found
            for part in limits.parts
            if part.container == container
        )


def read_reach(
    pod: Pod, wishes: PodOptions, words: NamespaceOptions, choices: Iterable[CandidateCard]
) -> Reach | Undeclared | Unreadable:
    """
    Work out the limits card by card, reading what is the same on several cards only once.

    Where they can be read on some of the cards only, those count: whoever binds the pod to another
    leaves the values as they are.
    """
    found: list[tuple[CandidateCard, Limits]] = []
    failed: list[Undeclared | Unreadable] = []
    by_units: dict[Units, Declared | Undeclared | Unreadable] = {}
    alike: dict[Units, Limits | Undeclared | Unreadable] = {}
    for choice in choices:
        units = choice.units
        said = by_units.get(units)
        if said is None:
            said = by_units[units] = read_declaration(pod, units)
        limits = alike.get(units)
        if limits is None:
            limits = limits_on(said, pod, wishes, words, choice.memory_bytes)
            if not _by_card(said):
                alike[units] = limits
        if isinstance(limits, Limits):
            found.append((choice, limits))
        else:
            failed.append(limits)
    unclear = tuple({item.problem: None for item in failed if isinstance(item, Unreadable)})
    if found:
        return Reach(tuple(found), unclear)
    return next((item for item in failed if isinstance(item, Unreadable)), failed[0])


def _by_card(said: Declared | Undeclared | Unreadable) -> bool:
    """
    Tell whether an amount is a share of a card, and so another on each.
    """
    return isinstance(said, Declared) and any(
        claim.amount.share is not None for claim in said.claims
    )


def _smallest(amounts: Iterable[int | None]) -> int | None:
    return min((amount for amount in amounts if amount is not None), default=None)
