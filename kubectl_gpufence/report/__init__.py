"""`report`: what owners of GPU pods took since the agents started, and which limit would do."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from gpufence.need import merged
from gpufence.need.target import MARGIN_PERCENT
from gpufence.shape import as_object, as_text
from gpufence.snapshot import OWNER_ROWS
from kube import ForbiddenError, core
from kubectl_gpufence.pods import node_of
from kubectl_gpufence.report.owners import (
    owner_json,
    owner_lines,
    owners_csv,
    owners_table,
    since,
)
from kubectl_gpufence.report.page import ModelDays, page
from kubectl_gpufence.table import counted

if TYPE_CHECKING:
    import argparse

    from kube import JsonObject
    from kubectl_gpufence.ask import ClusterReader
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.scene import Scene

CAUTION: Final = (
    f"SUGGESTED is the peak and {MARGIN_PERCENT} %, turned into a limit by the share rule. "
    "It knows nothing of what has not happened since the agents started: batches, inputs and "
    "models that come later."
)


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    if call.output == "html":
        return _show_page(call, reader, output)
    scene = _scene(call, reader)
    lines = owner_lines(scene, call.namespace)
    first, last = since(scene)
    if call.output == "json":
        document = {
            "v": 1,
            "since": {"first": first, "last": last},
            "owners": [owner_json(line) for line in lines],
            "notes": list(scene.notes),
        }
        output.json(document)
        return 0
    if call.output == "csv":
        output.lines(owners_csv(lines))
    elif lines:
        output.lines(owners_table(lines, output.display, namespaces=not call.namespace))
        output.notes([f"measured since {first}" + _until(first, last), CAUTION])
    else:
        where = f"in namespace {call.namespace}" if call.namespace else "in any namespace"
        silent = any(agent.snapshot is None for agent in scene.agents.values())
        agents = "no agent that answers" if silent else "no agent"
        output.notes([f"{agents} has seen a pod with GPU memory {where}"])
    output.notes(scene.notes)
    return 0


def _scene(call: argparse.Namespace, reader: ClusterReader) -> Scene:
    """
    Ask the agents of the nodes where a namespace has or had pods; of a namespace of which nobody
    knows that, and of all namespaces, ask all.
    """
    if call.every_node or not call.namespace:
        return reader.scene_of_nodes("", OWNER_ROWS)
    objects, used = reader.objects_of_nodes(""), _nodes_of(call.namespace, reader)
    asked = tuple(pod for pod in objects.agent_pods if node_of(pod) in used)
    left = len(objects.agent_pods) - len(asked)
    if not asked or not left:
        return reader.scene(objects, OWNER_ROWS)
    note = (
        f"{counted(left, 'agent')} not asked, on whose nodes {call.namespace} has no pods and no "
        "Events: --every-node asks all"
    )
    return reader.scene(
        objects._replace(agent_pods=asked, notes=(*objects.notes, note)), OWNER_ROWS
    )


def _nodes_of(namespace: str, reader: ClusterReader) -> set[str]:
    """
    Return the nodes of a namespace's pods, living or ended, and those whose kubelets and agents
    have something to say in it: evicted pods are no more.
    """
    nodes: set[str] = set()
    with suppress(ForbiddenError):  # the agents' word on whose pods they saw needs no such right
        nodes |= set(reader.listed(core("namespaces", namespace, "pods"), node_of))
        nodes |= set(reader.listed(core("namespaces", namespace, "events"), _host))
    return nodes


def _host(event: JsonObject) -> str:
    return as_text(as_object(event.get("source"), "source").get("host"), "source.host")


def _show_page(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Write what each model needs and took from day to day as a page; notes are in it, and aside.
    """
    from kubectl_gpufence.recommend import read  # noqa: PLC0415 - it reads this package's lines

    needs = read.read_needs(reader, call.namespace)
    nodes = () if needs.source == read.FROM_REPORT else read.remembered(reader)[0]
    days = {owner.key: owner.days for owner in merged(nodes)}
    models = [ModelDays(item, days.get(item.key, ())) for item in needs.items]
    where = f"namespace {call.namespace}" if call.namespace else "all namespaces"
    output.lines(page(models, where, needs.notes))
    output.notes(needs.notes)
    return 0


def _until(first: str, last: str) -> str:
    return "" if first == last else f" on the oldest agent, {last} on the youngest"
