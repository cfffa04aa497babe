"""What NVML says of the past: samples, accounting and GPM."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from gpufence.names import SIMULATOR_STATE
from gpufence.quantity import MIB
from simulator.nvml import layout
from simulator.nvml.faults import Fault
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.support.driver import Client
from tests.support.observing import wait_until

SAMPLES = "nvmlDeviceGetProcessUtilization(card(0), {since})"
PERIOD_SECONDS = 0.1


def microseconds() -> int:
    return time.time_ns() // 1000


def samples_since(client: Client, since: int) -> list[dict[str, int]]:
    """Wait until a period with work in it is over, and return its samples."""
    question = SAMPLES.format(since=since)
    wait_until(lambda: "error" not in client.ask(question))
    answer: list[dict[str, int]] = client(question)
    return answer


def test_idle_processes_have_no_samples(client: Client, machine: State) -> None:
    """No sample since the time asked for is "not found", never an empty list."""
    machine.processes.put(machine.find("0"), os.getpid(), MIB)

    assert "NVMLError_NotFound" == client.error(SAMPLES.format(since=0))


def test_busy_processes_have_samples(client: Client, machine: State) -> None:
    """A busy process has a sample with its share of each engine and the time in microseconds."""
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    holding.work(61, bandwidth=23, encoder=7, decoder=5)
    began = microseconds()
    (sample,) = samples_since(client, began)

    assert (os.getpid(), 61, 23, 7, 5) == (
        sample["pid"],
        *(sample[f"{engine}Util"] for engine in ("sm", "mem", "enc", "dec")),
    )
    assert abs(time.time() * 1_000_000 - sample["timeStamp"]) < 5_000_000


def test_a_sample_seen_is_not_given_again(client: Client, machine: State) -> None:
    """
    Asked for what is newer than the newest sample of a process that has stopped, there is nothing.
    """
    began = microseconds()
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    holding.work(50)
    samples_since(client, began)
    holding.work(0)
    time.sleep(2 * PERIOD_SECONDS)
    (sample,) = client(SAMPLES.format(since=began))

    assert "NVMLError_NotFound" == client.error(SAMPLES.format(since=sample["timeStamp"]))


def test_a_burst_between_two_questions_is_sampled(client: Client, machine: State) -> None:
    """A kernel that came and went has an entry for whoever asks since before it."""
    began = microseconds()
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    holding.work(80)
    time.sleep(PERIOD_SECONDS / 10)
    holding.work(0)
    (sample,) = samples_since(client, began)

    assert os.getpid() == sample["pid"]
    assert 0 < sample["smUtil"] <= 80


def test_a_share_is_an_average_since_the_time_asked_for(client: Client, machine: State) -> None:
    """Who worked for half of the time has half of the share, between bounds that its clock sets."""
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    began = microseconds()
    holding.work(100)
    first = microseconds()
    time.sleep(10 * PERIOD_SECONDS)
    last = microseconds()
    holding.work(0)
    ended = microseconds()
    time.sleep(10 * PERIOD_SECONDS)
    asked = microseconds()
    (sample,) = client(SAMPLES.format(since=began))
    answered = microseconds()
    least = 100 * (last - first) / (answered - began)
    most = 100 * (ended - began) / (asked - PERIOD_SECONDS * 1_000_000 - began)

    assert least <= sample["smUtil"] <= most + 1
    assert least < 60


def test_only_who_had_some_use_has_an_entry(client: Client, machine: State) -> None:
    """Of two processes on a card the one that does nothing has no entry."""
    began = microseconds()
    machine.processes.put(machine.find("0"), os.getpid(), MIB).work(50)
    machine.processes.put(machine.find("0"), os.getppid(), MIB)

    assert [os.getpid()] == [sample["pid"] for sample in samples_since(client, began)]


def test_asked_for_everything_the_buffer_is_averaged(client: Client, machine: State) -> None:
    """
    A timestamp of 0 averages the whole buffer: a moment of full load is a few percent, and shows
    when it is over.
    """
    began = microseconds()
    holding = machine.processes.put(machine.find("0"), os.getpid(), MIB)
    holding.work(100)
    samples_since(client, began)
    holding.work(0)
    time.sleep(2 * PERIOD_SECONDS)
    (sample,) = client(SAMPLES.format(since=0))

    assert 0 < sample["smUtil"] < 10


def test_zombies_are_entries_without_sense(client: Client, machine: State) -> None:
    """Processes that died badly give entries of no PID, with shares beyond 100 %."""
    machine.faults.add(Fault(FaultAction.PAD, "nvmlDeviceGetProcessUtilization", argument=100))
    samples = client(SAMPLES.format(since=microseconds() - 1_000_000))

    assert 100 == len(samples)
    assert all(sample["pid"] == 0 and sample["smUtil"] > 100 for sample in samples)


def test_a_small_buffer_is_told_the_size(client: Client, machine: State) -> None:
    """A buffer that is too small is refused with the number of entries there are."""
    machine.faults.add(Fault(FaultAction.PAD, "nvmlDeviceGetProcessUtilization", argument=3))
    since = microseconds() - 1_000_000

    assert [7, 3] == client(
        "(lambda n: [function('nvmlDeviceGetProcessUtilization')(card(0), None, ctypes.byref(n), "
        f"ctypes.c_ulonglong({since})), n.value])(ctypes.c_uint(1))"
    )


def test_samples_seen_before_are_not_given_again(client: Client, machine: State) -> None:
    """Asked for what is newer than the future, there is nothing."""
    machine.processes.put(machine.find("0"), os.getpid(), MIB).work(50)
    future = int(time.time() * 1_000_000) + 60_000_000

    assert "NVMLError_NotFound" == client.error(SAMPLES.format(since=future))


def test_a_card_is_as_busy_as_its_processes(client: Client, machine: State) -> None:
    """The card's utilization is the sum over its processes and never above 100 %."""
    place = machine.find("0")
    machine.processes.put(place, os.getpid(), MIB).work(70, bandwidth=30, encoder=9)
    machine.processes.put(place, os.getppid(), MIB).work(60, bandwidth=20, decoder=4)

    assert {"gpu": 100, "memory": 50} == client("nvmlDeviceGetUtilizationRates(card(0))")
    assert 9 == client("nvmlDeviceGetEncoderUtilization(card(0))")[0]
    assert 4 == client("nvmlDeviceGetDecoderUtilization(card(0))")[0]


