"""
PURE. The command blocks of a page: what to type, what to expect, and whether to run it.

A line above each block says so: `<!-- run -->` or `<!-- not run: why -->`. In a block, `$ ` begins
a command; the other lines are its output, in which `...` stands for anything.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PROMPT: Final = "$ "
ANYTHING: Final = "..."
RUN: Final = "run"
NOT_RUN: Final = "not run: "

_FENCE = re.compile(r"```(\w*)\s*$")
_MARK = re.compile(r"<!-- ((?:not )?run\b.*?) -->$")
_SHELL = frozenset({"console", "sh", "bash", "shell"})
_HEREDOC = re.compile(r"<<-?'?(\w+)'?")


@dataclass(frozen=True, slots=True)
class Command:
    text: str
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """`line` is where the block begins; `mark` is empty where nobody said whether to run it."""

    line: int
    mark: str
    commands: tuple[Command, ...]


def blocks(page: str) -> tuple[Block, ...]:
    """Return the blocks of a page that hold commands."""
    lines = page.splitlines()
    found = []
    opened: int | None = None
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if not match:
            continue
        if opened is not None:
            inside = lines[opened + 1 : number]
            if _FENCE.match(lines[opened]).group(1) in _SHELL or _prompted(inside):  # type: ignore[union-attr]  # it matched when the block was opened
                found.append(Block(opened + 1, _mark(lines[:opened]), tuple(_commands(inside))))
            opened = None
        else:
            opened = number
    return tuple(found)


def agrees(expected: tuple[str, ...], printed: str) -> bool:
    """
    Tell whether a command printed what the page says; blanks at the ends of lines do not count.
    """
    if not expected:
        return True
    pattern = "\n".join(
        ".*?".join(re.escape(part) for part in line.rstrip().split(ANYTHING)) for line in expected
    )
    text = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def _prompted(lines: list[str]) -> bool:
    return any(line.startswith(PROMPT) for line in lines)


def _mark(above: list[str]) -> str:
    said = next((line for line in reversed(above) if line.strip()), "")
    match = _MARK.match(said.strip())
    return match[1] if match else ""


def _commands(lines: list[str]) -> Iterator[Command]:
    """Cut a block at its prompts; without any, each line is a command of its own."""
    if not _prompted(lines):
        yield from (Command(line) for line in lines if line.strip())
        return
    rest = list(lines)
    while rest:
        first = rest.pop(0)
        if not first.startswith(PROMPT):
            continue
        text = [first.removeprefix(PROMPT)]
        heredoc = _HEREDOC.search(first)
        while rest and (heredoc or text[-1].endswith("\\")):
            text.append(rest.pop(0))
            if heredoc and text[-1] == heredoc[1]:
                break
        expected = []
        while rest and not rest[0].startswith(PROMPT):
            expected.append(rest.pop(0))
        while expected and not expected[-1].strip():
            expected.pop()
        yield Command("\n".join(text), tuple(expected))
