"""A pod's condition of its memory, written and read."""

import pytest

from gpufence import names
from gpufence.memory_condition import (
    MOST_CARDS,
    STATUSES,
    HeldOnCard,
    MemoryCondition,
    MemoryReason,
    read_memory_condition,
    write_message,
)
from gpufence.quantity import GIB, MIB
from gpufence.shape import Object

AT = "2026-01-02T03:04:05Z"
CARDS = (HeldOnCard(0, GIB, 3 * GIB), HeldOnCard(3, None, 2 * GIB))


def condition(message: str, **more: object) -> Object:
    said = {"reason": "OverLimit", "message": message, "lastProbeTime": AT}
    return {"type": names.GPU_MEMORY, **said, **more}


@pytest.mark.parametrize("cards", [CARDS, CARDS[:1], (HeldOnCard(None, 0, GIB),)])
@pytest.mark.parametrize("reason", MemoryReason)
def test_what_is_written_can_be_read(reason: MemoryReason, cards: tuple[HeldOnCard, ...]) -> None:
    """Every reason has a status and a sentence, from which the amounts come back."""
    said = condition(write_message(reason, cards), reason=str(reason))

    assert MemoryCondition(reason, cards, AT) == read_memory_condition([{"type": "Ready"}, said])
    assert STATUSES[reason] in {"True", "False", "Unknown"}


def test_amounts_are_whole_mebibytes() -> None:
    """What is held is rounded up, and a limit down."""
    held = (HeldOnCard(0, GIB + 1, GIB + MIB - 1),)

    assert "holds 1025 of 1024 MiB on card 0" == write_message(MemoryReason.WITHIN, held)


def test_of_many_cards_the_first_are_named() -> None:
    """A message has a bound."""
    many = tuple(HeldOnCard(index, GIB, GIB) for index in range(MOST_CARDS + 3))
    message = write_message(MemoryReason.WITHIN, many)
    read = read_memory_condition([condition(message)])

    assert message.endswith("card 15, and on 3 more")
    assert read is not None
    assert many[:MOST_CARDS] == read.cards


@pytest.mark.parametrize(
    "message", ["", "hello", "9" * 30 + " of 1 MiB on card 0", "1 of 2 MiB on card ٣"]
)
def test_what_is_no_sentence_of_ours_has_no_amounts(message: str) -> None:
    """It may be one of a newer agent; its reason is kept."""
    assert MemoryCondition("OverLimit", (), AT) == read_memory_condition([condition(message)])


def test_a_pod_may_say_nothing() -> None:
    """Then there is none."""
    assert None is read_memory_condition([{"type": "Ready"}])
