"""The state of the simulated NVML, and the shell that changes it."""

import os
from pathlib import Path

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import GIB, MIB
from simulator.nvml import __main__ as shell
from simulator.nvml import layout
from simulator.nvml.__main__ import describe
from simulator.nvml.cards import read_cards
from simulator.nvml.errors import CardFullError, StateFileError, TableFullError
from simulator.nvml.faults import FUNCTIONS, Fault, NvmlCode, span
from simulator.nvml.groups import GroupTree
from simulator.nvml.layout import FaultAction, Lists, Memacct
from simulator.nvml.state import State
from tests.support.driver import set_limit

T4_FREE = (15360 - 430) * MIB


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State.create(tmp_path / "cards", "T4,A100-40:3g.20gb+1g.5gb")


def test_an_allocation_beyond_the_card_changes_nothing(state: State) -> None:
    """Out of memory hits whoever asks and leaves everything as it was."""
    first = state.processes.hold(state.find("0"), 10 * GIB)
    with pytest.raises(CardFullError) as caught:
        first.resize(15 * GIB)

    assert 10 * GIB == first.memory
    assert (5 * GIB, T4_FREE - 10 * GIB) == (caught.value.wanted, caught.value.free)


def test_an_instance_has_its_own_room(state: State) -> None:
    """An instance is full when it is full, however much its card has left."""
    state.processes.hold(state.find("1:1"), 4 * GIB)
    with pytest.raises(CardFullError):
        state.processes.hold(state.find("1:1"), GIB)

    assert 4864 * MIB - 4 * GIB == state.processes.room(state.find("1:1")).free
    assert 4 * GIB == state.cards[1].room.taken


def test_a_released_place_is_used_again(state: State) -> None:
    """Releasing gives memory and record back."""
    for _ in range(layout.MAX_RECORDS + 1):
        state.processes.hold(state.find("0"), GIB).release()

    assert () == state.cards[0].uses


def test_there_is_an_end_to_processes(state: State) -> None:
    """A full table says how many fit."""
    for number in range(layout.MAX_RECORDS):
        entry = state.processes.record(number)
        entry.status, entry.kind, entry.card = 1, layout.Liveness.KEPT, 0
    state._file.layout.record_count = layout.MAX_RECORDS

    with pytest.raises(TableFullError, match="at most 1024 processes"):
        state.processes.hold(state.find("0"))


@pytest.mark.parametrize("name", ["0", "1", "0:0", "1:2", "GPU-x", "", "-1"])
def test_cards_are_found_or_named(state: State, name: str) -> None:
    """A card is found by index, an unknown name is answered with the known ones."""
    if name in {"0", "1"}:
        assert int(name) == state.find(name).card
    else:
        with pytest.raises(InvalidError, match=r"is not there; use one of 0, GPU-"):
            state.find(name)


def test_faults_can_be_read_back(state: State) -> None:
    """The active faults are listed as they were made."""
    faults = (
        Fault.code(NvmlCode.GPU_IS_LOST, "nvmlDeviceGetMemoryInfo", 1, after=2, times=3),
        Fault(FaultAction.PAD, "nvmlDeviceGetComputeRunningProcesses_v1", argument=7),
        Fault.delay(0.25),
    )
    numbers = [state.faults.add(fault) for fault in faults]

    assert list(zip(numbers, faults, strict=True)) == list(state.faults.active())


@pytest.mark.parametrize("content", [None, b"", b"x" * 100, b"\0" * 200_000])
def test_what_is_no_state_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """A missing, short or foreign file is named with the way to make one."""
    path = tmp_path / "other"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(StateFileError, match="make one with: python -m simulator nvml create"):
        State.open(path)


def test_a_file_of_the_right_size_must_have_the_right_head(state: State) -> None:
    """A state of another version is refused whatever its size."""
    content = bytearray(state.path.read_bytes())
    content[8] += 1
    other = state.path.with_name("other")
    other.write_bytes(content)

    with pytest.raises(StateFileError, match="no state file of this version"):
        State.open(other)


def test_a_long_driver_version_is_refused(state: State) -> None:
    """A version that does not fit is refused, not cut."""
    with pytest.raises(StateFileError, match="is too long"):
        state.upgrade_driver("5" * 32)


def test_a_card_without_mig_cannot_be_cut(state: State) -> None:
    """A T4 has no MIG mode."""
    with pytest.raises(InvalidError, match="has no MIG mode"):
        state.cards[0].cut("1g.5gb")


