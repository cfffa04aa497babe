"""
Put small faults into pure modules, one at a time, and see whether tests notice: `python -m
tools.mutants`, or `make mutants`. The tests are those that reach the module by imports and need no
API server; each fault has a minute of them, nearest first. The tree itself is never changed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tools import ROOT
from tools.mutants import Mutant, mutants
from tools.mutants.picking import module_name, pick, read_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

PRODUCT: Final = (
    *("gpufence", "kube", "service", "webhook", "agent", "certs", "controller"),
    *("kubectl_gpufence", "simulator", "tools"),
)
WANTED: Final = 0.95
SECONDS: Final = 60.0
_CHECK_SECONDS: Final = 600.0
_WORKERS: Final = 2
_RED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Outcome(NamedTuple):
    killed: bool
    by: str
    """The test that failed, as far as one is named."""
    seconds: float


class Player:
    """Runs tests on changed modules, each in a process of its own that ends with this one."""

    def __init__(self) -> None:
        self._running: set[int] = set()

    def play(self, path: str, source: str, tests: Sequence[str], seconds: float) -> Outcome:
        """Run tests where a module has this text; what passes until the time is up survives."""
        begin = time.monotonic()
        inside = [sys.executable, "-m", "tools.mutants.inside", module_name(Path(path)), path]
        with (
            tempfile.TemporaryDirectory() as storage,
            subprocess.Popen(
                [*inside, *tests],
                cwd=ROOT,
                env=os.environ | {"HYPOTHESIS_STORAGE_DIRECTORY": storage},
                start_new_session=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as child,
        ):
            self._running.add(child.pid)
            said, killed = "", False
            try:
                with suppress(subprocess.TimeoutExpired):
                    said, _ = child.communicate(source, timeout=seconds)
                    killed = child.returncode != 0
            finally:
                _end(child.pid)
                self._running.discard(child.pid)
        by = _RED.search(said)
        return Outcome(killed, by[1] if by else "", time.monotonic() - begin)

    def stop(self) -> None:
        for pid in list(self._running):
            _end(pid)


def sample(only: str, count: int, seed: int) -> list[Mutant]:
    """Draw mutants of the pure modules whose path begins so; the same seed draws the same."""
    every = [
        mutant
        for package in PRODUCT
        for file in sorted((ROOT / package).rglob("*.py"))
        if (path := str(file.relative_to(ROOT))).startswith(only) and is_pure(path)
        for mutant in mutants(path, _read(path))
    ]
    return sorted(random.Random(seed).sample(every, min(count, len(every))))  # noqa: S311


def is_pure(path: str) -> bool:
    said = ast.get_docstring(ast.parse(_read(path))) or ""
    return path.startswith("gpufence/") or said.startswith("PURE.")


def play_all(
    player: Player, drawn: Sequence[Mutant], tests: Callable[[Mutant], list[str]], seconds: float
) -> Iterator[tuple[Mutant, Outcome]]:
    """Run tests on each, two at a time, and say how each ended."""

    def play(mutant: Mutant) -> Outcome:
        source = mutant.put_into(_read(mutant.path))
        return player.play(mutant.path, source, tests(mutant), seconds)

    pool = ThreadPoolExecutor(_WORKERS)
    try:
        for number, (mutant, outcome) in enumerate(
            zip(drawn, pool.map(play, drawn), strict=True), start=1
        ):
            word = "killed  " if outcome.killed else "SURVIVED"
            place = f"[{number:{len(str(len(drawn)))}}/{len(drawn)}]"
            where = f"{mutant.path}:{mutant.line}"
            print(f"{place} {word} {outcome.seconds:3.0f} s  {where}  {outcome.by}", flush=True)
            yield mutant, outcome
    finally:
        player.stop()
        pool.shutdown(cancel_futures=True)


def red_by_themselves(player: Player, outcomes: Iterable[Outcome]) -> str:
    """Name a test that killed and fails on the tree as it is, too: it has proved nothing."""
    files = sorted({outcome.by.partition("::")[0] for outcome in outcomes if outcome.by})
    unchanged = "tools/mutants/__init__.py"
    return player.play(unchanged, _read(unchanged), files, _CHECK_SECONDS).by if files else ""


def report(outcomes: Sequence[tuple[Mutant, Outcome]]) -> int:
    """Show the survivors, and tell whether there are too many."""
    for mutant, outcome in outcomes:
        if not outcome.killed:
            print(f"\n{mutant.path}:{mutant.line} survived")
            print(mutant.diff(_read(mutant.path)))
    killed = sum(outcome.killed for _, outcome in outcomes)
    print(f"\n{killed} of {len(outcomes)} killed, wanted are {WANTED:.0%}")
    return int(killed < WANTED * len(outcomes))


def main(argv: Sequence[str]) -> int:
    command = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    command.add_argument("--only", default="", help="modules whose path begins so: agent/judge")
    command.add_argument("--sample", type=int, default=60, help="how many are drawn")
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--check", action="store_true", help="try survivors on all unit tests")
    options = command.parse_args(argv)
    drawn = sample(options.only, options.sample, options.seed)
    if not drawn:
        command.error(f"no pure module begins with {options.only!r}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    imports = read_imports(ROOT, (*PRODUCT, "tests"))

    def near(mutant: Mutant) -> list[str]:
        return pick(ROOT, imports, module_name(Path(mutant.path)), mutant.within)

    player = Player()
    outcomes = list(play_all(player, drawn, near, SECONDS))
    survivors = [mutant for mutant, outcome in outcomes if not outcome.killed]
    if options.check and survivors:
        print("\nsurvivors on all of tests/unit")
        list(play_all(player, survivors, lambda _: ["tests/unit"], _CHECK_SECONDS))
    status = report(outcomes)
    if red := red_by_themselves(player, (outcome for _, outcome in outcomes)):
        print(f"{red} fails without a mutant, too, and proves nothing", file=sys.stderr)
        return 2
    return status


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("stopped; no file was changed")
