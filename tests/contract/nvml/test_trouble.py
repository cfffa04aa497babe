"""Calls that are slow, never return or take the process down."""

import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from simulator.nvml.faults import Fault
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.support.nvml_client import Client, NoAnswerError

LIST = "nvmlDeviceGetComputeRunningProcesses"
MEMORY = "nvmlDeviceGetMemoryInfo"


def seconds_for(client: Client, expression: str) -> float:
    begin = time.monotonic()
    client(expression)
    return time.monotonic() - begin


def test_a_call_may_be_slow(client: Client, machine: State) -> None:
    """A delay slows its function down and no other."""
    machine.faults.add(Fault.delay(0.2, LIST))

    assert seconds_for(client, f"{LIST}(card(0))") >= 0.2
    assert min(seconds_for(client, f"{MEMORY}(card(0))") for _ in range(10)) < 0.2


def test_a_call_may_never_return(machine: State, start: Callable[..., Client]) -> None:
    """A hanging call answers nothing and is deaf to SIGTERM; only SIGKILL ends the process."""
    client = start()
    machine.faults.add(Fault(FaultAction.HANG, MEMORY, card=1))
    client(f"{MEMORY}(card(0))")
    client.send(f"{MEMORY}(card(1))")
    with pytest.raises(NoAnswerError):
        client.receive(0.3)
    client.process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        client.process.wait(0.3)
    client.process.kill()

    assert -signal.SIGKILL == client.process.wait(30)


def test_a_hanging_call_leaves_other_threads_alone(
    machine: State, start: Callable[..., Client]
) -> None:
    """While one thread hangs in NVML another one can still ask it: calls are not serialised."""
    client = start()
    machine.faults.add(Fault(FaultAction.HANG, MEMORY))
    client("threading = __import__('threading')")
    client("ask = lambda: nvmlDeviceGetMemoryInfo(card(0))")
    client("threading.Thread(target=ask, daemon=True).start()")

    assert [] == client(f"{LIST}(card(0))")
    client.process.kill()


def test_a_call_may_crash_the_process(machine: State, start: Callable[..., Client]) -> None:
    """A driver bug inside a call ends the process by SIGSEGV."""
    client = start()
    machine.faults.add(Fault(FaultAction.CRASH, LIST, after=1))
    client.send(f"{LIST}(card(0))")
    client.receive()
    client.send(f"{LIST}(card(0))")
    with pytest.raises(NoAnswerError):
        client.receive()

    assert -signal.SIGSEGV == client.process.wait(30)
