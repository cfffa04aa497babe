"""The plugin's tables and stories are those in the files beside this one, and in its page."""

import re
from pathlib import Path

import pytest

from kubectl_gpufence.view import Display
from tests.support import golden, plugin_cases, verb_cases
from tests.support.golden import assert_reviewed
from tests.support.plugin_cases import CASES, FOLDER

PIPED = frozenset(
    {"top-wide", "idle-wide", "cards-odd", "nodes-odd", "top-piped", "top-coloured"}
    | {"recommend-csv", "recommend-typical", "recommend-patch"}
)

OF_ONE_WIDTH = frozenset({"top-narrow", "gpushare-used"})


@pytest.mark.parametrize("name", CASES)
def test_a_state_is_shown_as_its_file_says(name: str) -> None:
    """What is shown is what was reviewed."""
    shown = "".join(f"{line}\n" for line in CASES[name]())

    assert_reviewed(FOLDER / f"{name}.txt", shown)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("name", [name for name in CASES if name not in PIPED | OF_ONE_WIDTH])
def test_what_goes_to_a_terminal_fits_it(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No terminal breaks a line in mid-word: tables leave columns out, sentences wrap."""
    for cases in (plugin_cases, verb_cases):
        monkeypatch.setattr(cases, "TERMINAL", Display(width=width))

    long = [line for line in CASES[name]() if len(line) > width]

    assert [] == [line for line in long if " " in line.strip()]


@pytest.mark.parametrize("name", [name for name in CASES if name != "top-coloured"])
def test_nothing_reaches_the_terminal_but_printable_text(name: str) -> None:
    """Whatever somebody has put into a name or an annotation, no control character gets through."""
    assert all(line.isprintable() for line in CASES[name]())


def test_a_file_that_differs_says_how_it_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence that was changed on purpose finds the remedy in its failure."""
    monkeypatch.setattr(golden, "WRITE", False)
    (tmp_path / "said.txt").write_text("old")

    with pytest.raises(AssertionError, match=r"said\.txt .* GPUFENCE_GOLDEN=write"):
        assert_reviewed(tmp_path / "said.txt", "new")


def test_no_file_is_left_over() -> None:
    """Each file belongs to a case."""
    assert set(CASES) == {path.stem for path in FOLDER.glob("*.txt")}


PAGE = Path(__file__).parents[3] / "docs" / "plugin.md"
FENCED = re.findall(r"```(\w*)\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
BLOCKS = [block for language, block in FENCED if not language]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_output_in_the_page_is_output_of_the_plugin(block: str) -> None:
    """Each block of the page stands, word for word, in a golden file."""
    shown = re.sub(r"\A\$ .*\n", "", block)

    assert any(shown in file.read_text(encoding="utf-8") for file in FOLDER.glob("*.txt"))


@pytest.mark.parametrize(
    "verb",
    ["top", "explain", "why", "recommend", "doctor", "inspect", "idle", "release"],
)
def test_every_verb_is_shown(verb: str) -> None:
    """No verb goes without an example of its output."""
    assert any(block.startswith(f"$ kubectl gpufence {verb}") for block in BLOCKS)
