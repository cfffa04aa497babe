"""Whether a container that failed did so at its cap, by its own words or by its use."""

from typing import Any

import pytest

from gpufence.annotations import Headroom
from gpufence.capped import (
    OTHER_WORDS,
    Capped,
    Ending,
    Given,
    Why,
    capped,
    given_of,
    last_words,
    read_endings,
    what_happened,
    what_helps,
)
from gpufence.names import DRIVER_LIMIT
from gpufence.plan import ContainerPlan, Done, Setting
from gpufence.quantity import MIB

GIVEN = Given(3072 * MIB, 2150 * MIB, 512 * MIB, auto_bytes=2560 * MIB)
FREE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 14.58 GiB of which 11.23 GiB is free. Including non-PyTorch memory, this process"
)
FULL = FREE.replace("11.23 GiB is free", "31.81 MiB is free")
DESIRED = (
    "ValueError: Free memory on device cuda:0 (2.11/14.58 GiB) on startup is less than desired GPU "
    "memory utilization (0.14, 2.1 GiB)."
)
HOOK = "OCI runtime create failed: error running createRuntime hook #0: nvidia-ctk: memory limits"


def ended(message: str = "", code: int = 1, **more: Any) -> Ending:
    return Ending("main", code, "Error", out_of_memory=last_words(message), **more)


@pytest.mark.parametrize(
    ("message", "why", "wanted"),
    [
        (FREE, Why.CAPPED, 2048),
        ("RuntimeError: CUDA out of memory.", Why.CAPPED, 0),
        ("CUDA out of memory. Tried to allocate 20.5 MiB.", Why.CAPPED, 20.5),
        ("jaxlib: RESOURCE_EXHAUSTED: Out of memory while trying", Why.CAPPED, 0),
        ("ValueError: No available memory for the cache blocks. Try", Why.TOO_SMALL, 0),
        ("Not enough memory. Please try to increase --mem-fraction-static.", Why.TOO_SMALL, 0),
        (FULL, Why.CARD_FULL, 2048),
        (DESIRED, Why.CARD_FULL, 0),
    ],
)
def test_its_own_words_are_certain(message: str, why: Why, wanted: float) -> None:
    """What frameworks and servers say decides, and so does what they say of the card beside it."""
    found = capped(ended(message), GIVEN)

    assert Capped(ended(message), why, found is not None, GIVEN, int(wanted * MIB)) == found


@pytest.mark.parametrize(
    ("ending", "peak_mebibytes", "expected"),
    [
        (ended(), 2214, True),  # 97 % of 2150, and the least context of 128
        (ended(), 2213, False),
        (ended(), 0, False),
        (ended(silent=False), 3000, True),
        (ended(code=137), 3000, False),
        (ended(code=143), 3000, False),
        (ended()._replace(reason="OOMKilled"), 3000, False),
    ],
)
def test_without_a_word_its_use_makes_it_likely(
    ending: Ending, peak_mebibytes: int, *, expected: bool
) -> None:
    """Use less the least context counts, of a container that ended by itself."""
    found = capped(ending, GIVEN, peak_mebibytes * MIB)

    assert expected == (found is not None)
    assert found is None or not found.certain


@pytest.mark.parametrize(("limit", "why"), [(15_000, Why.CAPPED), (3072, Why.CARD_FULL)])
def test_a_card_is_not_full_where_its_size_is_the_limit(limit: int, why: Why) -> None:
    """What is free there is free of the driver's limit; a larger card was not limited."""
    held = Given(limit * MIB, limit * MIB, by_driver=True)
    found = capped(ended(FULL), held)

    assert Capped(ended(FULL), why, certain=True, given=held, wanted_bytes=2048 * MIB) == found


def test_what_nothing_caps_is_not_capped() -> None:
    """Words of a container without a cap say nothing about one, unless its card was full."""
    assert capped(ended(FREE), None) is None
    assert capped(ended(FULL), None) is not None
    refused = ended(refused="no")
    assert Capped(refused, Why.REFUSED, certain=True) == capped(refused, None)


def plan(**changes: Any) -> ContainerPlan:
    row = Setting(
        *("PYTORCH_ALLOC_CONF", "s0", "pytorch", Done.SET),
        reserve_bytes=512 * MIB,
        allowance_bytes=5734 * MIB,
    )
    whole = ContainerPlan(8192 * MIB, 1, Headroom.FACTOR, 5734 * MIB, (row,))
    return whole._replace(**changes)


