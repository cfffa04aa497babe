"""`idle`: who holds GPUs that nobody uses, for how long, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kubectl_gpufence.idle.gather import gather
from kubectl_gpufence.idle.lines import idle_lines, waiting_note
from kubectl_gpufence.idle.tables import idle_json, idle_table

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.ask import ClusterReader
    from kubectl_gpufence.output import Output


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    scene = gather(reader, call.namespace)
    lines = idle_lines(scene, call.namespace)
    if call.output == "json":
        owners = [idle_json(line) for line in lines]
        output.json({"v": 1, "owners": owners, "notes": list(scene.notes)})
        return 0
    wide = call.output == "wide"
    display = replace(output.display, width=None) if wide else output.display
    if lines:
        output.lines(idle_table(lines, display, namespaces=not call.namespace, wide=wide))
    else:
        where = f"in namespace {call.namespace}" if call.namespace else "in any namespace"
        output.notes([f"no pod {where} has to do with GPUs"])
    output.notes(filter(None, [waiting_note(lines), *scene.notes]))
    return 0
