"""Where the answers go: what the place can show, how it is written to, and how errors read."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

from gpufence.errors import GpufenceError, InvalidError
from gpufence.text import printable
from kube import ForbiddenError, UnreachableError
from kubectl_gpufence.arguments import AGENTS, CONTROLLER
from kubectl_gpufence.view import WIDTH, Display, csv_lines, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kubectl_gpufence.view import Rows

R = TypeVar("R")

TROUBLE: Final = 1
WRONG: Final = 2
_INTERRUPTED: Final = 130

_CLEAR = "\x1b[H\x1b[2J"


@dataclass(frozen=True, slots=True)
class Output:
    """
    Standard output and error, which need be no terminals at all. `keys` is where keys are read from
    if somebody sits there and sees what is written.
    """

    out: TextIO
    err: TextIO
    display: Display
    keys: int | None = None

    def lines(self, lines: Iterable[str]) -> None:
        self.text("".join(f"{line}\n" for line in lines))

    def text(self, text: str) -> None:
        self.out.write(_writable(text, self.out))
        self.out.flush()

    def json(self, value: object) -> None:
        self.out.write(json.dumps(value, indent=2) + "\n")
        self.out.flush()

    def notes(self, notes: Iterable[str]) -> None:
        """Say aside what is missing from an answer, so that pipes carry the answer alone."""
        for note in notes:
            self.err.write(_writable(_aside(f"note: {printable(note)}", self.err), self.err))
        self.err.flush()

    def show(self, listing: Rows[R], form: str) -> None:
        """Write rows in a form that somebody asks for, with notes beside those for people."""
        if form == "json":
            self.json(listing.document())
            return
        if form == "csv":
            self.lines(csv_lines(listing.fields, listing.rows))
        elif listing.rows:
            self.lines(listing.table(self.display, wide=form == "wide"))
        else:
            self.notes([listing.nothing])
        self.notes([*listing.asides, *listing.notes])

    def progress(self, text: str) -> None:
        """Tell somebody who sits there why nothing is to be seen yet."""
        if self.err.isatty():
            self.err.write(f"{text}\n")
            self.err.flush()

    def clear(self) -> None:
        """Begin a new page; a file or a pipe gets an empty line."""
        self.out.write(_CLEAR if self.out.isatty() else "\n")


def output_to(
    out: TextIO, err: TextIO, environ: Mapping[str, str], stdin: TextIO | None = None
) -> Output:
    """Find out what the place can show. https://no-color.org says what switches colours off."""
    is_terminal = out.isatty()
    dumb = environ.get("TERM", "dumb") in ("", "dumb")
    plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
    sees = is_terminal and not dumb and stdin is not None and stdin.isatty()
    display = Display(
        width=shutil.get_terminal_size((WIDTH, 24)).columns if is_terminal else None,
        colour=is_terminal and not plain,
        unicode=_writes_unicode(out),
    )
    return Output(out, err, display, stdin.fileno() if sees and stdin is not None else None)


def ended(program: str, run: Callable[[], int]) -> int:
    """Run a program to its exit code: 1 for trouble and 2 for a wrong argument, with what to do."""
    try:
        return run()
    except GpufenceError as error:
        sys.stderr.write(_aside(f"{program}: {advice(error)}", sys.stderr))
        return WRONG if is_of_call(error) else TROUBLE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # `| head` has seen enough; Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _aside(text: str, place: TextIO) -> str:
    """Write a sentence beside the answer; only a terminal would break it in mid-word."""
    if not place.isatty():
        return f"{text}\n"
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return "".join(f"{line}\n" for line in wrapped(text, "  ", Display(width), first=""))


def is_of_call(error: GpufenceError) -> bool:
    """Return whether an argument, or a variable in its place, cannot be read."""
    said = error.problem.field if isinstance(error, InvalidError) else ""
    return said.startswith("--") or said in (AGENTS, CONTROLLER)


def advice(error: GpufenceError) -> str:
    """Return an error that ends the call, and what to do where the error does not say it itself."""
    text = printable(str(error))
    match error:
        case ForbiddenError():
            return f"{text}; ask your administrator, or name a namespace of yours with -n"
        case UnreachableError():
            return f"{text}; `kubectl version` shows whether the cluster can be reached"
        case _:
            return text


def _writable(text: str, place: TextIO) -> str:
    """
    Replace what a place cannot show, such as halves of characters that somebody put into a pod.
    """
    encoding = place.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _writes_unicode(out: TextIO) -> bool:
    try:
        "█…".encode(out.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
