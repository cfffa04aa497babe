"""
`top [pods|nodes|cards]`: who holds how much of which card, beside what was declared and injected.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from gpufence.snapshot import OUTLINES
from kube import KubeError
from kubectl_gpufence.arguments import add_interval, add_output, add_scope, node_name
from kubectl_gpufence.card_lines import (
    card_json,
    card_lines,
    cards_table,
    node_json,
    node_lines,
    nodes_table,
)
from kubectl_gpufence.output import advice
from kubectl_gpufence.pod_lines import pod_json, pod_lines, pods_table

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.cluster_view import Scene
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.table import Display

EXAMPLES: Final = """\
examples:
  kubectl gpufence top                        pods of the current namespace, the worst first
  kubectl gpufence top pods -A -o wide        of all namespaces, with modes, owners and card UUIDs
  kubectl gpufence top cards --node gpu-1     the cards of one node
  kubectl gpufence top nodes --watch          every node, live; h shows the keys

columns of pods:
  LIMIT    what the pod may hold on each card
  TOLD     what its frameworks were told they may allocate, all containers together; in
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
    scene = _read(call, reader)
    if call.output == "json":
        output.json({"v": 1, call.what: _items(call, scene), "notes": list(scene.notes)})
        return 0
    lines = _table(call, scene, output.display)
    if len(lines) > 1:
        output.lines(lines)
    else:
        output.notes([_nothing(call)])
    output.notes(scene.notes)
    return 0


def _repeat(call: argparse.Namespace, reader: ClusterReader, output: Output) -> NoReturn:
    """
    Read again and again where nobody sits at keys; once one reading has succeeded, a failing one is
    noted and not the end.
    """
    scene = _read(call, reader)
    notes = scene.notes
    while True:
        output.clear()
        output.lines(_table(call, scene, output.display))
        output.notes(notes)
        time.sleep(call.interval)
        try:
            scene = _read(call, reader)
            notes = scene.notes
        except KubeError as error:
            notes = (f"this is an old look: {advice(error)}",)


def _read(call: argparse.Namespace, reader: ClusterReader) -> Scene:
    if call.what == "pods":
        return reader.scene_of_pods(call.namespace, call.node)
    return reader.scene_of_nodes(call.node, OUTLINES)


def _table(call: argparse.Namespace, scene: Scene, display: Display) -> list[str]:
    wide = call.output == "wide"
    display = replace(display, width=None) if wide else display
    if call.what == "cards":
        return cards_table(card_lines(scene), display, wide=wide)
    if call.what == "nodes":
        return nodes_table(node_lines(scene), display, wide=wide)
    lines = pod_lines(scene, call.namespace)
    return pods_table(lines, display, namespaces=not call.namespace, wide=wide)


def _items(call: argparse.Namespace, scene: Scene) -> list[dict[str, object]]:
    if call.what == "cards":
        return [card_json(line) for line in card_lines(scene)]
    if call.what == "nodes":
        return [node_json(line) for line in node_lines(scene)]
    return [pod_json(line) for line in pod_lines(scene, call.namespace)]


def _nothing(call: argparse.Namespace) -> str:
    where = f" on node {call.node}" if call.node else ""
    if call.what != "pods":
        return f"there are no {'GPU nodes' if call.what == 'nodes' else 'cards'}{where}"
    which = f"in namespace {call.namespace}" if call.namespace else "in any namespace"
    return f"no pod {which} has to do with GPU memory{where}"


def _refusal(call: argparse.Namespace) -> str:
    several = call.watch and call.output == "json"
    return "--watch shows tables; ask for -o json once, as often as you like" if several else ""
