"""
How an A100 or H100 is cut into MIG instances.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufence.errors import InvalidError, Problem
from simulator.nvml.layout import MAX_INSTANCES

SLICES = 7


@dataclass(frozen=True)
class Profile:
    """
    One way to cut: compute slices, memory, and the first GPU instance id the driver gives it.
    """

    name: str
    slices: int
    memory_mib: int
    first_id: int


@dataclass(frozen=True)
class Geometry:
    """
    What a card can be cut into.
    """

    multiprocessors_per_slice: int
    profiles: tuple[Profile, ...]

    def cut(self, names: tuple[str, ...], field: str) -> tuple[Profile, ...]:
        """
        Look the profiles up; together they must fit the card's seven slices.
        """
        chosen = tuple(self._profile(name, field) for name in names)
        if len(chosen) > MAX_INSTANCES or sum(one.slices for one in chosen) > SLICES:
            raise InvalidError(
                Problem(
                    field,
                    "+".join(names),
                    f"takes more than the {SLICES} slices of a card",
                    "leave some instances out",
                )
            )
        return chosen

    def _profile(self, name: str, field: str) -> Profile:
        for profile in self.profiles:
            if profile.name == name:
                return profile
        known = ", ".join(profile.name for profile in self.profiles)
        raise InvalidError(
            Problem(field, name, "is no MIG profile of this card", f"use one of {known}")
        )


A100_40 = Geometry(
    multiprocessors_per_slice=14,
    profiles=(
        Profile("1g.5gb", 1, 4864, 7),
        Profile("2g.10gb", 2, 9984, 3),
        Profile("3g.20gb", 3, 20096, 1),
        Profile("4g.20gb", 4, 20096, 1),
        Profile("7g.40gb", 7, 40448, 0),
    ),
)
A100_80 = Geometry(
    multiprocessors_per_slice=14,
    profiles=(
        Profile("1g.10gb", 1, 9728, 7),
        Profile("2g.20gb", 2, 19968, 3),
        Profile("3g.40gb", 3, 40448, 1),
        Profile("4g.40gb", 4, 40448, 1),
        Profile("7g.80gb", 7, 80896, 0),
    ),
)
H100_80 = Geometry(
    multiprocessors_per_slice=16,
    profiles=(
        Profile("1g.10gb", 1, 9984, 7),
        Profile("2g.20gb", 2, 20096, 3),
        Profile("3g.40gb", 3, 40448, 1),
        Profile("4g.40gb", 4, 40448, 1),
        Profile("7g.80gb", 7, 80640, 0),
    ),
)
