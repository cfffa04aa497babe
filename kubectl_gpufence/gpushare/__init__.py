"""
`kubectl inspect gpushare`: what the program of that name always printed, byte for byte, and with
`--used` what it never knew: the memory that is really held.

Its rules, odd ones among them, are those of cmd/inspect in gpushare-device-plugin. Where that
prints nodes and cards in no order, here they are in theirs.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from gpufence.arguments import Parser
from gpufence.errors import GpufenceError
from gpufence.snapshot import CARDS_AND_PODS
from kube import KubeError, ReplyError, core
from kubectl_gpufence.arguments import add_common, node_name
from kubectl_gpufence.gpushare.books import (
    Holdings,
    details,
    read_book,
    read_booking,
    summary,
    with_bookings,
)
from kubectl_gpufence.output import TROUBLE, ended, output_to
from kubectl_gpufence.reader import LIVING, reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kubectl_gpufence.gpushare.books import NodeBook
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

PROGRAM: Final = "kubectl inspect gpushare"

_EXAMPLES = """\
examples:
  kubectl inspect gpushare                    units booked on each card of each node
  kubectl inspect gpushare -d                 by pod
  kubectl inspect gpushare -d gpu-1           of one node
  kubectl inspect gpushare --used             beside them, what the agents of gpufence measured
"""


class ReadError(GpufenceError):
    """Raised where nodes or pods cannot be read, with the words that gpushare has for it."""


def main() -> int:
    """Print the tables: 0 is well, 1 is trouble, 2 a call that cannot be read."""
    call = parse(sys.argv[1:])
    output = output_to(sys.stdout, sys.stderr, os.environ)
    return ended(PROGRAM, lambda: run(call, os.environ, output))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read a call; argparse ends the program with 2 where it cannot be read."""
    parser = Parser(
        prog=PROGRAM,
        description="GPU memory that gpushare has booked, in its units.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("node", metavar="NODE", nargs="?", type=node_name)
    parser.add_argument("-d", "--details", action="store_true", help="by pod")
    parser.add_argument("--used", action="store_true", help="add what the agents measured")
    add_common(parser)
    return parser.parse_args(arguments)


def run(call: argparse.Namespace, environ: Mapping[str, str], output: Output) -> int:
    """
    Connect, read, and print.

    Raises:
        GpufenceError: there is no cluster.
    """
    with reading(call, environ, output.progress) as reader:
        try:
            books = _books(reader, call.node or "")
        except ReadError as error:
            # As there: on standard output, and without an end of the line.
            output.text(f"Failed due to {error}")
            return TROUBLE
        holdings = _holdings(reader, books, output) if call.used else None
        show = details if call.details else summary
        output.text(show(books, holdings))
        return 0


def _books(reader: ClusterReader, node: str) -> list[NodeBook]:
    """Read the nodes that share GPUs by gpushare, or the one that was named whatever it shares."""
    try:
        if node:
            books = [read_book(reader.client.get(core("nodes", node)))]
        else:
            books = [book for book in reader.listed(core("nodes"), read_book) if book.total > 0]
    except KubeError as error:
        said = error.failure.message if isinstance(error, ReplyError) else str(error)
        raise ReadError(said) from error
    chosen = f"{LIVING},spec.nodeName={node}" if node else LIVING
    try:
        read = reader.listed(core("pods"), read_booking, {"fieldSelector": chosen})
    except KubeError as error:
        where = f" in node {node}" if node else ""
        raise ReadError(f"failed to get Pods{where}") from error
    return with_bookings(books, (booking for booking in read if booking is not None))


def _holdings(reader: ClusterReader, books: Iterable[NodeBook], output: Output) -> Holdings:
    """Ask the agents of these nodes; a note says whose answers are missing."""
    snapshots, notes = reader.snapshots({book.name for book in books}, CARDS_AND_PODS)
    output.notes(notes)
    return Holdings(snapshots)
