"""Accounting: the most memory that each process ever held, with the manners of drivers."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from gpufence.names import SIMULATOR_STATE
from gpufence.quantity import MIB
from simulator.nvml import layout
from simulator.nvml.faults import Fault
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.support.nvml_client import Client

MODE = "nvmlDeviceGetAccountingMode(card({card}))"
PIDS = "nvmlDeviceGetAccountingPids(card(0))"
STATS = "nvmlDeviceGetAccountingStats(card(0), {pid})"
A100 = 5
NOBODY = 65534
OWN = os.getpid()


@pytest.fixture
def accounted(machine: State) -> State:
    """The machine with accounting on its first card."""
    machine.cards[0].accounting = True
    return machine


def most(client: Client, pid: int = OWN) -> int:
    answer = client(STATS.format(pid=pid))
    return int(answer["maxMemoryUsage"]) // MIB


def test_it_is_off_until_root_turns_it_on(client: Client, machine: State) -> None:
    """A card begins without accounting, and tells nothing then."""
    machine.processes.put(machine.find("0"), OWN, MIB)
    before = client(MODE.format(card=0)), client.error(STATS.format(pid=OWN)), client.error(PIDS)
    client("nvmlDeviceSetAccountingMode(card(0), 1)")

    assert (0, "NVMLError_NotSupported", "NVMLError_NotSupported") == before
    assert 1 == client(MODE.format(card=0))


def test_others_than_root_may_only_look(start: Callable[..., Client], accounted: State) -> None:
    """Who is not root may read, and neither turn the mode on or off nor clear anything."""
    accounted.path.parent.chmod(0o755)
    client = start()
    client(f"[__import__('os').seteuid({NOBODY})]")

    assert "NVMLError_NoPermission" == client.error("nvmlDeviceSetAccountingMode(card(1), 1)")
    assert "NVMLError_NoPermission" == client.error("nvmlDeviceClearAccountingPids(card(0))")
    assert 1 == client(MODE.format(card=0))


def test_the_most_is_told_while_less_is_held(client: Client, accounted: State) -> None:
    """What a process held for a moment stays known, beside how it goes on."""
    holding = accounted.processes.put(accounted.find("0"), OWN, MIB)
    holding.resize(700 * MIB)
    holding.resize(2 * MIB)
    answer = client(STATS.format(pid=OWN))

    assert (700 * MIB, 1, 0) == (answer["maxMemoryUsage"], answer["isRunning"], answer["time"])


def test_who_began_before_is_not_accounted(client: Client, machine: State) -> None:
    """Only processes that begin while the mode is on are known."""
    machine.processes.put(machine.find("0"), OWN, MIB)
    machine.cards[0].accounting = True

    assert "NVMLError_NotFound" == client.error(STATS.format(pid=OWN))
    assert [] == client(PIDS)


def test_a_process_is_known_after_its_end(client: Client, accounted: State) -> None:
    """Of a process that was killed the most memory is still told, as not running."""
    program = (
        "from pathlib import Path; from simulator.nvml.state import State; import os, signal;"
        f"state = State.open(Path(os.environ['{SIMULATOR_STATE}']));"
        f"held = state.processes.hold(state.find('0'), {300 * MIB});"
        f"held.resize({MIB}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, SIMULATOR_STATE: str(accounted.path)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment) as ended:
        ended.wait()
    first = client(STATS.format(pid=ended.pid))
    accounted.processes.put(accounted.find("0"), OWN, MIB)  # takes the place of its record
    second = client(STATS.format(pid=ended.pid))

    assert (300 * MIB, 0) == (first["maxMemoryUsage"], first["isRunning"])
    assert first == second
    assert sorted([OWN, ended.pid]) == sorted(client(PIDS))


def test_of_one_pid_the_latest_process_counts(client: Client, accounted: State) -> None:
    """A process that lives comes before one that had its PID, unless both are the same."""
    place = accounted.find("0")
    accounted.processes.put(place, OWN, 50 * MIB).release()
    again = most(client)
    holding = accounted.processes.put(place, OWN, MIB)

    assert 50 == again
    assert 50 == most(client)  # both records say that they are of the same process
    holding.resize(90 * MIB)
    assert 90 == most(client)


def test_the_buffer_is_bounded(client: Client, accounted: State) -> None:
    """New processes push the oldest ones out."""
    size = client("nvmlDeviceGetAccountingBufferSize(card(0))")
    for pid in range(1000, 1000 + size + 5):
        accounted.processes.put(accounted.find("0"), pid, MIB).release()

    assert layout.MAX_ACCOUNTS == size == len(client(PIDS))
    assert "NVMLError_NotFound" == client.error(STATS.format(pid=1004))
    assert 1 == most(client, 1005)


def test_turning_it_off_clears_it(client: Client, accounted: State) -> None:
    """What was known is gone when the mode is turned off, that of other cards is not."""
    accounted.cards[1].accounting = True
    accounted.processes.put(accounted.find("1"), 99, MIB).release()
    accounted.processes.put(accounted.find("0"), OWN, MIB)
    for mode in (0, 1):
        client(f"nvmlDeviceSetAccountingMode(card(0), {mode})")

    assert [] == client(PIDS)
    assert [99] == client("nvmlDeviceGetAccountingPids(card(1))")


def test_clearing_forgets_the_ended(client: Client, accounted: State) -> None:
    """Root can have the buffer cleared of processes that have ended; those that live stay."""
    accounted.processes.put(accounted.find("0"), OWN, MIB)
    accounted.processes.put(accounted.find("0"), 99, MIB).release()
    client("nvmlDeviceClearAccountingPids(card(0))")

    assert [OWN] == client(PIDS)


def test_mig_has_none(client: Client, machine: State) -> None:
    """In MIG mode it is off for good, and an instance does not know the word."""
    machine.cards[A100].accounting = True
    machine.cards[A100].cut("3g.20gb")
    instance = f"nvmlDeviceGetAccountingMode(instance({A100}, 0))"

    assert 0 == client(MODE.format(card=A100))
    assert "NVMLError_NotSupported" == client.error(f"nvmlDeviceSetAccountingMode(card({A100}), 1)")
    assert "NVMLError_NotSupported" == client.error(instance)


def test_a_driver_may_not_tell(client: Client, accounted: State) -> None:
    """The memory can be "not available", all bits set, over which pynvml trips."""
    accounted.processes.put(accounted.find("0"), OWN, MIB)
    accounted.faults.add(Fault(FaultAction.NOT_AVAILABLE, "nvmlDeviceGetAccountingStats"))

    assert "TypeError" == client.error(STATS.format(pid=OWN))
    assert 2**64 - 1 == client(
        "(lambda stats: [function('nvmlDeviceGetAccountingStats')(card(0), "
        f"{OWN}, ctypes.byref(stats)), stats.maxMemoryUsage])(c_nvmlAccountingStats_t())[1]"
    )
