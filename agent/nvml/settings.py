"""How the cards are measured, each number with its unit and its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpufence.quantity import MIB
from gpufence.setting_kinds import converted
from gpufence.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerSettings:
    """
    Fit for a node as it is; tests and odd nodes change what they are about.

    `interval_seconds` is the policy's, from one sample to the next; `work_seconds` from one
    question for what is done on a card to the next, without end where nothing wants to know.
    `environment` is the child's; None means that of this process.
    """

    interval_seconds: float = 1.0
    # Making one holds driver locks that inference needs too.
    list_seconds: float = field(
        default=10.0,
        metadata=setting(
            "GPUFENCE_LIST_SECONDS",
            "longest age of a card's list of processes",
            least=0.05,
            most=600,
        ),
    )
    moved_bytes: int = field(
        default=64 * MIB,
        metadata=setting(
            "GPUFENCE_LIST_MOVED", "change of a card's use above which its processes are listed"
        ),
    )
    work_seconds: float = math.inf
    deadline_seconds: float = field(
        default=5.0,
        metadata=setting(
            "GPUFENCE_NVML_DEADLINE_SECONDS",
            "the most that one look takes; half of it without an answer is a hang, of a list "
            "all of it",
            least=0.1,
            most=60,
        ),
    )
    # Without persistence mode each card wakes up for 1 to 3 s. Samples do not wait for it.
    start_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_NVML_START_SECONDS", "the most that opening NVML takes", least=1, most=600
        ),
    )
    # The first one is started at once.
    restart_seconds: float = field(
        default=1.0,
        metadata=setting(
            "GPUFENCE_NVML_RESTART_SECONDS",
            "the pause before a second new child that measures, doubled by each further one",
            least=0.01,
            most=600,
        ),
    )
    # A child that did well for as long is replaced at once.
    restart_limit_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_NVML_RESTART_LIMIT_SECONDS", "the longest such pause", least=0.01, most=3600
        ),
    )
    avoid_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_NVML_AVOID_SECONDS",
            "how long a card that hung or crashed two children is skipped, then doubled; another "
            "child lists its processes meanwhile",
            least=0.1,
        ),
    )
    avoid_limit_seconds: float = 3600.0
    library_path: Path | None = field(
        default=None,
        metadata=setting(
            "GPUFENCE_NVML_LIBRARY",
            "path of libnvidia-ml.so.1",
            kind=converted(Path),
            unset="the dynamic linker's",
        ),
    )
    environment: Mapping[str, str] | None = None
