"""
`top [pods|nodes|cards]`: who holds how much of which card, beside what was declared and injected.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

from gpufence.snapshot import CARDS_AND_PODS, OUTLINES
from kube import KubeError
from kubectl_gpufence.arguments import add_interval, add_output, add_scope, node_name
from kubectl_gpufence.output import advice
from kubectl_gpufence.pod_lines import SHEETS
from kubectl_gpufence.view import Rows

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

EXAMPLES: Final = """\
examples:
  kubectl gpufence top                        pods of the current namespace, the worst first
  kubectl gpufence top pods -A -o wide        of all namespaces, with modes, owners and card UUIDs
  kubectl gpufence top cards --node gpu-1     the cards of one node
  kubectl gpufence top nodes --watch          every node, live; h shows the keys

columns of pods:
  LIMIT    what the pod may hold on each card
  CAP      what its frameworks are configured to allocate at most, all containers together; in
           parentheses where the namespace is in mode observe and nothing was set
  USED     what its processes hold on the card; "?" is unknown and never zero
  VERDICT  the agent's: since when the pod is over, and when it is due
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=("pods", "nodes", "cards"), default="pods")
    add_scope(parser)
    parser.add_argument("--node", type=node_name, metavar="NODE", help="only on this node")
    add_output(parser, "table", "wide", "json")
    parser.add_argument(
        "-w", "--watch", action="store_true", help="live, with keys to sort and filter"
    )
    add_interval(parser)
    parser.set_defaults(refusal=_refusal)


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    if call.watch and output.keys is not None:
        from kubectl_gpufence.verbs.top.watch import watch  # noqa: PLC0415 (for a terminal alone)

        return watch(call, reader, output)
    if call.watch:
        _repeat(call, reader, output)
    output.show(_look(call, reader), call.output)
    return 0


def _repeat(call: argparse.Namespace, reader: ClusterReader, output: Output) -> NoReturn:
    """
    Read again and again where nobody sits at keys; once one reading has succeeded, a failing one is
    noted and not the end.
    """
    rows = _look(call, reader)
    while True:
        output.clear()
        output.lines(rows.table(output.display, wide=call.output == "wide"))
        output.notes(rows.notes)
        time.sleep(call.interval)
        try:
            rows = _look(call, reader)
        except KubeError as error:
            rows = rows._replace(notes=(f"this is an old look: {advice(error)}",))


def _look(call: argparse.Namespace, reader: ClusterReader) -> Rows[Any]:
    if call.node:
        reader.require_node(call.node)
    if call.what == "pods":
        cluster = reader.cluster_of_pods(call.namespace, call.node)
    else:
        every_use = call.what == "cards" and call.output != "table"
        cluster = reader.cluster_of_nodes(call.node, CARDS_AND_PODS if every_use else OUTLINES)
    sheet = SHEETS[call.what]
    left_out = ("NAMESPACE",) if call.namespace and call.what == "pods" else ()
    lines = sheet.lines(cluster, call.namespace)
    return Rows(call.what, sheet.fields, lines, _nothing(call), cluster.notes, left_out)


def _nothing(call: argparse.Namespace) -> str:
    where = f" on node {call.node}" if call.node else ""
    if call.what != "pods":
        return f"there are no {'GPU nodes' if call.what == 'nodes' else 'cards'}{where}"
    which = f"in namespace {call.namespace}" if call.namespace else "in any namespace"
    return f"no pod {which} has to do with GPU memory{where}"


def _refusal(call: argparse.Namespace) -> str:
    several = call.watch and call.output == "json"
    return "--watch shows tables; ask for -o json once, as often as you like" if several else ""
