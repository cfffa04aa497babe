"""
Whether a framework keeps to a cap: a program that takes all it can get, with the cap in its
environment. Of a framework that is installed here a program of ours, else one that is named.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from agent.commands.verify.facts import CapTrial
from agent.commands.verify.holder import VISIBLE
from gpufence import names
from gpufence.errors import InvalidError, Problem
from gpufence.quantity import GIB, MIB
from gpufence.share import write_fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agent.commands.verify.trial import CardLook, CardWatch

_MOST_TOLD: Final = GIB
_PART_OF_FREE: Final = 8
_BEYOND: Final = 512 * MIB
"""A program that holds this much more than it was told, context included, keeps to nothing."""

_SECONDS: Final = 120.0  # a framework's first import on a cold disk
_PAUSE_SECONDS: Final = 0.05
_SAID_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class _CapOf:
    """How it is told a cap, and what takes 32 MiB of the card after another."""

    variables: Callable[[int, str], Mapping[str, str]]
    program: str


def _torch(_told: int, fraction: str) -> dict[str, str]:
    value = f"per_process_memory_fraction:{fraction}"
    return {names.PYTORCH_CONF: value, names.PYTORCH_CUDA_CONF: value}


FRAMEWORKS: Final = {
    "torch": _CapOf(
        _torch,
        "import torch; held = []\n"
        "while True: held.append(torch.empty(2**25, dtype=torch.uint8, device='cuda'))",
    ),
    "jax": _CapOf(
        lambda _told, fraction: {names.XLA_FRACTION: fraction, names.XLA_PREALLOCATE: "false"},
        "import jax; held = []\nwhile True: held.append(jax.device_put(bytearray(2**25)))",
    ),
    "cupy": _CapOf(
        lambda told, _fraction: {names.CUPY_LIMIT: str(told)},
        "import cupy; held = []\nwhile True: held.append(cupy.empty(2**25, dtype=cupy.uint8))",
    ),
}


def read_programs(texts: Iterable[str]) -> dict[str, Sequence[str]]:
    """
    Read what is written as FRAMEWORK=COMMAND; of each framework that is installed here the program
    is ours where none is named.
    """
    ours = (name for name in FRAMEWORKS if find_spec(name) is not None)
    programs: dict[str, Sequence[str]] = {
        name: (sys.executable, "-c", FRAMEWORKS[name].program) for name in ours
    }
    for text in texts:
        name, _, command = text.partition("=")
        if name not in FRAMEWORKS or not command.strip():
            remedy = f"write one of {', '.join(FRAMEWORKS)}, = and a command that takes memory"
            raise InvalidError(Problem("--program", text, "names no framework", remedy))
        programs[name] = shlex.split(command)
    return programs


def try_cap(watch: CardWatch, name: str, command: Sequence[str], visible_bytes: int) -> CapTrial:
    """Run the program until it ends, or holds clearly more than it was told."""
    before = watch.look()
    told = min(_MOST_TOLD, before.free_bytes // _PART_OF_FREE)
    variables = FRAMEWORKS[name].variables(told, write_fraction(told, visible_bytes))
    environment = {**os.environ, **variables, VISIBLE: watch.card.uuid}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            process_group=0,
        )
    except OSError as error:
        return CapTrial(name=name, told_bytes=told, most_bytes=0, trouble=str(error))
    most = _most(watch, process, before, 2 * told + _BEYOND)
    ended = process.poll() is not None
    process.kill()
    said = process.communicate()[1].strip().rpartition("\n")[2][:_SAID_CHARACTERS]
    trouble = "" if most > told // 2 else f"it took hardly any memory: {said}"
    return CapTrial(name=name, told_bytes=told, most_bytes=most, ended=ended, trouble=trouble)


def _most(watch: CardWatch, process: subprocess.Popen[str], before: CardLook, enough: int) -> int:
    """Return the most that processes held which came after it was started."""
    most, until = 0, time.monotonic() + _SECONDS
    while process.poll() is None and most < enough and time.monotonic() < until:
        amounts = watch.look().amounts
        most = max(most, sum(amounts[pid] or 0 for pid in amounts.keys() - before.amounts.keys()))
        time.sleep(_PAUSE_SECONDS)
    return most
