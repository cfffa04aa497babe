"""
Aliyun gpushare: `aliyun.com/gpu-mem`, in units that only the node can tell; ACK's cGPU isolates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.spec import (
    Claim,
    Declared,
    DialectSpec,
    Sum,
    UnknownUnitError,
    amount_of,
    is_near,
)
from gpufence.errors import Problem
from gpufence.names import (
    ACK_CGPU,
    ACK_SCHEDULE,
    GPUSHARE_BOOKKEEPING,
    GPUSHARE_CARD_INDEX,
    GPUSHARE_CORES,
    GPUSHARE_COUNT,
    GPUSHARE_MEMORY,
)
from gpufence.quantity import GIB, MIB, write_bytes
from gpufence.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpufence.cards import Card
    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Container, Pod

_ISOLATING = ("cgpu", "core_mem")


def read(pod: Pod, requests: Sequence[GpuRequest], units: Units) -> Declared | None:
    unit = units.gpushare_bytes
    asking = [item for item in requests if GPUSHARE_MEMORY in item.counts]
    if not asking:
        return None
    cores = any(GPUSHARE_CORES in item.counts for item in requests)
    if unit is None:
        raise UnknownUnitError(
            Problem(
                GPUSHARE_MEMORY,
                str(asking[0].counts[GPUSHARE_MEMORY]),
                "has no certain unit: the node's figures fit neither GiB nor MiB",
                f"compare its allocatable {GPUSHARE_MEMORY} and {GPUSHARE_COUNT} with its cards",
            )
        )
    claims = [
        Claim(container.name, amount_of(container, GPUSHARE_MEMORY, counts[GPUSHARE_MEMORY], unit))
        for container, counts in asking
    ]
    return Declared(
        dialect=SPEC.name,
        claims=tuple(claims),
        basis=f"units of {write_bytes(unit)}{'' if unit == GIB else ' (MiB node)'}",
        sum=Sum.REGULAR,
        library_caps=cores or units.driver_caps or is_isolating(pod.node_selector),
        notes=tuple(_notes([container for container, _ in asking])),
    )


def is_isolating(labels: Mapping[str, str]) -> bool:
    """
    Return whether ACK's cGPU isolates memory there, by a node's labels or a pod's selector: it
    shows each container its limit as the card's memory.
    """
    return labels.get(ACK_SCHEDULE) in _ISOLATING or labels.get(ACK_CGPU) == "true"


def unit_of(figures: Mapping[str, int], cards: tuple[Card, ...]) -> str | None:
    """
    Return the unit that a node's figures and its cards tell; None where both or neither fit, since
    a wrong guess is off by a factor of 1024.

    The device plugin gives all cards the size of the first and writes whole GiB rounded down.
    """
    sizes = [card.memory_bytes for card in cards if card.mig is None]
    each = figures[GPUSHARE_MEMORY] // max(figures.get(GPUSHARE_COUNT, len(sizes)), 1)
    gib = any(abs(each - size // GIB) <= 1 for size in sizes)
    mib = any(is_near(each, size // MIB) for size in sizes)
    return None if gib == mib else "GiB" if gib else "MiB"


def _notes(containers: Sequence[Container]) -> Iterator[Problem]:
    """Name what gpushare does not do for a pod, though it looks as if it would."""
    if len(containers) > 1:
        yield Problem(
            GPUSHARE_MEMORY,
            listed([item.name for item in containers]),
            "is asked for by several containers, which gpushare starts on one-card nodes only",
            "ask for it in one container",
        )
    early = [item.name for item in containers if not item.regular]
    if early:
        yield Problem(
            GPUSHARE_MEMORY,
            listed(early),
            "is asked for by an init container, which gpushare does not count",
            "ask for it in a regular container",
        )


SPEC = DialectSpec(
    name="gpushare",
    system="Aliyun gpushare",
    unit="GiB or MiB: known from the node's allocatable and NVML",
    read=read,
    resources=(GPUSHARE_MEMORY, GPUSHARE_CORES),
    bookkeeping=GPUSHARE_BOOKKEEPING,
    card_key=GPUSHARE_CARD_INDEX,
    node_figures=(GPUSHARE_COUNT,),
    unit_bytes={GPUSHARE_MEMORY: lambda units: units.gpushare_bytes},
)
