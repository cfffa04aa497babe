"""What a framework decides at start about the memory of one card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Variables = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Device:
    """
    A card as the framework finds it through CUDA, in bytes.

    `total` is what is said beside `free`, `size` a property of the device: where the driver limits
    the process, the first is the limit.
    """

    index: int
    total: int
    free: int
    capability: tuple[int, int]
    size: int


@dataclass(frozen=True, slots=True)
class Budget:
    """
    How much the framework's allocator may take.

    `limit` None is no limit but the card. `arena` is taken at once, whatever the program needs of
    it. `why` is for the person who reads the workload's first line; notes are logged, too.
    """

    limit: int | None
    why: str
    arena: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OnCpu:
    """The framework goes on without the card, as JAX does when it cannot read its settings."""

    why: str


@dataclass(frozen=True, slots=True)
class Dies:
    """The framework ends the process with this message and exit code."""

    message: str
    code: int = 1


Decision = Budget | OnCpu | Dies


@dataclass(frozen=True, slots=True)
class Shortage:
    """An allocation that failed; `limit` None means that the card, not the cap, was too small."""

    device: Device
    wanted: int
    in_use: int
    free: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Framework:
    """How a framework decides, and how it words that memory is out."""

    name: str
    decide: Callable[[Variables, Device], Decision]
    complain: Callable[[Shortage], str]


def human(amount: int) -> str:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if amount >= 1 << power:
            return f"{amount / (1 << power):.2f} {unit}"
    return f"{amount} bytes"