MODE = "nvmlDeviceGetAccountingMode(card({card}))"
PIDS = "nvmlDeviceGetAccountingPids(card(0))"
STATS = "nvmlDeviceGetAccountingStats(card(0), {pid})"
PARTED = 5
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
    machine.cards[PARTED].accounting = True
    machine.cards[PARTED].cut("3g.20gb")
    instance = f"nvmlDeviceGetAccountingMode(instance({PARTED}, 0))"

    assert 0 == client(MODE.format(card=PARTED))
    assert "NVMLError_NotSupported" == client.error(
        f"nvmlDeviceSetAccountingMode(card({PARTED}), 1)"
    )
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


H100, A100 = 7, 6
TAKE = "nvmlGpmMigSampleGet(card({card}), {id}, {name})"


def take(client: Client, name: str, instance: int) -> None:
    client(f"{name} = nvmlGpmSampleAlloc()")
    client(TAKE.format(name=name, card=H100, id=instance))


def test_hopper_has_it_and_ampere_has_not(client: Client) -> None:
    """A card says whether it has performance monitoring."""
    assert 1 == client(f"nvmlGpmQueryDeviceSupport(card({H100})).isSupportedDevice")
    assert 0 == client(f"nvmlGpmQueryDeviceSupport(card({A100})).isSupportedDevice")


def test_an_ampere_instance_has_no_samples(client: Client, machine: State) -> None:
    """A card without it refuses to take a sample."""
    machine.cards[A100].cut("3g.40gb")
    instance = machine.cards[A100].instances[0].gpu_instance
    client("x = nvmlGpmSampleAlloc()")
    taking = TAKE.format(name="x", card=A100, id=instance)

    assert "NVMLError_NotSupported" == client.error(taking)


@pytest.mark.parametrize(("level", "expected"), [(0, 0.0), (40, 40.0)])
def test_an_instance_is_measured_alone(
    client: Client, machine: State, level: int, expected: float
) -> None:
    """What one instance does shows in its own metric, whatever the one beside it does."""
    machine.cards[H100].cut("3g.40gb", "3g.40gb")
    first, second = machine.cards[H100].instances
    machine.processes.put(first.place, os.getpid(), MIB).work(level)
    machine.processes.put(second.place, os.getppid(), MIB).work(90)
    time.sleep(2 * PERIOD_SECONDS)
    take(client, "a", first.gpu_instance)
    time.sleep(4 * PERIOD_SECONDS)
    take(client, "b", first.gpu_instance)

    assert expected == pytest.approx(client("percent_between(a, b)"))


def test_an_instance_that_is_not_there(client: Client, machine: State) -> None:
    """Of an id that no instance has, no sample can be taken."""
    machine.cards[H100].cut("3g.40gb")
    client("x = nvmlGpmSampleAlloc()")
    taking = TAKE.format(name="x", card=H100, id=99)

    assert "NVMLError_InvalidArgument" == client.error(taking)
