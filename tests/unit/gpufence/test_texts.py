"""Texts of others, read and shown: times, last words, errors, findings; and how long to wait."""

from collections.abc import Callable

import pytest

from gpufence.errors import (
    Finding,
    InvalidError,
    Level,
    Problem,
    SettingsError,
    UnknownVersionError,
    described,
    look,
    ok,
    shown,
    unknown,
    wrong,
)
from gpufence.pods import MOST_CHARACTERS, out_of_memory
from gpufence.quantity import GIB, MIB
from gpufence.text import (
    aligned,
    coarse,
    duration,
    limit_mebibytes,
    mebibytes,
    minutes,
    printable,
)
from gpufence.times import Backoff, read_length, read_moment, write_moment
from simulator.workload.frameworks import FRAMEWORKS
from simulator.workload.frameworks.budget import Device, Shortage


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("a\x1b[31mb", 99, "a?[31mb"),
        ("a\nb", 99, "a?b"),
        ("\u202egpj", 99, "?gpj"),
        ("\ud800", 99, "?"),
        ("ü", 99, "ü"),
        ("abc", 3, "abc"),
        ("a\nbc", 2, "a?..."),
    ],
)
def test_names_cannot_steer_a_terminal(text: str, most: int, expected: str) -> None:
    """What turns text around is a question mark, and of a long text the beginning is kept."""
    assert expected == printable(text, most)


def test_what_is_over_a_limit_never_reads_as_equal_to_it() -> None:
    """What is held is rounded up and what is allowed down; what is unknown is a word."""
    assert ("3073 MiB", "3072 MiB") == (mebibytes(3 * GIB + 1), limit_mebibytes(3 * GIB + MIB - 1))
    assert ("unknown", "?") == (mebibytes(None), limit_mebibytes(None, unknown="?"))


@pytest.mark.parametrize(
    ("shown", "seconds", "text"),
    [
        *((duration, *each) for each in ((-5, "0s"), (0.9, "0s"), (12, "12s"), (60, "1m"))),
        *((duration, *each) for each in ((200, "3m20s"), (7500, "2h5m"), (273_700, "3d4h"))),
        *((coarse, *each) for each in ((0.9, "0s"), (59.9, "59s"), (119, "1m"), (7500, "2h"))),
        (coarse, 273_700, "3d"),
        *((minutes, *each) for each in ((-1, "0 s"), (119.9, "119 s"), (125, "2 min 5 s"))),
    ],
)
def test_a_time_is_as_precise_as_it_is_of_use(
    shown: Callable[[float], str], seconds: float, text: str
) -> None:
    """Two units in a table, one in a narrow column, seconds below two minutes in a sentence."""
    assert text == shown(seconds)


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    """No line ends with blanks."""
    rows = [("A", "B", "C"), ("one", "1", "x"), ("i", "100", "")]

    assert ["A    B    C", "one  1    x", "i    100"] == aligned(rows)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2027-01-15T08:00:00Z", 1_800_000_000.0),
        ("2027-01-15T10:00:00+02:00", 1_800_000_000.0),
        ("2027-01-15T08:00:00.250Z", 1_800_000_000.25),
        ("2027-01-15T08:00:00.123456789Z", 1_800_000_000.123456),
    ],
)
def test_a_moment_is_read(text: str, moment: float) -> None:
    """RFC 3339 in any zone is seconds since the epoch."""
    assert moment == pytest.approx(read_moment(text, "field"), abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "2027", "2027-01-15", "2027-01-15T08:00:00", "2027-02-30T08:00:00Z"),
        *("0000-01-01T00:00:00Z", "9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01"),
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    """
    A moment without a zone, on a day that does not exist, or in no year that can be written in
    UTC, is none.
    """
    with pytest.raises(InvalidError, match="is no moment; write it as RFC 3339, such as 2027"):
        read_moment(text, "field")


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (1_800_000_000.9, "2027-01-15T08:00:00Z"),
        (1e15, "9999-12-31T23:59:59Z"),
        (float("inf"), "9999-12-31T23:59:59Z"),
        (-62_135_596_800.0, "0001-01-01T00:00:00Z"),
        (-1e15, "0001-01-01T00:00:00Z"),
    ],
)
def test_any_moment_can_be_written(moment: float, text: str) -> None:
    """What is added to the last of all moments is that moment, and what is written can be read."""
    assert text == write_moment(moment) == write_moment(read_moment(text, "field"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90s", 90.0), ("15m", 900.0), ("1h30m", 5400.0), ("2d", 172800.0)),
        *(("1d2h3m4s", 93784.0), ("36500d", 3_153_600_000.0)),
    ],
)
def test_a_length_is_read(text: str, seconds: float) -> None:
    """Days, hours, minutes and seconds add up, to a hundred years at most."""
    assert seconds == read_length(text, "field")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "is no length of time") for text in ("", "15", "m", "1m1h", "-5m", "1.5h")),
        *((text, "is no length of time") for text in ("15 m", "9999999999s")),
        ("59s", "is too short; write a time of at least 60s"),
        ("36500d1s", "is longer than a hundred years; write a time of"),
    ],
)
def test_what_is_no_length_is_refused(text: str, why: str) -> None:
    """A number without a unit is none, nor is what is shorter than allowed or longer than meant."""
    with pytest.raises(InvalidError, match=why):
        read_length(text, "field", least=60)


PROBLEM = Problem("spec.x", "12 apples", "is not a number", "write digits")


