"""A workload by its command, and several that share a card."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufence.quantity import GIB, MIB
from simulator.nvml.groups import GROUP, GroupTree
from simulator.nvml.layout import Memacct
from simulator.nvml.state import State
from tests.support.driver import set_limit
from tests.support.observing import eventually
from tests.support.workload import Program

START_TIMES = 12
"""What a workload takes of the processor until it starts, in bare interpreters: seven today."""


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State.create(tmp_path / "cards", "T4")


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "words"),
    [
        (("exit 0",), {}, 0, ""),
        (("exit 42",), {}, 42, ""),
        (("jump",), {}, 2, '"jump" is no action'),
        (("--card", "9", "exit 0"), {}, 2, 'card: "9" is not there'),
        (("--context", "much", "exit 0"), {}, 2, '--context: "much" is not'),
        (("exit 0",), {"NVIDIA_VISIBLE_DEVICES": "none"}, 1, "no CUDA-capable device"),
        (
            ("--framework", "cupy", "exit 0"),
            {"CUPY_GPU_MEMORY_LIMIT": ""},
            1,
            "ValueError: invalid literal",
        ),
        (
            ("--framework", "torch", "exit 0"),
            {"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:"},
            134,
            "terminate called",
        ),
    ],
)
def test_an_end_has_a_code_and_a_reason(
    state: State, arguments: tuple[str, ...], variables: dict[str, str], code: int, words: str
) -> None:
    """A script ends as it says; a mistake, a missing card and bad settings end it before."""
    with Program(state.path, *arguments, variables=variables) as program:
        ended, complaint = program.end()

    assert code == ended
    assert words in complaint
    assert len(complaint.splitlines()) == bool(words)


def test_without_a_machine_it_is_said(tmp_path: Path) -> None:
    """A state file that is not there is named with the way to make one."""
    with Program(tmp_path / "nothing", "exit 0") as program:
        code, complaint = program.end()

    assert 1 == code
    assert "make one with: python -m simulator nvml create" in complaint


def test_the_first_line_tells_card_and_cap(state: State) -> None:
    """A person sees at once which card is used, what the cap is and where it comes from."""
    variables = {"FLAGS_gpu_memory_limit_mb": "2048"}
    with Program(state.path, "--framework", "paddle", "exit 0", variables=variables) as program:
        program.end()

    expected = f"paddle on Tesla T4 ({state.cards[0].uuid}): cap 2048 MiB"
    assert expected in program.lines[0]
    assert "(FLAGS_gpu_memory_limit_mb is 2048)" in program.lines[0]


def test_a_framework_on_the_cpu_says_so(state: State) -> None:
    """JAX goes on without the card, and the first line is the only place that says it."""
    variables = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "$(GPU_FRACTION)"}
    with Program(state.path, "--framework", "jax", "hold 2Gi; exit 0", variables=variables) as one:
        code, _ = one.end()

    assert 0 == code
    assert "falling back to cpu" in one.lines[0]
    assert "hold 2Gi: 0 MiB on the card" in one.lines[1]


def test_it_starts_fast(state: State) -> None:
    """A workload costs so little to start that a node of them can be started at once."""
    workload = ("-m", "simulator", "workload", "--state", str(state.path), "exit 0")

    def processor_seconds(*arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, *arguments]
        subprocess.run(command, env={}, capture_output=True, check=True)  # nor coverage in it
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    least, bare = (
        min(processor_seconds(*arguments) for _ in range(5)) for arguments in (workload, ("-c", ""))
    )

    assert least < START_TIMES * bare


def test_the_help_teaches_the_language(tmp_path: Path) -> None:
    """The help has the whole grammar."""
    with Program(tmp_path, "--help") as program:
        program.end()
    text = "\n".join(program.lines)

    assert '"grow" SIZE "/s" "to" SIZE' in text
    assert "--on-oom" in text


DONE = "holding on"


@pytest.fixture
def two_cards(tmp_path: Path) -> State:
    return State.create(tmp_path / "cards", "T4,L4")


@pytest.fixture
def programs() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def alive(two_cards: State) -> dict[int, int]:
    """Return what each living process holds on the first card."""
    return {use.pid: use.memory for use in two_cards.cards[0].uses}


def test_the_second_dies_and_the_first_lives(two_cards: State) -> None:
    """Without caps whoever allocates beyond the card dies of it, not whoever holds too much."""
    with Program(two_cards.path, "--framework", "torch", "hold 12Gi") as first:
        first.until(DONE)
        with Program(
            two_cards.path, "--framework", "torch", "hold 2Gi; grow 3Gi; exit 0"
        ) as second:
            code, complaint = second.end()

        assert 1 == code
        assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB" in complaint
        assert {first.pid: 12 * GIB} == alive(two_cards)


def test_with_caps_both_stay_inside(two_cards: State) -> None:
    """With a cap each the greedy one dies of his own limit while there is room on the card."""
    cap = {"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.4"}
    with Program(two_cards.path, "--framework", "torch", "hold 5Gi", variables=cap) as first:
        first.until(DONE)
        with Program(
            two_cards.path, "--framework", "torch", "hold 5Gi; grow 3Gi", variables=cap
        ) as second:
            code, complaint = second.end()

        assert 1 == code
        assert "5.83 GiB allowed by per_process_memory_fraction" in complaint
        assert {first.pid: 5 * GIB} == alive(two_cards)
        assert two_cards.cards[0].room.free > 8 * GIB


def test_growers_never_exceed_the_card(two_cards: State, programs: contextlib.ExitStack) -> None:
    """Eight processes that grow at once fill the card and never overfill it."""
    crowd = [
        programs.enter_context(
            Program(two_cards.path, "--on-oom", "wait", "grow 40Gi/s to 4Gi; hold 4Gi")
        )
        for _ in range(8)
    ]
    for program in crowd:
        program.until(": no cap")
    most = 0

    def is_full() -> bool:
        nonlocal most
        room = two_cards.cards[0].room
        most = max(most, room.reserved + room.taken)
        return room.free < 2 * GIB and 8 == len(alive(two_cards))

    assert eventually(is_full)
    assert most <= two_cards.cards[0].memory


def test_patience_is_rewarded(two_cards: State) -> None:
    """A process that waits for memory goes on when its neighbour leaves."""
    with Program(two_cards.path, "hold 10Gi") as first:
        first.until(DONE)
        with Program(two_cards.path, "--on-oom", "wait", "hold 8Gi; exit 0") as second:
            second.until("Waiting for memory.")
            first.signal(signal.SIGKILL)

            assert (0, "") == second.end()


@pytest.mark.parametrize("kind", [Memacct.MISC, Memacct.DMEM], ids=["misc", "dmem"])
def test_the_drivers_limit_is_its_end(two_cards: State, tmp_path: Path, kind: Memacct) -> None:
    """Above its group's limit it ends in its framework's words, and the card has room."""
    two_cards.groups.memacct = kind
    group = GroupTree(tmp_path / "cgroup").add("pod/leaf")
    set_limit(two_cards.path, group, 3 * GIB)
    script = ("--framework", "torch", "--context", "300Mi", "hold 2700Mi; hold 2800Mi")
    with Program(two_cards.path, *script, variables={GROUP: str(group)}) as program:
        program.until("hold 2700Mi")
        code, complaint = program.end()

    assert 1 == code
    assert "has a total capacity of 3.00 GiB of which 72.00 MiB is free" in complaint


@pytest.mark.parametrize(
    ("framework", "capped", "cap"),
    [("torch", False, 7465), ("torch", True, 1536), ("cupy", False, 1536)],
)
def test_a_share_is_of_what_a_framework_takes_for_the_total(
    two_cards: State, tmp_path: Path, framework: str, cap: int, *, capped: bool
) -> None:
    """Half is half of the limit, or of a device whose size the driver says unchanged."""
    two_cards.groups.totals_capped = capped
    group = GroupTree(tmp_path / "cgroup").add("pod/leaf")
    set_limit(two_cards.path, group, 3 * GIB)
    shares = {
        GROUP: str(group),
        "PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.5",
        "CUPY_GPU_MEMORY_LIMIT": "50%",
    }
    with Program(two_cards.path, "--framework", framework, "exit 0", variables=shares) as program:
        said = program.until("cap")

    assert f"cap {cap} MiB" in said


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_memory_is_free_however_a_process_ends(two_cards: State, number: int, code: int) -> None:
    """SIGTERM and SIGINT end it in order, SIGKILL does not ask, the memory is free either way."""
    with Program(two_cards.path, "--context", "300Mi", "hold 2Gi") as program:
        program.until(DONE)
        before = alive(two_cards)
        program.signal(number)
        ended, _ = program.end()

        assert {program.pid: 2 * GIB + 300 * MIB} == before
        assert code == ended
        assert {} == alive(two_cards)


def test_a_deaf_process_survives_sigterm(two_cards: State) -> None:
    """A process may ignore SIGTERM, as some do, and only SIGKILL ends it."""
    with Program(
        two_cards.path, "--on-term", "ignore", "hold 1Gi; after 300ms hold 2Gi"
    ) as program:
        program.until("hold 1Gi")
        program.signal(signal.SIGTERM)
        program.until("hold 2Gi")

        assert {program.pid: 2 * GIB} == alive(two_cards)
        program.signal(signal.SIGKILL)
        assert -signal.SIGKILL == program.end()[0]


def test_workers_take_as_much_each(two_cards: State) -> None:
    """Forked workers are processes of their own with the same memory, and end with their parent."""
    with Program(two_cards.path, "--context", "200Mi", "hold 1Gi; fork 3") as program:
        assert eventually(lambda: 4 == len(alive(two_cards)))
        held = alive(two_cards)
        workers = set(held) - {program.pid}
        program.signal(signal.SIGTERM)
        code, _ = program.end()

        assert 143 == code
        assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)  # noqa: PTH110 - short


def test_workers_die_with_a_killed_parent(two_cards: State) -> None:
    """No worker outlives a parent that was killed."""
    with Program(two_cards.path, "hold 1Gi; fork 2") as program:
        assert eventually(lambda: 3 == len(alive(two_cards)))
        program.signal(signal.SIGKILL)

        assert eventually(lambda: {} == alive(two_cards))


def test_a_worker_may_die_of_its_own(two_cards: State) -> None:
    """Where the card has no room for another worker, that worker dies and the parent goes on."""
    with Program(two_cards.path, "hold 6Gi; fork 2; after 300ms busy 10%; exit 0") as program:
        code, complaint = program.end()

        assert 0 == code
        assert 1 == complaint.count("out of memory")
        assert any("ended with 1" in line for line in program.lines)
