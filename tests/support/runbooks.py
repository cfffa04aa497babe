"""The runbooks, and the commands that they tell people to type."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.sources import ROOT

FOLDER = ROOT / "docs" / "runbooks"
_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_QUOTED = re.compile(r"`((?:kubectl|gpufence-\w+) [^`]+)`")
_ELSEWHERE = re.compile(r" (?:\||>) .*")
_PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")


def runbooks() -> dict[str, str]:
    """Return the page of each alert."""
    pages = (path for path in FOLDER.glob("*.md") if path.stem != "README")
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(pages)}


def commands(page: str) -> Iterator[str]:
    """Yield each command up to its first pipe, with a name in place of POD, NODE and TEAM."""
    lines = [line for block in _BLOCK.findall(page) for line in block.splitlines()]
    for line in (*lines, *_QUOTED.findall(page)):
        yield _PLACEHOLDER.sub("one", _ELSEWHERE.sub("", line))


def every_command() -> list[str]:
    return sorted({line for page in runbooks().values() for line in commands(page)})


def exists(link: str) -> bool:
    """Return whether a link from a runbook leads to a file."""
    return (FOLDER / Path(link.partition("#")[0])).is_file()
