"""Run a node in the foreground: `python -m simulator node --help`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError
from gpufence.quantity import UNIT_BYTES
from simulator.node.machine import CLAIMS
from simulator.node.node import NodeOptions, SimulatedNode
from simulator.node.toolkit import Toolkit
from simulator.nvml.build import CURRENT, VARIANTS
from simulator.nvml.layout import Memacct
from simulator.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_ERROR = 2
_NEVER = threading.Event()
_STEP_SECONDS = 0.5


def main(argv: Sequence[str]) -> int:
    """Register the node, print how to look at its cards, and stay until told to stop."""
    arguments = _parser().parse_args(argv)
    if not arguments.kubeconfig:
        print("python -m simulator node: name --kubeconfig or set KUBECONFIG", file=sys.stderr)
        return USAGE_ERROR
    options = NodeOptions(**vars(arguments))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with SimulatedNode(options, Progress(sys.stderr)) as node:
            _introduce(node)
            # In steps: a signal that another thread was given does not wake an endless wait.
            while not _NEVER.wait(_STEP_SECONDS):
                pass
    except GpufenceError as error:
        print(f"python -m simulator node: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    return 0


def _introduce(node: SimulatedNode) -> None:
    print("to see its cards from another terminal (Ctrl-C here stops the node):", file=sys.stderr)
    for name, value in node.environment.items():
        print(f"export {name}={value}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simulator node",
        description="Be a node that runs pods as local processes, without root or containers, and"
        " shares its cards as gpushare does. Only simulator workloads run: command"
        " `python -m simulator workload ...`, or image gpufence/workload with nothing but args.",
        epilog="A node's own kubeconfig cannot lift the taint not-ready: without a controller"
        " manager, give an administrator's with --admin-kubeconfig, or as --kubeconfig.",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        default=os.environ.get("KUBECONFIG"),
        help="as whom to act; default $KUBECONFIG",
    )
    parser.add_argument(
        "--admin-kubeconfig", type=Path, help="who lifts the first taint and deletes the Node"
    )
    parser.add_argument("--name", default="node-a", help="of the Node (default %(default)s)")
    parser.add_argument(
        "--cards", default="T4", help="such as T4,T4 or 2xA100-40 (default %(default)s)"
    )
    parser.add_argument(
        "--gpushare-unit",
        dest="unit",
        choices=UNIT_BYTES,
        default="GiB",
        help="of aliyun.com/gpu-mem",
    )
    parser.add_argument(
        "--claims",
        dest="unit",
        action="store_const",
        const=CLAIMS,
        help="publish the cards as a ResourceSlice for resource claims (DRA), and no resource",
    )
    _add_driver(parser)
    return parser


def _add_driver(parser: argparse.ArgumentParser) -> None:
    variants = [variant.name for variant in VARIANTS]
    parser.add_argument(
        "--driver", choices=variants, default=CURRENT, help="whose library (default %(default)s)"
    )
    parser.add_argument(
        "--toolkit",
        type=Toolkit,
        choices=list(Toolkit),
        default=Toolkit.NONE,
        help="1.20.1 sets the driver's limits before a container starts (default %(default)s)",
    )
    parser.add_argument(
        "--memacct",
        type=lambda text: Memacct[text.upper()],
        choices=list(Memacct),
        default=Memacct.MISC,
        metavar="{off,misc,dmem}",
        help="how the driver counts by control group (default misc)",
    )
    parser.add_argument(
        "--cgroup-v1",
        dest="cgroup_v2",
        action="store_false",
        help="the host has control groups of version 1, where no limit can be set",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
