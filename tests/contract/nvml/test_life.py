"""A life with the library: processes in its lists, what they did, and what is kept of them."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from gpufence.names import SIMULATOR_STATE
from gpufence.quantity import MIB
from simulator.nvml import layout
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.support.driver import Client
from tests.support.observing import PATIENCE_SECONDS, wait_until
from tests.support.running import pid_namespace

LIST = "nvmlDeviceGetComputeRunningProcesses"
COMPUTE = f"{LIST}(card(0))"
USED = "nvmlDeviceGetMemoryInfo(card(0), nvmlMemory_v2).used"
OWN = os.getpid()
SECONDS = 10.0
HOLDER = """
import sys, time
from pathlib import Path
from simulator.nvml.state import State
state = State.open(Path(sys.argv[1]))
holding = state.processes.hold(state.find("0"), int(sys.argv[2]))
holding.work(10)
print("holding", flush=True)
sys.stdin.read()
"""


def start_holder(
    machine: State, memory: int = 200 * MIB, prefix: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """Start a process that holds memory until its input ends."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", HOLDER, str(machine.path), str(memory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "holding\n" == process.stdout.readline()
    return process


def finish(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(SECONDS)
    process.stdout.close()


@pytest.fixture
def holder(machine: State) -> Iterator[subprocess.Popen[str]]:
    process = start_holder(machine)
    yield process
    finish(process)


def pids(client: Client) -> list[int]:
    return [process["pid"] for process in client(COMPUTE)]


def test_a_holder_is_listed_until_it_is_killed(
    client: Client, machine: State, holder: subprocess.Popen[str]
) -> None:
    """Nobody writes it down under its PID, and however it dies its memory is free at once."""
    before = pids(client), client(USED)
    holder.kill()
    holder.wait(SECONDS)

    assert ([holder.pid], 200 * MIB) == before
    assert ([], 0, 0) == (pids(client), client(USED), machine.cards[0].room.taken)


def test_opening_it_again_drops_no_lock(client: Client, machine: State) -> None:
    """A second view of the file that comes and goes leaves what this process holds alone."""
    holding = machine.processes.hold(machine.find("0"), 300 * MIB)
    before = pids(client)
    type(machine).open(machine.path)
    gc.collect()

    assert [os.getpid()] == before == pids(client)
    assert 300 * MIB == holding.memory


def test_a_reused_number_is_not_the_old_process(client: Client, machine: State) -> None:
    """A record whose holder died is not revived by a new process with the same PID."""
    process = start_holder(machine)
    process.kill()
    finish(process)
    state = machine.processes.record(0)
    state.pid = client.process.pid  # as if the client had been given the dead process's number
    state.name_space = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - one number

    assert [] == pids(client)


def test_a_pid_by_number_is_listed_while_it_lives(client: Client, machine: State) -> None:
    """A PID that was only written down is checked against the living."""
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
    machine.processes.put(machine.find("0"), process.pid, MIB)
    before = pids(client)
    process.kill()
    process.communicate()

    assert [process.pid] == before
    assert [] == pids(client)


def test_a_dead_allocator_blocks_nobody(machine: State) -> None:
    """A process that dies in the middle of an allocation leaves no lock behind."""
    code = (
        "import os, sys; from pathlib import Path; from simulator.nvml.file import StateFile;"
        "file = StateFile.open(Path(sys.argv[1]));"
        "file.locks.allocation().__enter__(); print('locked', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(machine.path)], stdin=-1, stdout=-1, text=True
    )
    assert process.stdout is not None
    assert "locked\n" == process.stdout.readline()
    process.kill()
    process.communicate()
    begin = time.monotonic()
    machine.processes.put(machine.find("0"), os.getpid(), MIB)

    assert time.monotonic() - begin < PATIENCE_SECONDS


@pytest.fixture
def nested(machine: State) -> Iterator[subprocess.Popen[str]]:
    """A holder in a PID namespace of its own."""
    process = start_holder(machine, prefix=pid_namespace())
    yield process
    finish(process)


@pytest.fixture
def nested_client(machine: State) -> Iterator[Client]:
    """A client in a PID namespace of its own."""
    with Client(machine.path, prefix=pid_namespace()) as one:
        yield one


def child_of(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children") as children:  # noqa: PTH123 - one line
        return int(children.read())


@pytest.mark.needs("PID namespaces")
def test_the_outside_sees_a_nested_process_by_its_outer_pid(
    client: Client, nested: subprocess.Popen[str]
) -> None:
    """A process that is PID 1 in its own namespace is listed by the PID it has here."""
    assert [child_of(nested.pid)] == pids(client)


@pytest.mark.needs("PID namespaces")
def test_the_inside_does_not_see_the_outside(
    nested_client: Client, holder: subprocess.Popen[str]
) -> None:
    """
    Without hostPID a modern driver answers success and an empty list while the card is in use.
    """
    assert holder.poll() is None
    assert [] == pids(nested_client)
    assert 200 * MIB == nested_client(USED)


@pytest.mark.parametrize(
    ("processes", "capacity", "expected"),
    [
        (0, None, NvmlCode.SUCCESS),
        (3, None, NvmlCode.INSUFFICIENT_SIZE),
        (3, 2, NvmlCode.INSUFFICIENT_SIZE),
        (3, 3, NvmlCode.SUCCESS),
        (3, 9, NvmlCode.SUCCESS),
    ],
)
def test_a_small_buffer_is_answered_with_the_size_it_takes(
    client: Client, machine: State, processes: int, capacity: int | None, expected: NvmlCode
) -> None:
    """A buffer must hold the whole list; the count is right either way."""
    for number in range(processes):
        machine.processes.put(machine.find("0"), 1_000_001 + number, MIB, kept=True)

    assert [expected, processes] == client(f"raw('{LIST}_v3', card(0), {capacity})")


def test_growth_beyond_what_pynvml_allows_for_is_an_error(client: Client, machine: State) -> None:
    """From 2 to 42 processes between its two calls raises; asked again, it works."""
    for number in range(2):
        machine.processes.put(machine.find("0"), 1_000_001 + number, MIB, kept=True)
    machine.faults.add(Fault(FaultAction.PAD, LIST, argument=40, after=1, times=1))

    assert "NVMLError_InsufficientSize" == client.error(COMPUTE)
    assert 2 == len(client(COMPUTE))


DETAILS = "nvmlDeviceGetRunningProcessDetailList"


@pytest.mark.parametrize(
    ("card", "fault", "expected"),
    [
        (7, Fault(FaultAction.NOT_AVAILABLE), "TypeError"),  # in pynvml itself
        (7, Fault(FaultAction.PAD, DETAILS, argument=1, after=1), "NVMLError_InsufficientSize"),
        (0, Fault(FaultAction.NOT_AVAILABLE), "NVMLError_ArgumentVersionMismatch"),
    ],
    ids=["no memory to tell", "one newcomer", "before Hopper"],
)
def test_the_detail_list_is_of_little_use(
    client: Client, machine: State, card: int, fault: Fault, expected: str
) -> None:
    """It has no room for growth, cannot carry unavailable memory, and is Hopper's alone."""
    machine.processes.put(machine.find(f"{card}"), 1_000_001, MIB, kept=True)
    machine.faults.add(fault)

    assert expected == client.error(f"{DETAILS}(card({card}), 0x01000018, 0)")


def test_managed_memory_shows_on_the_device_only(client: Client, machine: State) -> None:
    """UVM memory fills the card and is charged to nobody."""
    holding = machine.processes.put(machine.find("0"), OWN, 500 * MIB)
    holding.resize(managed=5000 * MIB)

    assert 500 * MIB == client(COMPUTE)[0]["usedGpuMemory"]
    assert 5500 * MIB == client(USED)


SAMPLES = "nvmlDeviceGetProcessUtilization(card(0), {since})"


def microseconds() -> int:
    return time.time_ns() // 1000


def samples_since(client: Client, since: int) -> list[dict[str, int]]:
    """Wait until a period with work in it is over, and return its samples."""
    question = SAMPLES.format(since=since)
    wait_until(lambda: "error" not in client.ask(question))
    answer: list[dict[str, int]] = client(question)
    return answer


def test_a_busy_process_has_a_sample(client: Client, machine: State) -> None:
    """It has the share of each engine and the time in microseconds; an idle one has no entry."""
    holding = machine.processes.put(machine.find("0"), OWN, MIB)
    machine.processes.put(machine.find("0"), os.getppid(), MIB)
    idle = client.error(SAMPLES.format(since=0))
    began = microseconds()
    holding.work(61, bandwidth=23, encoder=7, decoder=5)
    (sample,) = samples_since(client, began)

    assert "NVMLError_NotFound" == idle
    assert (OWN, 61, 23, 7, 5) == (
        sample["pid"],
        *(sample[f"{engine}Util"] for engine in ("sm", "mem", "enc", "dec")),
    )
    assert abs(microseconds() - sample["timeStamp"]) < 5_000_000


def test_asked_for_everything_the_buffer_is_averaged(client: Client, machine: State) -> None:
    """A timestamp of 0 averages the whole buffer: a moment of full load is a few percent."""
    began = microseconds()
    holding = machine.processes.put(machine.find("0"), OWN, MIB)
    holding.work(100)
    samples_since(client, began)
    holding.work(0)

    def share() -> int:
        return int(client(SAMPLES.format(since=0))[0]["smUtil"])

    wait_until(lambda: 0 < share() < 10)


def test_a_card_is_as_busy_as_its_processes(client: Client, machine: State) -> None:
    """The card's utilization is the sum over its processes and never above 100 %."""
    place = machine.find("0")
    machine.processes.put(place, OWN, MIB).work(70, bandwidth=30, encoder=9)
    machine.processes.put(place, os.getppid(), MIB).work(60, bandwidth=20, decoder=4)

    assert {"gpu": 100, "memory": 50} == client("nvmlDeviceGetUtilizationRates(card(0))")
    assert 9 == client("nvmlDeviceGetEncoderUtilization(card(0))")[0]
    assert 4 == client("nvmlDeviceGetDecoderUtilization(card(0))")[0]


MODE = "nvmlDeviceGetAccountingMode(card({card}))"
PIDS = "nvmlDeviceGetAccountingPids(card(0))"
STATS = "nvmlDeviceGetAccountingStats(card(0), {pid})"
NOBODY = 65534


@pytest.fixture
def accounted(machine: State) -> State:
    """The machine with accounting on its first card."""
    machine.cards[0].accounting = True
    return machine


def most(client: Client, pid: int = OWN) -> int:
    answer = client(STATS.format(pid=pid))
    return int(answer["maxMemoryUsage"]) // MIB


def test_others_than_root_may_only_look(start: Callable[..., Client], accounted: State) -> None:
    """Who is not root may read, and neither turn the mode on or off nor clear anything."""
    accounted.path.parent.chmod(0o755)
    client = start()
    client(f"[__import__('os').seteuid({NOBODY})]")

    assert "NVMLError_NoPermission" == client.error("nvmlDeviceSetAccountingMode(card(1), 1)")
    assert "NVMLError_NoPermission" == client.error("nvmlDeviceClearAccountingPids(card(0))")
    assert 1 == client(MODE.format(card=0))


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
