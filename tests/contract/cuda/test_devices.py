"""Which cards a program sees, and what it learns about them."""

from collections.abc import Callable

import pytest

from simulator.nvml.state import State
from tests.contract.cuda.conftest import Watched
from tests.support.cuda_client import CudaProgram

CONTEXT = 300
NO_DEVICE = 100
INVALID_DEVICE = 101

Start = Callable[..., CudaProgram]


def test_a_card_is_the_same_by_both_names(program: CudaProgram, machine: State) -> None:
    """Name, UUID, size and place of a card are those that NVML shows."""
    uuids = [card.uuid.removeprefix("GPU-").replace("-", "") for card in machine.cards]

    assert uuids == [program(f"uuid({device})") for device in (0, 1)]
    assert machine.cards[0].name == program("text(driver.cuDeviceGetName, 0)")
    assert "0000:05:00.0" == program("text(driver.cuDeviceGetPCIBusId, 1)")
    assert [0, machine.cards[0].room.usable] == program("given(driver.cuDeviceTotalMem_v2, 0)")
    assert [8, 0] == [program("attribute(75)"), program("attribute(76)")]


def test_two_cards_are_two_records(program: CudaProgram, nvml: Watched) -> None:
    """What a program holds on each of two cards is shown there, and not on the other."""
    program("held = take(1000 * MIB)")
    program("held = [use(1), take(500 * MIB)]")

    assert {program.process.pid: CONTEXT + 1000} == nvml.pids(0)
    assert {program.process.pid: CONTEXT + 500} == nvml.pids(1)


@pytest.mark.parametrize(
    ("visible", "cards"),
    [
        ("0", [0]),
        ("1", [1]),
        ("1,0", [1, 0]),
        (" 1 , 0 ", [1, 0]),
        ("1,-1,0", [1]),
        ("1,7,0", [1]),
        ("uuid1", [1]),
        ("uuid1,uuid0", [1, 0]),
    ],
)
def test_a_program_sees_what_it_was_given(
    visible: str, cards: list[int], start: Start, machine: State
) -> None:
    """CUDA_VISIBLE_DEVICES chooses cards, in its order, up to the first name that means none."""
    for card in (0, 1):
        visible = visible.replace(f"uuid{card}", machine.cards[card].uuid)
    one = start(variables={"CUDA_VISIBLE_DEVICES": visible})
    seen = [one(f"uuid({device})") for device in range(one("devices()"))]

    assert [machine.cards[card].uuid[4:].replace("-", "") for card in cards] == seen


@pytest.mark.parametrize("visible", ["", "-1", "none", "7", "GPU-", "0,0", "GPU-0000"])
def test_a_program_may_see_no_card(visible: str, start: Start, nvml: Watched) -> None:
    """A list that begins with no card, that is ambiguous or names one twice, leaves none."""
    one = start(device=None, variables={"CUDA_VISIBLE_DEVICES": visible})

    assert NO_DEVICE == one("init()")
    assert {} == nvml.pids()


def test_without_a_machine_there_is_no_card(start: Start) -> None:
    """A program whose state file is not there has no card, and stderr says why."""
    one = start(device=None, variables={"GPUFENCE_SIMULATOR_STATE": "/nowhere"})
    code = one("init()")
    one.close_input()

    assert NO_DEVICE == code
    assert "remedy: python -m simulator nvml create" in one.complaints()


def test_a_card_that_is_not_there_is_refused(program: CudaProgram) -> None:
    """A number beyond the visible cards is no device."""
    assert [INVALID_DEVICE] * 2 == program("[use(2), use(-1)]")


def test_an_instance_is_a_device(machine: State, start: Start, nvml: Watched) -> None:
    """Of a card in MIG mode a program sees the instance it was given, with its size."""
    machine.cards[1].cut("3g.20gb", "1g.5gb")
    small = machine.cards[1].instances[1]
    one = start(variables={"CUDA_VISIBLE_DEVICES": small.uuid})
    one("held = take(1000 * MIB)")

    assert [1, small.memory] == [one("devices()"), one("room()")[2]]
    assert CONTEXT + 1000 == machine.processes.room(small.place).taken >> 20
    assert {} == nvml.pids(0)


def test_a_cut_card_is_its_first_instance(machine: State, start: Start) -> None:
    """Without a choice, a card in MIG mode is its first instance, as for CUDA itself."""
    machine.cards[0].cut("3g.20gb", "1g.5gb")
    one = start()

    assert machine.cards[0].instances[0].memory == one("room()")[2]
    assert machine.cards[0].instances[0].uuid[4:].replace("-", "") == one("uuid(0)")
