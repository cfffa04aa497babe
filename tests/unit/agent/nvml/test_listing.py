"""When a list of processes is due, and what becomes of the attempt."""

import pytest

from agent.model.sample import GpuProcess, ProcessList, Trouble
from agent.nvml.cards import UNCHARGED_BYTES, ListAttempt, ListPace, list_attempt, list_is_due
from agent.nvml.faults import Code
from agent.nvml.protocol import NvmlFailure
from gpufence.quantity import GIB, MIB
from tests.support.agent.nvml import listed, memory

PACE = ListPace(interval_seconds=1.0, list_seconds=10.0, moved_bytes=64 * MIB)
NOW = 100.0
SLOW = Trouble("too slow")


def last(used: int | None = 0, age: float = 1.0, *, again: bool = False) -> ListAttempt:
    return ListAttempt(NOW - age, used, again=again)


@pytest.mark.parametrize(
    ("used_before", "used", "age", "due"),
    [
        (GIB, GIB, 1.0, False),
        (GIB, GIB + 64 * MIB, 1.0, False),
        (GIB, GIB + 64 * MIB + 1, 1.0, True),
        (GIB, GIB - 64 * MIB - 1, 1.0, True),
        (GIB, GIB, 9.4, False),
        (GIB, GIB, 9.5, True),
        (None, GIB, 1.0, True),
        (GIB, None, 1.0, True),
        (None, None, 1.0, False),
        (None, None, 10.0, True),
    ],
)
def test_a_list_is_due_by_movement_or_age(
    used_before: int | None, used: int | None, age: float, *, due: bool
) -> None:
    """More than 64 MiB up or down since the last list, or the last list ten seconds ago."""
    assert due == list_is_due(last(used_before, age), used, NOW, PACE)


def test_a_first_list_is_due() -> None:
    """A card that was never listed is listed at once."""
    assert list_is_due(None, 0, NOW, PACE)


def test_a_failed_list_is_due_again() -> None:
    """An attempt that may succeed when repeated is repeated."""
    assert list_is_due(last(again=True), 0, NOW, PACE)


def test_the_lists_are_merged() -> None:
    """The largest figure of a PID counts, whichever list shows it."""
    answer = listed(
        99.0, GpuProcess(1, GIB), graphics=(GpuProcess(1, 2 * GIB), GpuProcess(2, None))
    )
    expected = ProcessList(99.0, (GpuProcess(1, 2 * GIB), GpuProcess(2, None)))

    assert ListAttempt(NOW, GIB, expected) == list_attempt(answer, memory(GIB), NOW, None)


def test_mps_clients_mark_the_card() -> None:
    """Anybody in the list of MPS clients makes the card one whose clients cannot be told apart."""
    listing = list_attempt(listed(99.0, mps=(GpuProcess(1, GIB),)), memory(GIB), NOW, None)

    assert listing.mps
    assert ProcessList(99.0, (GpuProcess(1, GIB),)) == listing.processes


def test_a_missing_answer_is_tried_again() -> None:
    """No answer leaves the list unknown, with its reason."""
    expected = ListAttempt(NOW, None, trouble=SLOW, again=True)

    assert expected == list_attempt(SLOW, None, NOW, None)


@pytest.mark.parametrize(
    ("code", "again"), [(Code.UNKNOWN, True), (Code.INSUFFICIENT_SIZE, True), (4, False)]
)
def test_a_failure_leaves_the_list_unknown(code: int, *, again: bool) -> None:
    """A failed list is no empty list; what lasts is not asked for each second."""
    listing = list_attempt(NvmlFailure(code, "list"), memory(), NOW, None)

    assert None is listing.processes
    assert again == listing.again
    assert f"code {int(code)}" in listing.trouble.text


@pytest.mark.parametrize("shown", [(), (GpuProcess(7, 0),)], ids=["nobody", "zero"])
@pytest.mark.parametrize("reserved", [0, 512 * MIB, None])
def test_memory_charged_to_nobody_is_no_idle_card(
    shown: tuple[GpuProcess, ...], reserved: int | None
) -> None:
    """A card in use whose list charges nobody has an unknown list."""
    used = UNCHARGED_BYTES + (reserved or 0) + 1
    listing = list_attempt(listed(99.0, *shown), memory(used, reserved), NOW, None)

    assert None is listing.processes
    assert listing.again
    assert "hostPID" in listing.trouble.text


def test_a_lasting_doubt_is_not_renewed_each_second() -> None:
    """The second list that charges nobody waits for its turn."""
    first = list_attempt(listed(), memory(9 * GIB), NOW, None)
    second = list_attempt(listed(), memory(9 * GIB), NOW, first)

    assert first.again
    assert not second.again


@pytest.mark.parametrize(
    ("shown", "used"),
    [((), UNCHARGED_BYTES), ((GpuProcess(7, 1),), 9 * GIB), ((GpuProcess(7, None),), 9 * GIB)],
    ids=["idle", "charged", "unknown"],
)
def test_other_lists_are_believed(shown: tuple[GpuProcess, ...], used: int) -> None:
    """What nobody is charged with may be there as long as somebody is, or as it is little."""
    listing = list_attempt(listed(99.0, *shown), memory(used), NOW, None)

    assert ProcessList(99.0, shown) == listing.processes


def test_without_memory_the_list_is_believed() -> None:
    """A card that does not tell its use may still list its processes."""
    listing = list_attempt(listed(99.0), None, NOW, None)

    assert ProcessList(99.0, ()) == listing.processes
