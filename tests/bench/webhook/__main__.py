"""Measure the webhook: `python -m tests.bench.webhook [--write docs/benchmarks.md] [part ...]`."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench._report import report
from tests.bench.webhook import parts as measured
from tests.support.authority import Authority, write_files
from tests.support.observing import Figure


def parts() -> dict[str, Callable[[], list[Figure]]]:
    """Name the parts; each runs in a folder of its own with a certificate in it."""
    authority = Authority()

    def in_folder(measure: Callable[[Path], list[Figure]]) -> Callable[[], list[Figure]]:
        def run() -> list[Figure]:
            with tempfile.TemporaryDirectory() as folder:
                write_files(Path(folder), authority.leaf())
                return measure(Path(folder))

        return run

    return {
        "cpu": measured.measure_cpu,
        "throughput": in_folder(lambda folder: measured.measure_throughput(folder, authority)),
        "memory": in_folder(lambda folder: measured.measure_memory(folder, authority)),
        "bindings": in_folder(
            lambda folder: measured.measure_bindings(folder / "secret", authority)
        ),
    }


if __name__ == "__main__":
    sys.exit(report("webhook", parts(), sys.argv[1:]))
