"""The plugin's tables and stories are those in the files beside this one."""

import os

import pytest

from tests.support.plugin_cases import CASES, FOLDER

WRITE = os.environ.get("GPUFENCE_GOLDEN") == "write"
PIPED = frozenset(
    {"top-wide", "idle-wide", "cards-odd", "nodes-odd", "top-piped", "top-coloured"}
    | {"recommend-csv", "recommend-typical", "recommend-patch"}
)


@pytest.mark.parametrize("name", CASES)
def test_a_state_is_shown_as_its_file_says(name: str) -> None:
    """What is shown is what was reviewed."""
    shown = "".join(f"{line}\n" for line in CASES[name]())
    file = FOLDER / f"{name}.txt"
    if WRITE:
        file.write_text(shown, encoding="utf-8")

    assert file.read_text(encoding="utf-8") == shown


@pytest.mark.parametrize("name", [name for name in CASES if name not in PIPED])
def test_what_goes_to_a_terminal_fits_it(name: str) -> None:
    """No line is longer than the hundred columns of the terminal it was made for."""
    long = [line for line in CASES[name]() if len(line) > 100]

    assert [] == long


@pytest.mark.parametrize("name", [name for name in CASES if name != "top-coloured"])
def test_nothing_reaches_the_terminal_but_printable_text(name: str) -> None:
    """Whatever somebody has put into a name or an annotation, no control character gets through."""
    assert all(line.isprintable() for line in CASES[name]())


def test_no_file_is_left_over() -> None:
    """Each file belongs to a case."""
    assert set(CASES) == {path.stem for path in FOLDER.glob("*.txt")}
