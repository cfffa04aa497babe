"""The program `kubectl-inspect-gpushare`, which kubectl runs for `kubectl inspect gpushare`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError
from gpufence.snapshot import CARDS_AND_PODS
from kube import KubeError, ReplyError, core
from kubectl_gpufence.arguments import add_common, node_name
from kubectl_gpufence.cluster_view import ClusterAnswers, by_node, silent_notes
from kubectl_gpufence.gpushare.books import read_book, read_booking, with_bookings
from kubectl_gpufence.gpushare.tables import Holdings, details, summary
from kubectl_gpufence.output import advice, output_to
from kubectl_gpufence.pods import node_of
from kubectl_gpufence.reader import LIVING, NO_AGENTS, reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kubectl_gpufence.gpushare.books import NodeBook
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

PROGRAM: Final = "kubectl inspect gpushare"

_TROUBLE = 1
_INTERRUPTED = 130
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
    try:
        return run(call, os.environ, output_to(sys.stdout, sys.stderr, os.environ))
    except GpufenceError as error:
        sys.stderr.write(f"{PROGRAM}: {advice(error)}\n")
        return _TROUBLE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # `| head` has seen enough; Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read a call; argparse ends the program with 2 where it cannot be read."""
    parser = argparse.ArgumentParser(
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
            return _TROUBLE
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
    pods, hidden = reader.agent_pods()
    names = {book.name for book in books}
    asked = [pod for pod in pods if node_of(pod) in names]
    agents = by_node(reader.agents(asked, CARDS_AND_PODS))
    silent = silent_notes(agents.values())
    output.notes([note for note in (hidden or ("" if pods else NO_AGENTS), *silent) if note])
    return Holdings(ClusterAnswers(agents=agents).snapshots)


if __name__ == "__main__":
    sys.exit(main())
