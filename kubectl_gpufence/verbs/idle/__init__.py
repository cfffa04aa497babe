"""`idle`: who holds GPUs that nobody uses, for how long, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kubectl_gpufence.arguments import add_output, add_scope
from kubectl_gpufence.verbs.idle.gather import gather
from kubectl_gpufence.verbs.idle.lines import idle_json, idle_lines, idle_table, waiting_note

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

EXAMPLES: Final = """\
examples:
  kubectl gpufence idle                       who holds GPUs in vain, the most of it first
  kubectl gpufence idle -A -o wide            of all namespaces, with evidence and reasons

columns:
  IDLE       for how long all pods of the owner have done nothing; "?" is unknown, never idle
  HELD       the GPU memory its processes hold, and GIB-H how much of it for how long in vain
  RELEASE    when the controller takes its replicas; in parentheses where nothing is done at it
  WAITING    whose pods wait for just these GPUs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scope(parser)
    add_output(parser, "table", "wide", "json")


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
