"""
Aliyun gpushare: `aliyun.com/gpu-mem`, in units that only the node can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.model import Claim, Declared, Dialect, Sum, Units, amount_of, requested
from gpufence.errors import InvalidError, Problem
from gpufence.names import GPUSHARE_COUNT, GPUSHARE_MEMORY
from gpufence.pods import Kind
from gpufence.quantity import GIB, write_bytes

if TYPE_CHECKING:
    from gpufence.pods import Pod


def read(pod: Pod, units: Units) -> Declared | None:
    found = list(requested(pod, GPUSHARE_MEMORY))
    if not found:
        return None
    unit = units.gpushare_bytes
    if unit is None:
        raise InvalidError(
            Problem(
                GPUSHARE_MEMORY,
                str(found[0][1][GPUSHARE_MEMORY]),
                "has no certain unit: the node's figures fit neither GiB nor MiB",
                f"compare its allocatable {GPUSHARE_MEMORY} and {GPUSHARE_COUNT} with its cards",
            )
        )
    claims = tuple(
        Claim(item.name, amount_of(item, GPUSHARE_MEMORY, count[GPUSHARE_MEMORY], unit))
        for item, count in found
    )
    notes = []
    if len(claims) > 1:
        notes.append(
            Problem(
                GPUSHARE_MEMORY,
                ", ".join(claim.container for claim in claims),
                "is asked for by several containers, which gpushare starts on one-card nodes only",
                "ask for it in one container",
            )
        )
    if any(item.kind is not Kind.REGULAR for item, _ in found):
        notes.append(
            Problem(
                GPUSHARE_MEMORY,
                ", ".join(item.name for item, _ in found if item.kind is not Kind.REGULAR),
                "is asked for by an init container, which gpushare does not count",
                "ask for it in a regular container",
            )
        )
    return Declared(
        dialect=Dialect.GPUSHARE,
        claims=claims,
        basis=f"units of {write_bytes(unit)}{'' if unit == GIB else ' (MiB node)'}",
        sum=Sum.REGULAR,
        notes=tuple(notes),
    )
