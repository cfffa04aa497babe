"""
`top [pods|nodes|cards]`: who holds how much of which card, beside what was declared and injected.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from gpufence.snapshot import OUTLINES
from kube import KubeError
from kubectl_gpufence.reasons import advice
from kubectl_gpufence.top.cards import (
    card_json,
    card_lines,
    cards_table,
    node_json,
    node_lines,
    nodes_table,
)
from kubectl_gpufence.top.pods import pod_json, pod_lines, pods_table
from kubectl_gpufence.top.watch import watch

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.ask import ClusterReader
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.scene import Scene
    from kubectl_gpufence.table import Display


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    if call.watch and output.keys is not None:
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
