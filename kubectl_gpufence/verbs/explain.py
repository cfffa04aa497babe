"""
`explain POD`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.names import MODE
from gpufence.shape import as_object, as_texts
from kube import ForbiddenError, NotFoundError, core
from kubectl_gpufence.cluster import node_of
from kubectl_gpufence.errors import MissingError
from kubectl_gpufence.explain import tell
from kubectl_gpufence.explain.story import Event, Story, read_events
from kubectl_gpufence.gather import NO_AGENTS
from kubectl_gpufence.pods import labels_of, see_pod
from kubectl_gpufence.scene import by_node

if TYPE_CHECKING:
    import argparse

    from kube import JsonObject
    from kubectl_gpufence.cluster import Cluster
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.terminal import Terminal


def run(call: argparse.Namespace, cluster: Cluster, terminal: Terminal) -> int:
    """
    Find out everything about a pod and tell it.

    Raises:
        MissingError: there is no such pod.
    """
    try:
        raw = cluster.api.get(core("namespaces", call.namespace, "pods", call.pod))
    except NotFoundError as error:
        raise MissingError(
            f"there is no pod {call.pod} in namespace {call.namespace}; "
            f"`kubectl get pods -n {call.namespace}` lists those that are there, -n names another"
        ) from error
    namespace = _namespace(cluster, call.namespace)
    node = cluster.node(node_of(raw)) if node_of(raw) else None
    words = {} if namespace is None else _annotations(namespace)
    pod = see_pod(raw, None if node is None else node.gpu, words)
    pods, no_agent = cluster.agents()
    answers = cluster.ask_agents(pods, frozenset({pod.node})) if pod.node else ()
    story = Story(
        pod=pod,
        mode=None if namespace is None else labels_of(namespace).get(MODE, ""),
        node=node,
        agent=by_node(answers).get(pod.node),
        no_agent=no_agent or ("" if pods else NO_AGENTS),
        events=_events(cluster, pod),
    )
    terminal.lines(tell(story, terminal.look))
    return 0


def _namespace(cluster: Cluster, name: str) -> JsonObject | None:
    try:
        return cluster.api.get(core("namespaces", name))
    except (ForbiddenError, NotFoundError):
        return None


def _annotations(raw: JsonObject) -> dict[str, str]:
    metadata = as_object(raw.get("metadata"), "metadata")
    return dict(as_texts(metadata.get("annotations"), "metadata.annotations"))


def _events(cluster: Cluster, pod: SeenPod) -> tuple[Event, ...]:
    chosen = f"involvedObject.uid={pod.uid}" if pod.uid else f"involvedObject.name={pod.name}"
    path = core("namespaces", pod.namespace, "events")
    try:
        return read_events(cluster.listed(path, dict, {"fieldSelector": chosen}))
    except ForbiddenError:
        return ()
