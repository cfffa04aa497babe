"""Run a control plane in the foreground: `python -m simulator controlplane`."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from simulator.controlplane import Assets, ControlPlane, ControlPlaneError, PlaneOptions
from simulator.progress import Progress

_WATCH_SECONDS = 0.2


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(
        prog="python -m simulator controlplane",
        description="Run a real Kubernetes control plane on loopback, without root, until Ctrl-C."
        " The first start builds its programs from pinned sources, which takes about ten minutes on"
        " two cores; set KUBEBUILDER_ASSETS to use programs of your own. There is no node: pods"
        " can be made, admitted and bound, and run nowhere.",
    )
    command.add_argument(
        "--scheduler", action="store_true", help="also run kube-scheduler, which binds pods"
    )
    command.add_argument(
        "--controller-manager",
        action="store_true",
        help="also run kube-controller-manager, which makes pods of Deployments and Jobs,"
        " ServiceAccounts, and removes what is deleted",
    )
    command.add_argument(
        "--folder",
        type=Path,
        help="an empty folder for data, logs, certificates and kubeconfig files, kept afterwards;"
        " without it a temporary one is used and removed",
    )
    return command


def main(argv: Sequence[str]) -> int:
    """Start, say how to reach it, and stay until told to stop or until a part ends."""
    arguments = parser().parse_args(argv)
    options = PlaneOptions(
        scheduler=arguments.scheduler,
        controller_manager=arguments.controller_manager,
        folder=arguments.folder,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        assets = Assets.from_environment(os.environ)
        with ControlPlane.start(assets, options, Progress(sys.stderr)) as plane:
            return _stay(plane)
    except ControlPlaneError as error:
        print(f"python -m simulator controlplane: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped before it was ready", file=sys.stderr)
        return 130


def _stay(plane: ControlPlane) -> int:
    print(f"kubectl is {plane.kubectl_path}; logs are in {plane.folder}", file=sys.stderr)
    print("to use it from another terminal (Ctrl-C here stops it):", file=sys.stderr)
    print(f"export KUBECONFIG={plane.kubeconfig()}", flush=True)
    try:
        while not plane.ended():
            time.sleep(_WATCH_SECONDS)
    except KeyboardInterrupt:
        print("\nstopping", file=sys.stderr)
        return 0
    for name in plane.ended():
        log = plane.folder / f"{name}.log"
        print(f"{name} ended; its last words:\n{log.read_text()[-2000:]}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
