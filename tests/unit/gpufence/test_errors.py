"""What a problem says to a person."""

import pytest

from gpufence.errors import (
    InvalidError,
    Problem,
    SettingsError,
    UnknownVersionError,
    described,
    shown,
)

PROBLEM = Problem("spec.x", "12 apples", "is not a number", "write digits")


def test_a_problem_names_field_value_reason_and_remedy() -> None:
    """One line says what is wrong, where, and what to do."""
    assert 'spec.x: "12 apples" is not a number; write digits' == PROBLEM.sentence


def test_a_sentence_stays_on_one_line() -> None:
    """Neither a key nor a value that somebody made up can break a line of a log or an event."""
    problem = Problem("metadata.annotations[a\nb]", "c\x1b[31m", "is odd", "remove it")

    assert 'metadata.annotations[a?b]: "c?[31m" is odd; remove it' == problem.sentence


def test_long_values_are_cut() -> None:
    """A value of any length is shown by its first eighty characters."""
    assert f'"{"x" * 80}..."' == shown("x" * 81)


def test_values_that_are_no_text_are_shown_as_python_writes_them() -> None:
    """A number or a list is shown too."""
    assert '"[1, 2]"' == shown([1, 2])


def test_an_invalid_error_carries_its_problem() -> None:
    """Whoever catches the error can report the problem in a form of their own."""
    error = InvalidError(PROBLEM)

    assert (PROBLEM, PROBLEM.sentence) == (error.problem, str(error))


def test_a_settings_error_tells_every_problem() -> None:
    """Three mistakes are three lines."""
    error = SettingsError([PROBLEM, Problem("b", "", "is empty", "fill it")])

    assert f'{PROBLEM.sentence}\nb: "" is empty; fill it' == str(error)
    assert 2 == len(error.problems)


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
        (10**5000, "int that nobody can write down"),
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

    assert described(value) == "list that nobody can write down"
