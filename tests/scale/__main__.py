"""`python -m tests.scale --nodes 500 --pods 5000`: fills a cluster and measures all in it."""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from simulator.progress import Progress
from tests.scale import report
from tests.scale.measuring import (
    SLOW,
    Fleet,
    measure_churn,
    measure_plugin,
    measure_return,
    measure_start,
    real_agents,
    resting,
    services,
)
from tests.scale.size import MOST_NODES, MOST_PODS, Size
from tests.scale.stage import Stage, staged
from tests.support.observing import Figure, as_text

_SETTLE_SECONDS: Final = 12.0
_LONG_SECONDS, _SHORT_SECONDS = 60.0, 10.0
_LARGE: Final = 2000  # nodes
_INTERRUPTED: Final = 130


def read_size(arguments: list[str]) -> tuple[Size, float]:
    """Read the size and for how long things are watched, by default in the page's proportions."""
    usual = Size()
    parser = argparse.ArgumentParser(prog="python -m tests.scale")
    parser.add_argument("--nodes", type=int, default=usual.nodes)
    parser.add_argument("--pods", type=int, help="(ten on each node)")
    parser.add_argument("--silent", type=int, help="agents that do not answer (one of 250)")
    parser.add_argument("--agents", type=int, help="real ones at once (one of 25 nodes)")
    parser.add_argument("--rate", type=int, default=usual.rate, help="pods a second (50)")
    parser.add_argument("--seconds", type=float, help="how long each thing is watched")
    said = parser.parse_args(arguments)
    nodes = said.nodes
    if not 0 < nodes < MOST_NODES:
        parser.error(f"--nodes is more than 0 and less than {MOST_NODES}")
    pods = _or(said.pods, nodes * usual.pods // usual.nodes)
    if not 0 < pods < MOST_PODS:
        parser.error(f"--pods is more than 0 and less than {MOST_PODS}")
    silent = _or(said.silent, nodes * usual.silent // usual.nodes)
    agents = _or(said.agents, max(1, nodes * usual.agents // usual.nodes))
    if not 0 < agents <= nodes or not 0 <= silent <= nodes:
        parser.error("--agents and --silent are at most as many as --nodes")
    seconds = _LONG_SECONDS if nodes >= _LARGE else _SHORT_SECONDS
    wanted = Size(nodes, pods, silent, agents, said.rate)
    return wanted, seconds if said.seconds is None else said.seconds


def _or(said: int | None, usual: int) -> int:
    return usual if said is None else said


class Told:
    """Keeps figures, and tells them as they come: the last is half an hour away."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.figures: list[Figure] = []

    def __call__(self, more: Iterable[Figure]) -> None:
        for figure in more:
            self._progress.say(f"    {figure.what}: {figure.text}")
            self.figures.append(figure)


def play(stage: Stage, seconds: float, progress: Progress) -> list[Figure]:
    """Measure one thing after the other."""
    told = Told(progress)
    told([Figure(what, length / 1000, "kB") for what, length in stage.bytes_of.items()])
    told([Figure(f"{name}: memory", mib, "MiB") for name, mib in stage.server_mib().items()])
    with (
        _watching(stage, 1, "one agent", told, progress) as one,
        services(stage, progress) as running,
    ):
        told(running.ready)
        told(measure_churn(stage, running, seconds, progress))
        one.wait_until_quiet(progress)
        with resting(one, 5 * seconds, told, progress):
            told(measure_plugin(stage, progress))
    with (
        services(stage, progress),
        _watching(stage, stage.size.agents, "many at once", told, progress, **SLOW) as many,
    ):
        with resting(many, 2 * seconds, told, progress):
            pass
        told(measure_return(many, progress))
    return told.figures


@contextmanager
def _watching(
    stage: Stage,
    count: int,
    label: str,
    told: Told,
    progress: Progress,
    **settings: str,
) -> Iterator[Fleet]:
    """Run agents, from when they know what they need."""
    since = time.time()
    with real_agents(stage, count, label, **settings) as fleet:
        with progress.step(f"starting agents: {label}"):
            fleet.wait_until_watching(since)
            time.sleep(_SETTLE_SECONDS)
        told(measure_start(fleet, since))
        yield fleet


def main(arguments: list[str]) -> int:
    wanted, seconds = read_size(arguments)
    progress = Progress(sys.stderr)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="gpufence-scale-") as folder,
            staged(Path(folder), wanted, progress) as stage,
        ):
            figures = play(stage, seconds, progress)
    except KeyboardInterrupt:
        progress.say("stopped, and everything is taken away")
        return _INTERRUPTED
    sys.stdout.write(as_text(figures) + "\n")
    report.store(wanted, figures)
    return 0 if all(figure.kept for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