def test_a_problem_names_field_value_reason_and_remedy() -> None:
    """One line says what is wrong, where, and what to do, whatever stands in key and value."""
    odd = Problem("metadata.annotations[a\nb]", "c\x1b[31m", "is odd", "remove it")
    error, both = InvalidError(PROBLEM), SettingsError([PROBLEM, odd])

    assert 'spec.x: "12 apples" is not a number; write digits' == PROBLEM.sentence
    assert 'metadata.annotations[a?b]: "c?[31m" is odd; remove it' == odd.sentence
    assert (PROBLEM, PROBLEM.sentence) == (error.problem, str(error))
    assert ((PROBLEM, odd), f"{PROBLEM.sentence}\n{odd.sentence}") == (both.problems, str(both))
    assert (f'"{"x" * 80}..."', '"[1, 2]"') == (shown("x" * 81), shown([1, 2]))


def test_an_unknown_version_says_what_to_upgrade() -> None:
    """A newer format is named together with the version this program reads."""
    error = UnknownVersionError("gpufence.io/plan", 2)

    assert (
        'gpufence.io/plan: version "2" is not known to this gpufence; '
        "upgrade this program, it reads version 1"
    ) == str(error)
    assert ("gpufence.io/plan", 2) == (error.field, error.version)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        (None, "None"),
        ([1], "[1]"),
        (10**5000, "int that cannot be written down"),
    ],
    ids=["text", "nothing", "list", "digits"],
)
def test_a_value_is_described_whatever_it_is(value: object, expected: str) -> None:
    """What Python itself cannot write is named by its type."""
    assert expected == described(value)


def test_what_is_nested_without_end_is_described() -> None:
    """A value of a million levels ends nobody who wants to complain about it."""
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    assert described(value) == "list that cannot be written down"


def test_all_that_is_not_well_has_a_remedy() -> None:
    """What is well is one sentence alone; from worth a look to wrong, each says what to do."""
    made = [make("NVML", "no answer", "wait") for make in (look, wrong, unknown)]

    assert Finding(Level.OK, "NVML", "driver 580") == ok("NVML", "driver 580")
    assert [Level.LOOK, Level.WRONG, Level.UNKNOWN] == [item.level for item in made]
    assert {"wait"} == {item.remedy for item in made}


TORCH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 52.00 MiB. GPU 0 has a total"
TF = " with shape[1,2] and type float on /job:localhost/replica:0/task:0/device:"
JAX = "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes."


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"Traceback (most recent call last):\n{TORCH}\n", "OutOfMemoryError"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB", "CUDA out of memory"),
        ("RuntimeError: CUDA error: out of memory", "CUDA error: out of memory"),
        ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8 bytes", "OutOfMemoryError"),
        (JAX, "RESOURCE_EXHAUSTED: Out of memory"),
        ("RESOURCE_EXHAUSTED: failed to allocate memory", "RESOURCE_EXHAUSTED: failed to allocate"),
        (f"OOM when allocating tensor{TF}GPU:0 by", f"OOM when allocating tensor{TF}GPU"),
        (f"OOM when allocating tensor{TF}CPU:0 by allocator cpu", ""),
        ("W Allocator (GPU_0_bfc) ran out of memory", "Allocator (GPU_0_bfc) ran out of memory"),
        ("CUDA_ERROR_OUT_OF_MEMORY: out of memory", "CUDA_ERROR_OUT_OF_MEMORY"),
        ("CUDA error at: x.hpp: cudaErrorMemoryAllocation out", "cudaErrorMemoryAllocation"),
        ("device 0: cudaMalloc failed: out of memory", "cudaMalloc failed: out of memory"),
        ("CUDA failed with error out of memory", "CUDA failed with error out of memory"),
        (
            "bfc_arena.cc:360 Failed to allocate memory for requested buffer of size 67108864",
            "Failed to allocate memory for requested buffer of size 67108864",
        ),
        ("Available memory of 0 is smaller than requested bytes of 67108864",) * 2,
        ("ResourceExhaustedError:\n\nOut of memory error on GPU 0.", "Out of memory error on GPU"),
        ("ERROR: Out of GPU memory trying to allocate 1 GiB", "Out of GPU memory"),
        ("java.lang.OutOfMemoryError: Java heap space", ""),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node", ""),
        ("StatusCode.RESOURCE_EXHAUSTED: Received message larger than max", ""),
        ("Killed: out of memory", ""),
        ("", ""),
    ],
)
def test_only_the_memory_of_a_card_counts(message: str, expected: str) -> None:
    """Each framework's own words are known, and what others call the same is not taken for them."""
    assert expected == out_of_memory(message)


def test_only_the_end_is_read() -> None:
    """Of a message longer than any kubelet keeps the end counts."""
    assert "CUDA out of memory" == out_of_memory("x" * 2**20 + "CUDA out of memory")
    assert "" == out_of_memory("CUDA out of memory" + "x" * MOST_CHARACTERS)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("limit", [None, 2 * GIB])
def test_what_each_framework_says_is_known(framework: str, limit: int | None) -> None:
    """The words of every simulated framework are known, be its cap or the card too small."""
    shortage = Shortage(Device(0, 15 * GIB, GIB, (7, 5), 15 * GIB), 2 * GIB, GIB, GIB, limit)

    assert out_of_memory(FRAMEWORKS[framework].complain(shortage))


def test_pauses_double_up_to_the_limit() -> None:
    """The shortest double until half the limit, chance stretches each up to twice."""
    delays = [Backoff().delay_seconds(attempt, 0.0) for attempt in range(-1, 9)]

    assert [0.0, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0] == delays
    assert (0, 6.0) == (Backoff().delay_seconds(0, 0.9), Backoff().delay_seconds(4, 0.5))
