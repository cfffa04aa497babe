"""Run a cluster in the foreground: `python -m simulator cluster`."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError
from gpufence.quantity import UNIT_BYTES
from simulator.cluster import needs
from simulator.cluster.cluster import PROGRAMS, SimulatedCluster, clear_away
from simulator.cluster.images.archives import ImageArchives
from simulator.cluster.setup import CARDS, NODE, ClusterOptions
from simulator.controlplane import Assets
from simulator.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence


_WATCH_SECONDS = 0.5
EPILOG = """\
needs root and Debian's packages containerd, runc, containernetworking-plugins, buildah and
mmdebstrap; --install gets those that are missing. The first start builds the control plane's
programs, a base image and gpufence's images, about fifteen minutes on two cores; later ones take
seconds. Everything runs in namespaces of its own, and is gone when this program is.
"""


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(
        prog="python -m simulator cluster",
        description="Run a real Kubernetes cluster of one node, with kubelet and containerd, until"
        " Ctrl-C. Its cards are simulated and shared as gpushare does.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--node", default=NODE, help="name of the node (default %(default)s)")
    command.add_argument("--cards", default=CARDS, help="such as T4,A100-40 (default %(default)s)")
    command.add_argument(
        "--gpushare-unit", choices=UNIT_BYTES, default="GiB", help="of aliyun.com/gpu-mem"
    )
    command.add_argument(
        "--install", action="store_true", help="install missing Debian packages with apt-get"
    )
    command.add_argument(
        "--rebuild", action="store_true", help="make base and images anew, from today's packages"
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--prepare", action="store_true", help="install, build and fetch only; start nothing"
    )
    what.add_argument(
        "--clean", action="store_true", help="remove what a killed cluster left; start nothing"
    )
    return command


def main(argv: Sequence[str]) -> int:
    """Start, say how to reach it, and stay until told to stop or until a part ends."""
    arguments = parser().parse_args(argv)
    progress = Progress(sys.stderr)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if arguments.clean:
            clear_away(progress)
            return 0
        assets = _prepare(arguments, progress)
        if arguments.prepare:
            ImageArchives.from_environment(os.environ).ensure(progress)
            return 0
        options = ClusterOptions(arguments.node, arguments.cards, arguments.gpushare_unit)
        with SimulatedCluster.start(assets, options, progress) as cluster:
            return _stay(cluster)
    except GpufenceError as error:
        print(f"python -m simulator cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped before it was ready", file=sys.stderr)
        return 130


def _prepare(arguments: argparse.Namespace, progress: Progress) -> Assets:
    if arguments.install:
        needs.install(os.environ, progress)
    needs.check()
    if arguments.rebuild:
        ImageArchives.from_environment(os.environ).forget(progress)
    assets = Assets.from_environment(os.environ)
    assets.ensure(PROGRAMS, progress)
    return assets


def _stay(cluster: SimulatedCluster) -> int:
    try:
        _introduce(cluster)
        while cluster.is_running:
            time.sleep(_WATCH_SECONDS)
    except KeyboardInterrupt:
        print("\nstopping", file=sys.stderr)
        return 0
    return 1


def _introduce(cluster: SimulatedCluster) -> None:
    for line in (
        f"kubectl is {cluster.kubectl_path}; logs are in {cluster.folder}",
        "gpufence's images are loaded: kubectl apply -k deploy/overlays/simulated",
        f"its processes: {shlex.join(cluster.command_inside('ps', 'axf'))}",
        "to use it from another terminal (Ctrl-C here stops it):",
    ):
        print(line, file=sys.stderr)
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    print(f"export GPUFENCE_SIMULATOR_STATE={cluster.state}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
