"""A bench's command line: run its parts, print their table, put it into a document if asked to."""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.observing import Figure, as_markdown, as_text


def report(
    name: str, parts: Mapping[str, Callable[[], list[Figure]]], arguments: Sequence[str]
) -> int:
    """Run all parts of a bench or those named; a budget that is not kept is exit code 1."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.bench.{name}")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this file")
    parser.add_argument("part", nargs="*", help=f"{', '.join(parts)} (all)")
    said = parser.parse_args(arguments)
    unknown = sorted(set(said.part) - set(parts))
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}; there are: {', '.join(parts)}")
    figures: list[Figure] = []
    for part, measure in parts.items():
        if not said.part or part in said.part:
            print(f"... {part}", file=sys.stderr, flush=True)
            figures += measure()
    print(as_text(figures))
    if said.write:
        _write_into(said.write, name, as_markdown(figures))
    return 0 if all(figure.kept for figure in figures) else 1


def _write_into(path: Path, name: str, table: str) -> None:
    """Replace what stands between the marks of the file."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = path.read_text(encoding="utf-8")
    marked = re.compile(f"{begin}.*?{end}", re.DOTALL)
    if not marked.search(text):
        raise SystemExit(f"{path}: no {begin} ... {end} to put the table between")
    path.write_text(marked.sub(lambda _: f"{begin}\n{table}\n{end}", text), encoding="utf-8")
