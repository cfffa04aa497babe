"""
The child that asks NVML, started by the agent: `python -m agent.nvml [libnvidia-ml.so.1]`.

Reads questions on stdin and answers them on stdout, one line of JSON each; ends with its parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING

from agent.nvml.driver import Driver
from agent.nvml.protocol import NvmlFailure, read_question, write_answer
from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

PR_SET_PDEATHSIG = 1
_STDOUT, _STDERR = 1, 2


def main(arguments: list[str]) -> int:
    """Serve until stdin ends."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]) or sys.stdin.isatty():
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    _end_with_parent()
    answers = os.fdopen(os.dup(_STDOUT), "wb")
    os.dup2(_STDERR, _STDOUT)  # whatever a driver prints must not come between our lines
    driver = Driver(arguments[0] if arguments else None)
    try:
        _serve(sys.stdin.buffer, answers, driver)
    except GpufenceError as error:
        print(f"agent.nvml: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    finally:
        driver.close()
    return 0


def _serve(lines: Iterable[bytes], output: BinaryIO, driver: Driver) -> None:
    """
    Answer question after question, each at once; after a line that is none nothing can be trusted.
    """
    for line in lines:
        number, question = read_question(line.decode())
        try:
            answer = driver.answer(question)
        except Exception as error:  # noqa: BLE001 - a surprise on one card is no reason to lose all
            answer = NvmlFailure(None, question.ask, f"{type(error).__name__}: {error}")
        output.write(write_answer(number, answer).encode())
        output.flush()


def _end_with_parent() -> None:
    """Have the kernel kill us when the parent dies, even within a call that never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, who closes stdin
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
