"""
The parent's end: asks the child, replaces it where it must, and always answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.clock import boottime
from agent.model.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.nvml.settings import SamplerSettings


class Sampler:
    """
    The real `agent.ports.Cards`. One thread uses it, the one that lives as long as it is needed:
    the kernel ends the child with the thread that started it.
    """

    def __init__(self, settings: SamplerSettings, clock: Callable[[], float] = boottime) -> None:
        self._settings = settings
        self._clock = clock
        self.restarts = 0
        self.unidentified: tuple[str, ...] = ()

    def sample(self, suspects: frozenset[str]) -> Sample:
        del suspects
        return Sample(self._clock(), (), trouble="NVML was not asked yet")

    def close(self) -> None:
        """
        Stop measuring.
        """
