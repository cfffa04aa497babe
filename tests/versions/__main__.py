"""
The tests that speak to an API server, on each minor of Kubernetes: `make versions`.

    python -m tests.versions [--only 1.34]...

What each of them did is kept in `results.json`, of which `report.py` makes the tables.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from simulator.controlplane import Assets, ControlPlaneError
from simulator.controlplane.older import ensure, read_releases
from simulator.progress import Progress
from tests.support.sources import ROOT
from tests.versions.report import read_junit, row, store

# Every folder in which what the API server does decides: objects, policies, rights, hooks, watches.
# Left out is what is about nodes, GPUs, processes or the simulator itself, and what plays weather.
PATHS: Final = (
    "tests/integration/agent/cluster",
    "tests/integration/agent/program/test_fence.py",
    "tests/integration/claims",
    "tests/integration/controller/test_kinds.py",
    "tests/integration/controller/test_profiles.py",
    "tests/integration/controller/test_release.py",
    "tests/integration/controller/test_rights.py",
    "tests/integration/deploy/test_apply.py",
    "tests/integration/deploy/test_guards.py",
    "tests/integration/deploy/test_stolen_token.py",
    "tests/integration/kube",
    "tests/integration/plugin/test_plugin.py",
    "tests/integration/plugin/test_profiles.py",
    "tests/integration/webhook",
)
_WORKERS: Final = "2"
_CHOICE: Final = ("-m", "not soak", "-p", "no:randomly")


def chosen(only: list[str], newest: str) -> list[str]:
    known = [*read_releases(), newest]
    unknown = [minor for minor in only if minor not in known]
    if unknown:
        raise SystemExit(f"no Kubernetes {', '.join(unknown)}; there are {', '.join(known)}")
    return only or known


def play(minor: str, folder: Path | None) -> bool:
    """
    Run the tests on one minor, store what they did, and return whether all of it was expected.
    """
    environment = {name: text for name, text in os.environ.items() if name != "KUBEBUILDER_ASSETS"}
    if folder is not None:
        environment["KUBEBUILDER_ASSETS"] = str(folder)
    with tempfile.TemporaryDirectory(prefix="gpufence-versions-") as temporary:
        report = Path(temporary) / "junit.xml"
        options = ("-q", "-rfE", "-n", _WORKERS, "--dist", "loadfile", f"--junit-xml={report}")
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *_CHOICE, *PATHS],
            env=environment,
            cwd=ROOT,
            check=False,
        )
        seconds = time.monotonic() - begin
        if not report.exists():
            return False
        cases = read_junit(report)
    store(minor, row(cases, round(seconds), time.strftime("%Y-%m-%d")))
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("--only", metavar="MINOR", action="append", default=[])
    assets, progress = Assets.from_environment(os.environ), Progress(sys.stderr)
    newest = ".".join(assets.recipe.kubernetes.removeprefix("v").split(".")[:2])
    failed = []
    try:
        for minor in chosen(parser.parse_args().only, newest):
            folder = None if minor == newest else ensure(assets, minor, progress)
            progress.say(f"Kubernetes {minor}: {folder or assets.built}")
            if not play(minor, folder):
                failed.append(minor)
    except ControlPlaneError as error:
        sys.stderr.write(f"python -m tests.versions: {error}\n")
        return 1
    if failed:
        sys.stderr.write(f"not as expected on Kubernetes {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
