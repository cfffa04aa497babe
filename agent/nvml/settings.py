"""
How the cards are measured, each number with its unit and its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence.quantity import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerSettings:
    """
    Fit for a node as it is; tests and odd nodes change what they are about.
    """

    interval_seconds: float = 1.0
    """
    From one sample to the next.
    """

    list_seconds: float = 10.0
    """
    The age at which a list of processes is renewed in any case; making one holds driver locks that
    inference needs too.
    """

    moved_bytes: int = 64 * MIB
    """
    A card's use that differs by more than this from that at its last list calls for a new one.
    """

    deadline_seconds: float = 5.0
    """
    The most that one sample takes; a card that lets half of it pass is taken to hang.
    """

    start_seconds: float = 60.0
    """
    The most that a new child may take to open NVML: without persistence mode each card wakes up
    for 1 to 3 s. Samples do not wait for it.
    """

    restart_seconds: float = 1.0
    """
    The pause before a second new child in a row, doubled by each further one; the first one is
    started at once.
    """

    restart_limit_seconds: float = 60.0
    """
    The longest such pause, and how long a child must do well for the next one to start at once.
    """

    avoid_seconds: float = 60.0
    """
    How long a question is not asked again after it has hung or crashed two children in a row,
    doubled by each further one.
    """

    avoid_limit_seconds: float = 3600.0

    library_path: Path | None = None
    """
    The libnvidia-ml.so.1 to load; None: wherever the dynamic linker finds it.
    """

    environment: Mapping[str, str] | None = None
    """
    The child's environment; None: that of this process.
    """
