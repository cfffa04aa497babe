"""A simulated machine per test, and samplers whose children load its library."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.nvml.sampler import Sampler
from agent.nvml.settings import SamplerSettings
from gpufence.names import SIMULATOR_STATE
from simulator.nvml.build import CURRENT, library_path
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import Start

PATIENT_SECONDS = 40.0
"""For tests in which nothing hangs, so that a busy machine is not mistaken for one that does."""


@pytest.fixture
def machine(tmp_path: Path) -> State:
    """Return a machine with an old card, one that can be cut, and a new one."""
    return State.create(tmp_path / "cards", "T4,A100-40,H100")


@pytest.fixture
def start(machine: State) -> Iterator[Start]:
    """Start samplers of the test's machine and end them with it."""
    samplers: list[Sampler] = []

    def started(variant: str = CURRENT, **more: Any) -> Sampler:
        said: dict[str, Any] = {
            "deadline_seconds": PATIENT_SECONDS,
            "restart_seconds": 0.01,
            "restart_limit_seconds": 0.01,
            "library_path": library_path(variant),
            "environment": {**os.environ, SIMULATOR_STATE: str(machine.path)},
        }
        samplers.append(Sampler(SamplerSettings(**said | more)))
        return samplers[-1]

    yield started
    for sampler in samplers:
        sampler.close()


@pytest.fixture
def sampler(start: Start) -> Sampler:
    return start()
