"""
Run a node in the foreground: `python -m simulator node --help`.
"""

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
from simulator.node.node import SimulatedNode
from simulator.node.options import NodeOptions
from simulator.node.resources import Taint
from simulator.node.sharing import Dialect, Sharing
from simulator.nvml.build import environment
from simulator.progress import progress_on

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_ERROR = 2


_NEVER = threading.Event()
_STEP_SECONDS = 0.5


def main(argv: Sequence[str]) -> int:
    """
    Register the node, say how to look at its cards, and stay until told to stop.
    """
    arguments = _parser().parse_args(argv)
    kubeconfig = arguments.kubeconfig or os.environ.get("KUBECONFIG")
    if not kubeconfig:
        print("python -m simulator node: name --kubeconfig or set KUBECONFIG", file=sys.stderr)
        return USAGE_ERROR
    options = _options(arguments, Path(kubeconfig))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with SimulatedNode(options, progress_on(sys.stderr)) as node:
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
    for name, value in environment(node.state.path).items():
        print(f"export {name}={value}")
    print(f"export GPUFENCE_PROC={node.proc_root}", flush=True)


def _options(arguments: argparse.Namespace, kubeconfig: Path) -> NodeOptions:
    return NodeOptions(
        kubeconfig=kubeconfig,
        name=arguments.name,
        admin_kubeconfig=arguments.admin_kubeconfig,
        cards=arguments.cards,
        sharing=Sharing(
            Dialect(arguments.dialect),
            arguments.gpushare_unit,
            arguments.volcano_factor,
            arguments.replicas,
        ),
        gfd=arguments.gfd,
        write_cards=arguments.write_cards,
        labels=dict(arguments.label),
        taints=tuple(arguments.taint),
        address=arguments.address,
        state=arguments.state,
        proc=arguments.proc,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simulator node",
        description="Be a node that runs pods as local processes, without root or containers."
        " Only simulator workloads run: command `python -m simulator workload ...`, or image"
        " gpufence/workload with nothing but args.",
        epilog="A node's own kubeconfig cannot lift the taint not-ready: without a controller"
        " manager, give an administrator's with --admin-kubeconfig, or as --kubeconfig.",
    )
    parser.add_argument("--kubeconfig", help="as whom to act; default $KUBECONFIG")
    parser.add_argument(
        "--admin-kubeconfig", type=Path, help="who lifts the first taint and deletes the Node"
    )
    parser.add_argument("--name", default="node-a", help="of the Node (default %(default)s)")
    parser.add_argument("--cards", help="such as T4,T4 or 2xA100-40:3g.20gb (default T4)")
    parser.add_argument(
        "--dialect",
        choices=[dialect.value for dialect in Dialect],
        default=Dialect.NVIDIA.value,
        help="how the node offers its memory (default %(default)s)",
    )
    parser.add_argument("--gpushare-unit", choices=UNIT_BYTES, default="GiB")
    parser.add_argument("--volcano-factor", type=_positive, default=1, metavar="N")
    parser.add_argument(
        "--replicas", type=_positive, default=4, metavar="N", help="pods that share one card"
    )
    parser.add_argument("--gfd", action="store_true", help="set GPU feature discovery's labels")
    cards = parser.add_mutually_exclusive_group()
    cards.add_argument(
        "--write-cards", action="store_true", help="set the annotation that an agent would write"
    )
    cards.add_argument(
        "--no-cards", action="store_false", dest="write_cards", help="leave it to the agent"
    )
    parser.add_argument(
        "--label", action="append", type=_label, default=[], metavar="KEY=VALUE", help="repeatable"
    )
    parser.add_argument(
        "--taint", action="append", type=_taint, default=[], metavar="KEY=VALUE:EFFECT"
    )
    parser.add_argument("--address", default="127.0.0.1", help="of the node and all its pods")
    parser.add_argument("--state", type=Path, help="file of the cards (default: a temporary one)")
    parser.add_argument("--proc", type=Path, help="folder shaped like /proc (default: temporary)")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too small; write a number from 1 on")
    return number


def _label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is no label; write KEY=VALUE")
    return key, value


def _taint(text: str) -> Taint:
    said, separator, effect = text.rpartition(":")
    key, _, value = said.partition("=")
    if not key or not separator or effect not in {"NoSchedule", "PreferNoSchedule", "NoExecute"}:
        raise argparse.ArgumentTypeError(f"{text!r} is no taint; write KEY=VALUE:NoSchedule")
    return Taint(key, value, effect)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
