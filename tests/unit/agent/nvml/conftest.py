"""A session over scripted children of a machine with three cards."""

import pytest

from agent.nvml.protocol import Counted
from agent.nvml.session import Session
from tests.support.agent.builders import COUNT, SETTINGS, Script, look, looked


@pytest.fixture
def script() -> Script:
    """A machine of three cards."""
    made = Script()
    made.answers |= {look(index): looked(f"GPU-{index}") for index in range(3)}
    made.answers[COUNT] = Counted(3)
    return made


@pytest.fixture
def session(script: Script) -> Session:
    return Session(SETTINGS, script.start, script.clock)
