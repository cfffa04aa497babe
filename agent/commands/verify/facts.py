"""PURE. What was measured on a machine, as figures to send to others: no names of people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """
    By how much each account grew when a process took memory in one way. `process_bytes` is what
    NVML says of the process, None where it says nothing; `card_bytes` what NVML says of the card,
    less what other processes took meanwhile; `free_bytes` by how much CUDA says that less is free.
    `left_bytes` is what the process kept of it after giving it back.
    """

    kind: str
    asked_bytes: int
    process_bytes: int | None = None
    card_bytes: int = 0
    free_bytes: int = 0
    left_bytes: int | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessListing:
    """
    What NVML lists of a process that holds memory. `strangers` are the amounts of processes that
    came with it under other PIDs. `look_seconds` is how long each look took, lists included, while
    `processes` held memory.
    """

    under_its_pid: bool
    strangers: tuple[int | None, ...]
    neighbour_bytes: int | None
    neighbour_asked: int
    mps_client: bool
    mps_server: bool
    processes: int
    look_seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Afterwards:
    """After how long a process was no longer listed, None where it still was; what it left."""

    exited_seconds: float | None
    killed_seconds: float | None
    left_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelView:
    """What the kernel says of that process: the control group's lines, and what they name."""

    cgroup: tuple[str, ...]
    container: bool = False
    pod: bool = False
    age_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapTrial:
    """
    A program that takes what it can get, with a cap of `told_bytes` in its environment: the most it
    ever held, its context included, and whether it ended by itself.
    """

    name: str
    told_bytes: int
    most_bytes: int
    ended: bool = True
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTrial:
    """
    What processes of ours met on a card. `cuda_uuid` and `visible_bytes` are its name and size as
    CUDA tells a program, `context_bytes` what NVML lists of one that has taken nothing yet.
    """

    cuda_uuid: str
    visible_bytes: int
    context_bytes: int | None
    growths: tuple[Growth, ...]
    listing: ProcessListing
    ending: Afterwards
    identity: KernelView
    caps: tuple[CapTrial, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """
    One card. `trouble` is what went wrong with the driver, `untried` why nothing was tried at all.
    """

    uuid: str
    model: str
    total_bytes: int
    compute_capability: tuple[int, int] | None = None
    mig: bool = False
    trial: CardTrial | None = None
    trouble: str = ""
    untried: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """
    One machine. `driver_limit_bytes` is what the container toolkit was told to hold this container
    to.
    """

    driver: str
    kernel: str
    cgroup_version: int
    host_pids: bool
    in_container: bool
    mps: bool
    driver_limit_bytes: int | None = None
    cards: tuple[CardFacts, ...] = ()
    trouble: str = ""

    def document(self) -> Mapping[str, object]:
        """Return it as JSON has it."""
        return {"v": VERSION, **asdict(self)}
