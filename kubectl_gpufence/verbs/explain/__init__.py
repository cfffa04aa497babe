"""
`explain POD|OWNER`: the whole story of one pod, or what is left of it.

GpufenceError
└── MissingError     neither the pod nor an Event about it is there
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence import names
from gpufence.claim_requests import class_key, classes_asked
from gpufence.devices import MOST_READ
from gpufence.names import MODE
from gpufence.pods import read_claims
from kube import ForbiddenError, KubeError, NotFoundError, core, group
from kubectl_gpufence.arguments import add_namespace, add_output, owner, pod_name
from kubectl_gpufence.cluster_view import by_node
from kubectl_gpufence.pods import annotations_of, labels_of, name_of, node_of, see_pod
from kubectl_gpufence.verbs.explain.chapters import explanation
from kubectl_gpufence.verbs.explain.document import document
from kubectl_gpufence.verbs.explain.find import events_about, find
from kubectl_gpufence.verbs.explain.gone import Gone, gone_document, gone_lines
from kubectl_gpufence.verbs.explain.record import PodRecord
from kubectl_gpufence.verbs.explain.release import RELEASED, fate_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpufence.pods import PodClaim
    from gpufence.shape import Object
    from kube import JsonObject
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

EXAMPLES: Final = """\
examples:
  kubectl gpufence explain trainer-0          of the current namespace
  kubectl gpufence explain -n team-a pod/trainer-0
  kubectl gpufence explain deploy/worker      its pod that is in most trouble
  kubectl gpufence explain trainer-0 --sums   with the sums behind each value
  kubectl gpufence explain trainer-0 -o json | jq '.injected.containers'
"""


_IDLE: Final = "idle"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    help_text = "a pod's name, or deploy/NAME and the like: its pod that is in most trouble"
    parser.add_argument("pod", metavar="POD|OWNER", type=_named, help=help_text)
    help_text = "show the sums behind each value that was set"
    parser.add_argument("--sums", action="store_true", help=help_text)
    add_namespace(parser)
    add_output(parser, "text", "json")


def _named(text: str) -> str:
    """Read a pod's name, with or without `pod/`, or an owner's."""
    short = text.removeprefix("pods/").removeprefix("pod/")
    return owner(short) if "/" in short else pod_name(short)


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Read everything about a pod and explain it, or what is left of one that is gone.

    Raises:
        MissingError: neither a pod nor anything about it is there.
    """
    found = find(call.namespace, call.pod, reader)
    if isinstance(found, Gone):
        found, note = _with_release(found, reader)
        if call.output == "json":
            output.json(gone_document(found))
        else:
            output.lines(gone_lines(found, output.display))
        output.notes(filter(None, [note]))
        return 0
    record = _read(call.namespace, found.raw, reader)._replace(lost=found.lost)
    record, note = _with_fate(record, reader)
    if call.output == "json":
        output.json(document(record))
    else:
        output.lines(explanation(record, output.display, sums=call.sums))
        output.notes([*found.notes, *filter(None, [note])])
    return 0


def _with_fate(record: PodRecord, reader: ClusterReader) -> tuple[PodRecord, str]:
    """Ask what becomes of the owner of an idle pod."""
    activity = None if record.row is None else record.row.activity
    if activity is None or activity.state != _IDLE or not record.pod.owner:
        return record, ""
    fate = fate_of(reader, record.pod.namespace, record.pod.owner)
    return record._replace(release=fate.sentence), fate.note


def _with_release(gone: Gone, reader: ClusterReader) -> tuple[Gone, str]:
    """Ask what has become of an owner without pods, which its Events say for an hour only."""
    kind, _, name = gone.called.partition(" ")
    if kind == "pod":
        return gone, ""
    fate = fate_of(reader, gone.namespace, f"{kind}/{name}")
    return gone._replace(release=fate.sentence if fate.state == RELEASED else ""), fate.note


def _read(namespace: str, raw: JsonObject, reader: ClusterReader) -> PodRecord:
    around = _namespace(reader, namespace)
    node = reader.node(node_of(raw)) if node_of(raw) else None
    options = {} if around is None else annotations_of(around)
    claims = _claims(reader, namespace, raw)
    pod = see_pod(raw, None if node is None else node.gpu, options, claims)
    agents = reader.agent_pods(pod.node)
    about = f"involvedObject.uid={pod.uid}" if pod.uid else f"involvedObject.name={pod.name}"
    return PodRecord(
        pod=pod,
        mode=None if around is None else labels_of(around).get(MODE, ""),
        agent=by_node(reader.agents(agents.pods)).get(pod.node) if pod.node else None,
        no_agent=agents.note,
        events=events_about(reader, namespace, about),
        hidden=agents.hidden,
    )


def _namespace(reader: ClusterReader, name: str) -> JsonObject | None:
    try:
        return reader.client.get(core("namespaces", name))
    except (ForbiddenError, NotFoundError):
        return None


def _claims(reader: ClusterReader, namespace: str, raw: JsonObject) -> dict[str, Object | str]:
    """Read the pod's resource claims, or the templates they will be made of, or why that fails."""

    def read(ref: PodClaim) -> Object | str:
        try:
            path = (
                group(names.RESOURCE_GROUP, "namespaces", namespace, "resourceclaims", ref.claim)
                if ref.claim
                else group(
                    names.RESOURCE_GROUP,
                    "namespaces",
                    namespace,
                    "resourceclaimtemplates",
                    ref.template,
                )
            )
            return reader.client.get(path)
        except NotFoundError:
            return "does not exist"
        except (KubeError, ValueError) as error:
            return f"cannot be read: {error}"

    refs = read_claims(raw)[0][:MOST_READ]
    found = {ref.name: claim for ref, claim in zip(refs, map(read, refs), strict=True)}
    return {**found, **_classes(reader, classes_asked(found.values()))}


def _classes(reader: ClusterReader, asked: Sequence[str]) -> dict[str, Object | str]:
    """Read the classes that tell whether claims ask for GPUs, or why that fails."""
    if not asked:
        return {}
    try:
        listed = reader.listed(group(names.RESOURCE_GROUP, "deviceclasses"), dict)
    except KubeError as error:
        return dict.fromkeys(map(class_key, asked), f"cannot be read: {error}")
    known = {name_of(item): item for item in listed}
    return {class_key(name): known.get(name, "does not exist") for name in asked}
