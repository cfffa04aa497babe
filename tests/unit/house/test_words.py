"""
Plain words: a pod is "it", "who" is a person, and memory is reserved rather than owed.

Pages are free of what is looked for here; what is left of it in code may only become less.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.tree import files_of_tests, files_of_tools, nodes_of, product_files, shown
from tools import ROOT

PAGES: Final = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "runbooks").glob("*.md")),
]
RECORDED: Final = {"product": 273, "tools": 20, "tests": 407}
"""How often the code's texts break the rule; a change that brings one down writes it here."""

UNWANTED: Final = re.compile(
    r"\b(?:he|his|him|himself|whoever|whom|whomever)\b"  # a pod, an agent, a tenant
    r"|\bwho (?:goes|says|holds|stands|takes|asks|has)\b"
    r"|\b(?:owed|told|nobody's)\b",  # reserved and not yet used, configured, unattributed
    re.IGNORECASE,
)
_NOT_PROSE: Final = re.compile(
    r"^ *```.*?^ *```$|<!-- table of .*?<!-- end of table -->|`[^`\n]*`", re.DOTALL | re.MULTILINE
)


def unwanted_in(text: str) -> list[str]:
    return [found[0] for found in UNWANTED.finditer(text)]


def unwanted_on(page: str) -> list[str]:
    """Look at what somebody wrote for the page: no code, and no table that comes from the code."""
    return unwanted_in(_NOT_PROSE.sub("", page))


def texts_of(path: Path) -> Iterator[str]:
    """Return docstrings, messages and their parts: what has more than one word."""
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_a_page_has_plain_words(page: Path) -> None:
    """No page calls a pod he, or has a word of our own for what the field has one for."""
    assert [] == unwanted_on(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("part", "files"),
    [
        ("product", product_files()),
        ("tools", files_of_tools()),
        ("tests", [path for path in files_of_tests() if path != Path(__file__)]),
    ],
    ids=["product", "tools", "tests"],
)
def test_code_comes_to_plain_words(part: str, files: list[Path]) -> None:
    """Messages and docstrings break the rule no more often than was recorded."""
    found = [word for path in files for text in texts_of(path) for word in unwanted_in(text)]

    assert RECORDED[part] >= len(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Whoever holds more is told so.", ["Whoever", "told"]),
        ("the pod who takes what others are owed", ["who takes", "owed"]),
        ("the help of those who have been here, with a theme", []),
        ("`owed`\n```\nhis\n```\n<!-- table of x -->\nhim\n<!-- end of table -->", []),
    ],
)
def test_words_are_found_as_words(text: str, expected: list[str]) -> None:
    """Whole words of prose count, code and generated tables do not."""
    assert expected == unwanted_on(text)
