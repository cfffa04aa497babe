"""
Run what `make test` leaves out, one verb after the other: `python -m tools.nightly`, or `make
nightly`. After each verb, docs/nightly.md says how it ended; what has ended on a commit is not run
again on it, unless it is named with `--only`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tools import ROOT
from tools.nightly import (
    GPUSHARE,
    NOT_RUN,
    RABBITMQ,
    ROOT_USER,
    VERBS,
    Run,
    Runs,
    Verb,
    due,
    ended,
    failed,
    took,
    why_not,
)
from tools.nightly.pages import load, store

if TYPE_CHECKING:
    from collections.abc import Sequence

LOGS = ROOT / ".cache" / "nightly"
_WRITTEN = (":!docs", ":!*results.json")
"""What the verbs themselves write; all else makes another tree of a commit."""
_RABBITMQ_AT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS")
"""A make below this one would take over its words, such as a VERB."""


def commit_of(root: Path) -> str:
    """Name the commit; a tree with changes is named by those as well."""
    head = _git(root, "rev-parse", "--short", "HEAD").strip()
    changes = _git(root, "diff", "HEAD", "--", ".", *_WRITTEN)
    return f"{head}+{hashlib.sha256(changes.encode()).hexdigest()[:7]}" if changes else head


def present() -> set[str]:
    """Return what this machine has of what verbs take."""
    found = {
        ROOT_USER: os.geteuid() == 0,
        RABBITMQ: _RABBITMQ_AT.is_file(),
        GPUSHARE: os.access(os.environ.get("GPUSHARE_INSPECT", ""), os.X_OK),
    }
    return {need for need, there in found.items() if there}


def play(command: Sequence[str], log: Path) -> tuple[str, str]:
    """Run a verb, show what it says and keep it; return how it ended."""
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name not in _OF_MAKE},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        for line in process.stdout or ():
            print(line, end="", flush=True)
            kept.write(line)
            lines.append(line)
    return ended(process.returncode, lines)


def tonight(verbs: Sequence[Verb], runs: Runs, commit: str) -> None:
    """Run each, and write the page after each."""
    for number, verb in enumerate(verbs, start=1):
        today = dt.datetime.now(dt.UTC).date().isoformat()
        if lack := why_not(verb, present()):
            print(f"==> make {verb.name} ({number}/{len(verbs)}): not run, {lack}", flush=True)
            runs[verb.name] = Run(commit, today, NOT_RUN, note=lack)
        else:
            print(f"==> make {verb.name} ({number}/{len(verbs)})", flush=True)
            begin = time.monotonic()
            outcome, note = play(["make", verb.name], LOGS / f"{verb.name}.log")
            seconds = round(time.monotonic() - begin)
            runs[verb.name] = Run(commit, today, outcome, seconds, note)
            print(f"==> make {verb.name}: {outcome} in {took(seconds)}; {note}", flush=True)
        store(runs)


def main(argv: Sequence[str]) -> int:
    command = argparse.ArgumentParser(prog="python -m tools.nightly", description=__doc__)
    command.add_argument("--only", action="append", default=[], choices=[v.name for v in VERBS])
    only = command.parse_args(argv).only
    runs, commit = load(), commit_of(ROOT)
    try:
        tonight(due(runs, commit, only), runs, commit)
    except KeyboardInterrupt:
        print("stopped; what ended is kept, and make nightly goes on from there", file=sys.stderr)
        return 130
    if red := failed(runs, commit):
        print(f"failed on {commit}: {', '.join(red)}; logs are in {LOGS}", file=sys.stderr)
    return int(bool(red))


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
