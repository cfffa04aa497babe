"""
`report`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_gpufence.gather import gather_nodes
from kubectl_gpufence.report import CAUTION, owners, report_csv, report_json, report_table, since

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.cluster import Cluster
    from kubectl_gpufence.terminal import Terminal


def run(call: argparse.Namespace, cluster: Cluster, terminal: Terminal) -> int:
    scene = gather_nodes(cluster, "")
    found = owners(scene, call.namespace)
    first, last = since(scene)
    if call.output == "json":
        terminal.json(
            {
                "v": 1,
                "since": {"first": first, "last": last},
                "owners": report_json(found),
                "notes": list(scene.notes),
            }
        )
        return 0
    if call.output == "csv":
        terminal.lines(report_csv(found))
    elif found:
        terminal.lines(report_table(found, terminal.look, namespaces=not call.namespace))
        terminal.notes([f"measured since {first}" + _until(first, last), CAUTION])
    else:
        where = f"in namespace {call.namespace}" if call.namespace else "in any namespace"
        terminal.notes([f"no agent has seen a pod with GPU memory {where}"])
    terminal.notes(scene.notes)
    return 0


def _until(first: str, last: str) -> str:
    return "" if first == last else f" on the oldest agent, {last} on the youngest"
