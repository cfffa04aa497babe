"""
The tests that speak to an API server, on each minor of Kubernetes: `make versions`.

    python -m tests.versions [--only 1.34]...

What each of them did is kept in `results.json`, of which `report.py` makes the tables.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from simulator.controlplane import Assets, ControlPlaneError
from simulator.controlplane.build import USUAL
from simulator.controlplane.older import ensure, read_releases
from simulator.controlplane.recipe import read_recipe
from simulator.progress import Progress
from simulator.published import HELM
from tests.support.tree import shown
from tests.versions.report import RESULTS, read_junit, row, store, summary
from tools import ROOT

# Every folder in which what the API server does decides: objects, policies, rights, hooks, watches.
# Left out is what is about nodes, GPUs, processes or the simulator itself, and what plays weather.
PATHS: Final = (
    "tests/integration/agent/cluster",
    "tests/integration/agent/program/test_fence.py",
    "tests/integration/test_claims.py",
    "tests/integration/controller/test_kinds.py",
    "tests/integration/controller/test_profiles.py",
    "tests/integration/controller/test_release.py",
    "tests/integration/controller/test_rights.py",
    "tests/integration/deploy/test_apply.py",
    "tests/integration/deploy/test_guards.py",
    "tests/integration/deploy/test_release.py",
    "tests/integration/deploy/test_stolen_token.py",
    "tests/integration/kube",
    "tests/integration/plugin/test_plugin.py",
    "tests/integration/plugin/test_recommend.py",
    "tests/integration/webhook",
)
_WORKERS: Final = "2"
_CHOICE: Final = ("-m", "not soak", "-p", "no:randomly")


_INTERRUPTED: Final = 130
# What pytest says when every test was run, whatever came of it.
_WHOLE: Final = (0, 1)


def read_chosen(arguments: Sequence[str], newest: str) -> list[str]:
    """Return the minors that were asked for, in the order of age."""
    known = [*read_releases(), newest]
    command = argparse.ArgumentParser(
        prog="python -m tests.versions",
        description="Run the tests whose end the API server decides on each Kubernetes, and store"
        f" in {shown(RESULTS)} what each can do. An API server and scheduler that were not built"
        " before are built first: six minutes for each minor on two idle cores. The tests of one"
        " minor take four to six minutes.",
        epilog="It ends with 0 where all was as expected, with 1 where something was not, with 2"
        " where it was asked for what there is not, with 130 when it was stopped.",
    )
    command.add_argument(
        "--only",
        metavar="MINOR",
        action="append",
        choices=known,
        help=f"run this minor alone; may be given again. There are {', '.join(known)}",
    )
    only = command.parse_args(arguments).only
    return [minor for minor in known if only is None or minor in only]


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end; who stops us stops it once, and it is given the time to tidy up."""
    with subprocess.Popen(
        command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, process_group=0
    ) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise


def play(minor: str, folder: Path | None, progress: Progress) -> bool:
    """Run the tests on one minor, store what they did, and return whether all was expected."""
    environment = {name: text for name, text in os.environ.items() if name != "KUBEBUILDER_ASSETS"}
    if folder is not None:
        environment["KUBEBUILDER_ASSETS"] = str(folder)
    with tempfile.TemporaryDirectory(prefix="gpufence-versions-") as temporary:
        report = Path(temporary) / "junit.xml"
        options = ("-q", "-rfE", "-n", _WORKERS, "--dist", "loadfile", f"--junit-xml={report}")
        begin = time.monotonic()
        status = run([sys.executable, "-m", "pytest", *options, *_CHOICE, *PATHS], environment)
        seconds = round(time.monotonic() - begin)
        if status not in _WHOLE or not report.exists():
            progress.say(f"Kubernetes {minor}: the tests did not run to their end ({status})")
            return False
        played = row(read_junit(report), seconds, time.strftime("%Y-%m-%d"))
    store(minor, played)
    progress.say(summary(minor, played))
    return status == 0


def play_all(minors: Sequence[str], newest: str, progress: Progress) -> list[str]:
    """Run the tests on each minor, build what is missing, return where not all was expected."""
    assets = Assets.from_environment(os.environ)
    assets.ensure(USUAL, progress)
    HELM.ensure(assets, progress)
    failed = []
    for number, minor in enumerate(minors, start=1):
        folder = None if minor == newest else ensure(assets, minor, progress)
        where = folder or assets.built
        progress.say(f"Kubernetes {minor} ({number}/{len(minors)}), programs of {where}")
        if not play(minor, folder, progress):
            failed.append(minor)
    return failed


def main(arguments: Sequence[str]) -> int:
    newest = ".".join(read_recipe().kubernetes.removeprefix("v").split(".")[:2])
    minors, progress = read_chosen(arguments, newest), Progress(sys.stderr)
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    begin = time.monotonic()
    try:
        failed = play_all(minors, newest, progress)
    except ControlPlaneError as error:
        progress.say(f"python -m tests.versions: {error}")
        return 1
    except KeyboardInterrupt:
        progress.say("stopped; what ran to its end is stored, what was built stays")
        return _INTERRUPTED
    minutes = (time.monotonic() - begin) / 60
    outcome = f"not as expected on {', '.join(failed)}" if failed else "all as expected"
    progress.say(f"Kubernetes {', '.join(minors)} in {minutes:.0f} min: {outcome}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
