"""
Measure the webhook: `python -m tests.bench.webhook [--write docs/benchmarks.md] [part ...]`.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.webhook import bindings, cpu, footprint, throughput
from tests.bench.webhook.figures import Figure, as_markdown, as_text
from tests.http.webhook.authority import Authority, write_files

if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN, END = "<!-- webhook: begin -->", "<!-- webhook: end -->"


def main(arguments: list[str]) -> int:
    """
    Run the parts, print the table; a budget that is not kept is the exit code 1.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.bench.webhook", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this file")
    parser.add_argument("part", nargs="*", help="cpu, throughput, memory, bindings (all)")
    said = parser.parse_args(arguments)
    figures: list[Figure] = []
    for name, measure in parts().items():
        if not said.part or name in said.part:
            print(f"... {name}", file=sys.stderr, flush=True)
            figures += measure()
    print(as_text(figures))
    if said.write:
        write_into(said.write, as_markdown(figures))
    return 0 if all(figure.kept for figure in figures) else 1


def parts() -> dict[str, Callable[[], list[Figure]]]:
    """
    Name the parts; each runs in a folder of its own with a certificate in it.
    """
    authority = Authority()

    def in_folder(measure: Callable[[Path], list[Figure]]) -> Callable[[], list[Figure]]:
        def run() -> list[Figure]:
            with tempfile.TemporaryDirectory() as folder:
                write_files(Path(folder), authority.leaf())
                return measure(Path(folder))

        return run

    return {
        "cpu": cpu.measure,
        "throughput": in_folder(lambda folder: throughput.measure(folder, authority)),
        "memory": in_folder(footprint.measure),
        "bindings": in_folder(lambda folder: bindings.measure(folder / "secret", authority)),
    }


def write_into(path: Path, table: str) -> None:
    """
    Replace what stands between the marks of the file.
    """
    text = path.read_text(encoding="utf-8")
    marked = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)
    if not marked.search(text):
        raise SystemExit(f"{path}: no {BEGIN} ... {END} to put the table between")
    path.write_text(marked.sub(f"{BEGIN}\n{table}\n{END}", text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