def test_a_machine_can_be_described(state: State) -> None:
    """The description names cards, instances, processes and faults."""
    state.processes.hold(state.find("0"), 2 * GIB, lists=Lists.MPS).resize(managed=GIB)
    state.processes.put(state.find("1:0"), os.getpid(), GIB)
    state.faults.add(Fault.code(NvmlCode.UNKNOWN, "nvmlDeviceGetName", 1, after=2, times=1))
    text = describe(state)

    assert f"PID {os.getpid()}: 2048 MiB, mps, 1024 MiB managed" in text
    assert f"PID {os.getpid()}: 1024 MiB, compute, instance 0" in text
    assert "instance 1:1: 1g.5gb, MIG-" in text
    assert "card 0: Tesla T4, GPU-" in text
    assert (
        "fault 0: return 999 in nvmlDeviceGetName on the card at place 1, after 2 calls, 1 times"
        in text
    )


def test_the_shell_says_how_groups_count(
    state: State, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kind of accounting and of totals is set by a verb, and limits are listed by another."""
    for arguments in (["memacct", str(state.path), "dmem"], ["totals", str(state.path), "capped"]):
        assert 0 == shell.main(arguments)
    group = GroupTree(tmp_path / "cgroup").add("pods.slice/leaf.scope")
    set_limit(state.path, group, 3 * GIB, soft=GIB)
    state.processes.put(state.find("0"), os.getpid(), GIB, group=str(group))
    shell.main(["limits", str(state.path)])
    listed = capsys.readouterr().out.splitlines()

    assert (Memacct.DMEM, True) == (state.groups.memacct, state.groups.totals_capped)
    assert f"card 0: limit 3072 MiB, 1024 MiB reserved, 1024 MiB counted for {group}" in listed


def keys(text: str) -> list[str]:
    return [card.model.key for card in read_cards(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T4", ["T4"]),
        ("t4, l4", ["T4", "L4"]),
        ("V100", ["V100-16"]),
        ("2xA100-40,H100", ["A100-40", "A100-40", "H100"]),
        ("16xT4", ["T4"] * 16),
    ],
)
def test_cards_are_a_list_of_models(text: str, expected: list[str]) -> None:
    """Models are named in any case, several of one at a time."""
    assert expected == keys(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("K80", '"K80" is no known card; use one of T4, V100-16'),
        ("", '"" is no card; write a model such as T4'),
        ("T4,,T4", '"" is no card'),
        ("T4 T4", '"T4 T4" is no card'),
        ("17xT4", "makes 17 cards; name 1 to 16"),
        ("0xT4", "makes 0 cards; name 1 to 16"),
        ("T4:1g.5gb", "has no MIG mode; cut an A100 or an H100"),
        ("A100-40:1g.10gb", '"1g.10gb" is no MIG profile of this card; use one of 1g.5gb'),
        ("A100-40:4g.20gb+4g.20gb", "takes more than the 7 slices"),
    ],
)
def test_what_makes_no_sense_is_named(text: str, complaint: str) -> None:
    """An error quotes the word and says what could stand there."""
    with pytest.raises(InvalidError) as caught:
        read_cards(text)

    assert complaint in str(caught.value)


MEMORY = "nvmlDeviceGetMemoryInfo"


def named(name: str) -> tuple[str, ...]:
    first, last = span(name)
    return FUNCTIONS[first : last + 1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (MEMORY, (MEMORY, f"{MEMORY}_v2")),
        (f"{MEMORY}_v1", (MEMORY,)),
        (f"{MEMORY}_v2", (f"{MEMORY}_v2",)),
        ("nvmlInit", ("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags")),
        ("nvmlInitWithFlags", ("nvmlInitWithFlags",)),
        ("nvmlDeviceGetName", ("nvmlDeviceGetName",)),
        ("*", FUNCTIONS),
    ],
)
def test_a_name_stands_for_its_versions(name: str, expected: tuple[str, ...]) -> None:
    """A name without a version means all versions, one with a version that one."""
    assert expected == named(name)


def test_a_name_from_nowhere_is_refused() -> None:
    """A fault for a function that is not there would never act, so it cannot be made."""
    with pytest.raises(InvalidError, match="is no function of the library"):
        span("open")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cards"
    State.create(path, "T4,L4")
    return path


def run(*words: object) -> int:
    return shell.main([str(word) for word in words])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("put", "--card", "9", "--pid", "1", "--memory", "1Gi"), 'card: "9" is not there'),
        (("put", "--card", "0", "--pid", "1", "--memory", "1Gx"), '--memory: "1Gx" is not'),
        (("put", "--card", "0", "--pid", "1", "--memory", "99Gi"), "out of memory"),
        (("fault", "hang", "--function", "nvmlInitt"), "perhaps nvmlInit was meant"),
    ],
)
def test_what_cannot_be_is_one_line(
    path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    """A mistake is answered with one line and exit code 1."""
    code = run(words[0], path, *words[1:])
    captured = capsys.readouterr()

    assert 1 == code
    assert 1 == len(captured.err.splitlines())
    assert complaint in captured.err
