"""The page about the plugin shows what the plugin shows."""

import re
from pathlib import Path

import pytest

from tests.support.plugin_cases import FOLDER

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
