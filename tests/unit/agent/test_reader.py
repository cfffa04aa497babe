"""
Typed reads of a program's environment.
"""

from __future__ import annotations

import pytest

from agent.reader import Reader
from gpufence.errors import SettingsError
from gpufence.mode import Mode, read_mode


def problem_of(reader: Reader) -> str:
    """
    Return the one thing that is wrong.
    """
    with pytest.raises(SettingsError) as caught:
        reader.check()
    (problem,) = caught.value.problems
    return problem.sentence


def test_unset_and_empty_variables_mean_the_default() -> None:
    """
    A variable that is absent, empty or blank leaves the default.
    """
    reader = Reader({"EMPTY": "", "BLANK": "  "})

    assert ["d", "d", "d"] == [reader.text(name, "d") for name in ("ABSENT", "EMPTY", "BLANK")]
    reader.check()


def test_good_values_are_read_by_their_type() -> None:
    """
    Every kind of value has its reader.
    """
    reader = Reader(
        {
            "T": " text ",
            "C": "MiB",
            "I": "8",
            "S": "2.5",
            "M": "512Mi",
            "L": "a, b,,c ",
            "P": "cap",
        }
    )

    assert "text" == reader.text("T", "")
    assert "MiB" == reader.choice("C", "GiB", ("GiB", "MiB"))
    assert 8 == reader.integer("I", 1)
    assert 2.5 == reader.seconds("S", 1)
    assert 512 * 2**20 == reader.memory("M", None)
    assert ("a", "b", "c") == reader.items("L")
    assert Mode.CAP is reader.parsed("P", "evict", read_mode, Mode.OBSERVE)
    reader.check()


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("ON", True), ("1", True), ("yes", True), ("off", False), ("0", False)],
)
def test_booleans_have_many_spellings(text: str, *, value: bool) -> None:
    """
    What people write for yes and no is understood in any case.
    """
    assert value is Reader({"B": text}).boolean("B", default=not value)


@pytest.mark.parametrize("default", [True, False])
def test_an_unset_boolean_is_its_default(*, default: bool) -> None:
    """
    Absence says neither yes nor no.
    """
    assert default is Reader({}).boolean("B", default=default)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8443", ("", 8443)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:443", ("::1", 443)),
        ("host:65535", ("host", 65535)),
    ],
)
def test_addresses_are_host_and_port(text: str, address: tuple[str, int]) -> None:
    """
    An empty host means every interface; brackets hold an IPv6 address.
    """
    assert address == Reader({"A": text}).address("A", ":1")


@pytest.mark.parametrize("text", ["8443", "host:", "host:65536", "host:x", "h:" + "0" * 21 + "1"])
def test_a_text_that_is_no_address_is_refused(text: str) -> None:
    """
    Without a port between 0 and 65535 there is no address.
    """
    reader = Reader({"A": text})
    reader.address("A", ":8443")

    assert problem_of(reader).endswith("is not an address; write host:port, such as :8443")


@pytest.mark.parametrize("text", ["-1", "1.5", "11", "many", "0" * 20 + "5"])
def test_integers_out_of_place_are_refused(text: str) -> None:
    """
    Only plain digits within the bounds are a whole number.
    """
    reader = Reader({"I": text})

    assert 3 == reader.integer("I", 3, least=1, most=10)
    assert f'I: "{text}" is out of place; write a whole number from 1 to 10' == problem_of(reader)


def test_leading_zeros_never_hide_a_number_that_is_too_large() -> None:
    """
    The bounds hold for the whole text, not for its first digits.
    """
    reader = Reader({"I": "0000000000005000000000"})

    assert 3 == reader.integer("I", 3)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("soon", "is not a number of seconds"),
        ("0.5", "is out of range"),
        ("nan", "is out of range"),
        ("inf", "is out of range"),
    ],
)
def test_seconds_out_of_place_are_refused(text: str, reason: str) -> None:
    """
    A duration is a number within its bounds.
    """
    reader = Reader({"S": text})

    assert 5.0 == reader.seconds("S", 5.0, least=1, most=60)
    assert f'S: "{text}" {reason}; write seconds from 1 to 60, such as 5' == problem_of(reader)


def test_an_unset_memory_may_mean_nothing() -> None:
    """
    Where no default is wanted, none is made up.
    """
    assert None is Reader({}).memory("M", None)


def test_every_mistake_is_told_at_once() -> None:
    """
    The person who made four mistakes learns of four, each with its variable.
    """
    reader = Reader({"C": "TiB", "B": "maybe", "M": "lots", "P": "kill"})
    reader.choice("C", "GiB", ("GiB", "MiB"))
    reader.boolean("B", default=False)
    reader.memory("M", None)
    reader.parsed("P", "evict", read_mode, Mode.OBSERVE)

    with pytest.raises(SettingsError) as caught:
        reader.check()

    assert [
        'C: "TiB" is not a choice; write one of GiB, MiB',
        'B: "maybe" is neither true nor false; write true or false',
        (
            'M: "lots" is not a Kubernetes quantity; '
            "write a number with an optional suffix, such as 6Gi, 1500Mi or 3"
        ),
        'P: "kill" is no mode; write one of observe, cap, evict',
    ] == str(caught.value).splitlines()


def test_variables_nobody_reads_are_told() -> None:
    """
    A misspelt variable of ours can be warned about; those of others are none of our business.
    """
    reader = Reader({"GPUFENCE_A": "1", "GPUFENCE_TYPO": "1", "HOME": "/"})
    reader.text("GPUFENCE_A", "")

    assert ("GPUFENCE_TYPO",) == reader.unknown("GPUFENCE_")
