"""Tells the story: chapters, the commands a user would type, and their true output."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gpufence.quantity import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simulator.controlplane import ControlPlane

GAUGE_WIDTH = 60
_LETTERS = "#=+*%"
_TEXT_WIDTH = 96


class StoryError(Exception):
    """Raised when what the story tells did not happen."""


class Narrator:
    """Speaks to a person on a terminal, or to a log, where it leaves the colours out."""

    def __init__(self, stream: TextIO, plane: ControlPlane, environment: Mapping[str, str]) -> None:
        self._stream = stream
        self._plane = plane
        self._environment = environment
        self._colours = stream.isatty()

    def chapter(self, title: str) -> None:
        self._write(f"\n{self._paint('1;36', f'== {title}')}\n")

    def tell(self, text: str) -> None:
        """Explain in a paragraph, apart from what stands above."""
        self._write("\n" + textwrap.fill(" ".join(text.split()), _TEXT_WIDTH) + "\n")

    def show(self, text: str) -> None:
        self._write(textwrap.indent(text.rstrip("\n"), "    ") + "\n")

    def typed(self, command: str) -> None:
        self._write(f"\n{self._paint('1', f'$ {command}')}\n")

    def redraw(self, line: str) -> None:
        """Show a line that moves: in place on a terminal, once more in a log."""
        self._write(f"\r\x1b[K    {line}" if self._colours else f"    {line}\n")

    def settle(self) -> None:
        self._write("\n" if self._colours else "")

    def kubectl(self, *arguments: str, stdin: str = "", quiet: bool = False) -> str:
        """Type a kubectl command, run it for real, and show what it says."""
        typed = shlex.join(["kubectl", *arguments])
        self.typed(typed)
        if stdin:
            self.show(stdin)
        # kubectl finds its plugins on the PATH: ours lies beside the Python that runs this.
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        done = self._plane.kubectl(
            *arguments,
            stdin=stdin or None,
            check=False,
            environment={**self._environment, "PATH": path},
        )
        if done.returncode:
            raise StoryError(f"{typed} failed: {done.stderr.strip()}")
        if not quiet:
            self._write(done.stdout + self._paint("33", done.stderr))
        return done.stdout

    def expect(self, happened: object, text: str) -> None:
        """Note that something happened, or end the story where it did not."""
        if not happened:
            raise StoryError(text)
        self._write(f"{self._paint('32', 'ok')}  {text}\n")

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours and text else text

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StoryError(f"{shlex.join(command)} failed: {done.stdout}{done.stderr}")


def gauge(total_bytes: int, holders: Mapping[str, int]) -> str:
    """Draw who holds what of a card, each holder with a mark of its own, then the sum."""
    cells = ""
    for mark, amount in zip(_LETTERS, holders.values(), strict=False):
        cells += mark * _cells(amount, total_bytes)
    used = sum(holders.values()) // MIB
    return f"[{cells[:GAUGE_WIDTH]:{GAUGE_WIDTH}}] {used:5} of {total_bytes // MIB} MiB"


def legend(names: Sequence[str]) -> str:
    return "   ".join(f"{mark} {name}" for mark, name in zip(_LETTERS, names, strict=False))


def _cells(amount: int, total: int) -> int:
    """Round up, so that who holds anything is seen."""
    return -(-amount * GAUGE_WIDTH // total)
