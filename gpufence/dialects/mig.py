"""MIG slices: the instance is the card, and hardware fences it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.spec import WHOLE_CARD, Claim, Declared, DialectSpec
from gpufence.errors import InvalidError, Problem
from gpufence.names import NVIDIA_MIG_PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Pod


def read(_: Pod, requests: Sequence[GpuRequest], __: Units) -> Declared:
    claims: list[Claim] = []
    slices: set[str] = set()
    for container, counts in requests:
        own = {name: count for name, count in counts.items() if name.startswith(NVIDIA_MIG_PREFIX)}
        if own:
            claims.append(Claim(container.name, WHOLE_CARD, sum(own.values())))
            slices.update(own)
    if len(slices) > 1:
        raise InvalidError(
            Problem(
                "resources.limits",
                ", ".join(sorted(slices)),
                "are MIG slices of several sizes in one pod",
                "ask for one profile in each pod",
            )
        )
    profile = profile_of(slices.pop())
    return Declared(
        SPEC.name, tuple(claims), f"MIG instances of {profile}", implied=True, profile=profile
    )


def profile_of(resource: str) -> str:
    """Return the profile that a resource counts, such as 1g.10gb."""
    return resource.removeprefix(NVIDIA_MIG_PREFIX).removesuffix(".shared")


SPEC = DialectSpec(
    name="mig",
    system="MIG",
    unit="the instance is the card",
    read=read,
    prefix=NVIDIA_MIG_PREFIX,
)