WHOLE = (
    "Out of GPU memory at its cap: of 3072Mi asked for, it may allocate 2150Mi (the rest is kept "
    "for CUDA), and wanted more. About 3840Mi would do (gpufence.io/memory or its request). "
    "gpufence.io/headroom: auto allows 2560Mi."
)
DRIVER = Setting(DRIVER_LIMIT, "", "driver", Done.SET, limit_bytes=3072 * MIB)


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (plan(), Given(8192 * MIB, 5734 * MIB, 512 * MIB, 1, 6656 * MIB)),
        (plan(headroom=Headroom.AUTO), Given(8192 * MIB, 5734 * MIB, 512 * MIB)),
        (plan(settings=(DRIVER,)), Given(3072 * MIB, 3072 * MIB, by_driver=True)),
        (plan(settings=()), None),
        (plan(settings=(plan().settings[0]._replace(done=Done.PLANNED),)), None),
        (plan(cap_bytes=None), None),
        (plan(limit_bytes=None), None),
    ],
)
def test_what_was_given_is_on_the_plan(container: ContainerPlan, expected: Given | None) -> None:
    """What was asked for, what may be allocated of it, and what the smaller headroom would give."""
    assert expected == given_of(container)


def said(why: Why, given: Given | None = GIVEN, **more: Any) -> str:
    found = Capped(ended(), why, **{"certain": True, "given": given, **more})
    return " ".join([what_happened(found), *what_helps(found)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            said(Why.CAPPED),
            WHOLE,
        ),
        (said(Why.CAPPED, wanted_bytes=2048 * MIB), "wanted 2048Mi more. About 6016Mi would do"),
        (said(Why.CAPPED, certain=False, peak_bytes=2300 * MIB), "Perhaps out of GPU memory, it"),
        (said(Why.CAPPED, GIVEN._replace(processes=2)), "each of its processes may allocate"),
        (
            said(Why.CAPPED, Given(3 << 30, 3 << 30, by_driver=True)),
            "its limit: the driver refuses",
        ),
        (said(Why.TOO_SMALL), "Too little GPU memory for its server to start: of 3072Mi asked"),
        (said(Why.CARD_FULL), "others hold the rest. `kubectl gpufence top cards`"),
        (said(Why.REFUSED, None), "GpufenceLimitsUnsupported"),
        (str(Capped(ended(), Why.CAPPED, certain=True).enough_bytes), "0"),
    ],
)
def test_it_is_said_with_amounts(text: str, expected: str) -> None:
    """What was asked, what was given and why less, and the value that would do."""
    assert expected in text


def status(**states: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", "restartCount": 2, **states}]}


def failed(message: str, code: object = 1, reason: str = "Error") -> dict[str, Any]:
    ending = {"exitCode": code, "reason": reason, "finishedAt": "2026-01-02T03:04:05Z"}
    return {"terminated": {**ending, "message": message}}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (status(lastState=failed(FREE), state={"running": {}}), ["CUDA out of memory", False, ""]),
        (status(state=failed("\x1b[2J" * 999)), ["", False, ""]),
        (status(state=failed(" ")), ["", True, ""]),
        (status(state=failed("initialization failed. See root cause above.")), ["", True, ""]),
        (status(state=failed(HOOK, 128, "StartError")), ["", False, "nvidia-ctk: memory limits"]),
        (
            status(state={"waiting": {"reason": "RunContainerError", "message": HOOK}}),
            ["", True, "nvidia-ctk: memory limits"],
        ),
        (status(lastState=failed(HOOK, 128, "StartError"), state={"running": {}}), ["", False, ""]),
    ],
)
def test_an_ending_has_few_of_a_containers_words(raw: dict[str, Any], expected: list[Any]) -> None:
    """What says nothing about GPU memory is not kept, but that there was something."""
    (ending,) = read_endings(raw)
    words, *rest = expected

    assert rest == [ending.silent, ending.refused]
    assert words in ending.out_of_memory
    assert (ending.out_of_memory != "") == bool(words)


@pytest.mark.parametrize("state", [failed("", 0), failed("", None), {"waiting": {}}, {}])
def test_what_ended_well_is_no_ending(state: dict[str, Any]) -> None:
    """A container that runs, waits or has succeeded has not failed."""
    assert [] == list(read_endings(status(state=state)))


@pytest.mark.parametrize("message", [FREE, FULL, DESIRED, OTHER_WORDS, "", "Traceback"])
def test_words_of_words_are_the_same(message: str) -> None:
    """What is kept of a message reads as the message did."""
    assert last_words(message) == last_words(last_words(message))
