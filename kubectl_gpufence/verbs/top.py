"""
`top [pods|nodes|cards]`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from kube import KubeError
from kubectl_gpufence.cluster import advice
from kubectl_gpufence.gather import gather_nodes, gather_pods
from kubectl_gpufence.top import cards, nodes, pods
from kubectl_gpufence.words import safe

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.cluster import Cluster
    from kubectl_gpufence.scene import Scene
    from kubectl_gpufence.table import Look
    from kubectl_gpufence.terminal import Terminal


def run(call: argparse.Namespace, cluster: Cluster, terminal: Terminal) -> int:
    if call.watch:
        _watch(call, cluster, terminal)
    else:
        _show(call, cluster, terminal)
    return 0


def _watch(call: argparse.Namespace, cluster: Cluster, terminal: Terminal) -> None:
    """
    Look again and again; once one look has succeeded, a failing one is told and not the end.
    """
    scene, lines = _looked(call, cluster, terminal.look)
    while True:
        terminal.clear()
        terminal.lines(lines)
        terminal.notes(scene.notes)
        time.sleep(call.interval)
        try:
            scene, lines = _looked(call, cluster, terminal.look)
        except KubeError as error:
            scene = replace(scene, notes=(f"this is an old look: {advice(error)}",))


def _show(call: argparse.Namespace, cluster: Cluster, terminal: Terminal) -> None:
    if call.output == "json":
        scene, items = _as_json(call, cluster)
        terminal.json({"v": 1, call.what: items, "notes": list(scene.notes)})
        return
    scene, lines = _looked(call, cluster, terminal.look)
    if len(lines) > 1:
        terminal.lines(lines)
    else:
        terminal.notes([_nothing(call)])
    terminal.notes(scene.notes)


def _looked(call: argparse.Namespace, cluster: Cluster, look: Look) -> tuple[Scene, list[str]]:
    wide = call.output == "wide"
    look = replace(look, width=None) if wide else look
    if call.what == "cards":
        scene = gather_nodes(cluster, call.node)
        return scene, cards.cards_table(cards.lines(scene), look, wide=wide)
    if call.what == "nodes":
        scene = gather_nodes(cluster, call.node)
        return scene, nodes.nodes_table(nodes.lines(scene), look, wide=wide)
    scene = gather_pods(cluster, call.namespace, call.node)
    found = pods.lines(scene, call.namespace)
    return scene, pods.pods_table(found, look, namespaces=not call.namespace, wide=wide)


def _as_json(call: argparse.Namespace, cluster: Cluster) -> tuple[Scene, list[dict[str, object]]]:
    if call.what == "cards":
        scene = gather_nodes(cluster, call.node)
        return scene, cards.cards_json(cards.lines(scene))
    if call.what == "nodes":
        scene = gather_nodes(cluster, call.node)
        return scene, nodes.nodes_json(nodes.lines(scene))
    scene = gather_pods(cluster, call.namespace, call.node)
    return scene, pods.pods_json(pods.lines(scene, call.namespace))


def _nothing(call: argparse.Namespace) -> str:
    where = f" on node {safe(call.node)}" if call.node else ""
    if call.what != "pods":
        return f"there are no {'GPU nodes' if call.what == 'nodes' else 'cards'}{where}"
    which = f"in namespace {call.namespace}" if call.namespace else "in any namespace"
    return f"no pod {which} has to do with GPU memory{where}"
