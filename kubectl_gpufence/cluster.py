"""
Asking: the API server for objects, and the agents for snapshots through its pod proxy.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from gpufence.errors import GpufenceError, InvalidError, UnknownVersionError
from gpufence.names import SYSTEM_NAMESPACE
from gpufence.shape import as_object, as_text, objects
from gpufence.snapshot import read_snapshot
from kube import (
    ForbiddenError,
    NotFoundError,
    ReplyError,
    ServerError,
    UnreachableError,
    as_is,
    collect,
    core,
)
from kubectl_gpufence.pods import see_pod
from kubectl_gpufence.scene import Agent, SeenNode, see_node
from kubectl_gpufence.words import counted, safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gpufence.nodes import GpuNode
    from kube import JsonObject
    from kubectl_gpufence.pods import SeenPod

T = TypeVar("T")
R = TypeVar("R")
Query = dict[str, str | int]

AGENT_LABEL: Final = "app.kubernetes.io/name=gpufence-agent"
WEBHOOK_LABEL: Final = "app.kubernetes.io/name=gpufence-webhook"
STATUS_PORT: Final = 8080
WORKERS: Final = 8

_PATIENCE_SECONDS: Final = 2.0
_LIVING = "status.phase!=Succeeded,status.phase!=Failed"
_MAY_NOT_PROXY = f"you may not ask agents: Role gpufence-viewer in {SYSTEM_NAMESPACE} allows it"


class Api(Protocol):
    """
    The part of `kube.Client` that asking needs, with its errors.
    """

    @property
    def namespace(self) -> str: ...

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> JsonObject: ...

    def text(self, path: str, *, timeout_seconds: float | None = None) -> str: ...

    def post(self, path: str, body: JsonObject) -> JsonObject: ...


def silence(text: str) -> None:
    """
    Tell nobody anything.
    """
    del text


@dataclass(frozen=True, slots=True)
class Cluster:
    """
    One API server; agents get `agent_seconds` each, for a dead node answers nobody. `say` tells
    somebody who waits what for.
    """

    api: Api
    agent_seconds: float = 5.0
    say: Callable[[str], None] = silence

    def together(self, ask: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """
        Ask several at the same time; answers come in the order of the questions.
        """
        with ThreadPoolExecutor(WORKERS, thread_name_prefix="ask") as pool:
            return list(pool.map(ask, items))

    def listed(
        self, path: str, keep: Callable[[JsonObject], T], query: Query | None = None
    ) -> list[T]:
        """
        Read a whole collection, each object projected on the way.
        """
        return collect(self.api.get, path, keep, query).items

    def nodes(self) -> tuple[dict[str, SeenNode], str]:
        """
        Read all Nodes, or say why they cannot be read.
        """
        try:
            found = self.listed(core("nodes"), see_node)
        except ForbiddenError:
            return {}, "you may not list nodes: units and cards are taken from the pods' own plans"
        return {node.name: node for node in found}, ""

    def node(self, name: str) -> SeenNode | None:
        """
        Read one Node; None where it is gone or hidden.
        """
        try:
            return see_node(self.api.get(core("nodes", name)))
        except (NotFoundError, ForbiddenError):
            return None

    def pods(self, namespace: str, node: str, nodes: Mapping[str, SeenNode]) -> list[SeenPod]:
        """
        Read the living pods that have to do with GPU memory; no namespace means all.
        """

        def keep(raw: JsonObject) -> SeenPod | None:
            seen = see_pod(raw, _gpu_of(raw, nodes))
            return seen if seen.uses_gpu else None

        chosen = f"{_LIVING},spec.nodeName={node}" if node else _LIVING
        path = core("namespaces", namespace, "pods") if namespace else core("pods")
        found = self.listed(path, keep, {"fieldSelector": chosen})
        return [pod for pod in found if pod is not None]

    def agents(self) -> tuple[list[JsonObject], str]:
        """
        Read the agents' pods, or say why they cannot be found.
        """
        path = core("namespaces", SYSTEM_NAMESPACE, "pods")
        try:
            return self.listed(path, as_is, {"labelSelector": AGENT_LABEL}), ""
        except ForbiddenError:
            return [], (
                f"you may not list pods in {SYSTEM_NAMESPACE}, where the agents are: "
                "nothing measured is shown"
            )

    def ask_agents(
        self, pods: Iterable[JsonObject], nodes: frozenset[str] | None
    ) -> tuple[Agent, ...]:
        """
        Ask the agents of these nodes, or of all, for their snapshots.
        """
        chosen = [pod for pod in pods if nodes is None or node_of(pod) in nodes]
        with ThreadPoolExecutor(WORKERS, thread_name_prefix="ask") as pool:
            asked = [pool.submit(self._ask_agent, pod) for pod in chosen]
            while (waiting := wait(asked, timeout=_PATIENCE_SECONDS)).not_done:
                self.say(f"waiting for {len(waiting.not_done)} of {counted(len(asked), 'agent')}")
            return tuple(item.result() for item in asked)

    def proxied(self, pod: JsonObject, path: str) -> str:
        """
        Read a page of a pod's status port through the API server.
        """
        metadata = as_object(pod.get("metadata"), "metadata")
        name = as_text(metadata.get("name"), "metadata.name")
        at = core("namespaces", SYSTEM_NAMESPACE, "pods", f"{name}:{status_port(pod)}", "proxy")
        return self.api.text(f"{at}{path}", timeout_seconds=self.agent_seconds)

    def _ask_agent(self, pod: JsonObject) -> Agent:
        metadata = as_object(pod.get("metadata"), "metadata")
        name, node = as_text(metadata.get("name"), "metadata.name"), node_of(pod)
        if not is_ready(pod):
            # Its node is lost, or it has not started: asking would cost the whole patience.
            return Agent(node, name, ready=False, trouble="its pod is not ready")
        try:
            text = self.proxied(pod, "/v1/snapshot")
            return Agent(node, name, snapshot=read_snapshot(text), text=text)
        except GpufenceError as error:
            return Agent(node, name, trouble=trouble_of(error))


def trouble_of(error: GpufenceError) -> str:
    """
    Say why an agent gave no snapshot, so that equal reasons read alike.
    """
    match error:
        case ForbiddenError():
            return _MAY_NOT_PROXY
        case NotFoundError():
            return "its pod is gone, or knows no snapshots"
        case ServerError():
            return f"it does not answer: {safe(error.failure.message)}"
        case ReplyError():
            return f"it refuses: {error.status} {safe(error.failure.message)}"
        case UnreachableError():
            return "it does not answer in time"
        case UnknownVersionError():
            return "it is newer than this plugin: upgrade the plugin"
        case InvalidError():
            return f"its answer is no snapshot: {safe(str(error))}"
        case _:
            return safe(str(error))


def node_of(pod: JsonObject) -> str:
    spec = as_object(pod.get("spec"), "spec")
    return as_text(spec.get("nodeName"), "spec.nodeName")


def is_ready(pod: JsonObject) -> bool:
    status = as_object(pod.get("status"), "status")
    return any(
        item.get("type") == "Ready" and item.get("status") == "True"
        for item in objects(status.get("conditions"), "status.conditions")
    )


def status_port(pod: JsonObject) -> int:
    """
    Return the port a pod's container calls `status`.
    """
    spec = as_object(pod.get("spec"), "spec")
    for container in objects(spec.get("containers"), "spec.containers"):
        for port in objects(container.get("ports"), "spec.containers[].ports"):
            number = port.get("containerPort")
            if port.get("name") == "status" and isinstance(number, int):
                return number
    return STATUS_PORT


def advice(error: GpufenceError) -> str:
    """
    Tell an error that ends the call, and what to do where the error does not say it itself.
    """
    text = safe(str(error))
    match error:
        case ForbiddenError():
            return f"{text}; ask your administrator, or name a namespace of yours with -n"
        case UnreachableError():
            return f"{text}; `kubectl version` shows whether the cluster can be reached"
        case _:
            return text


def _gpu_of(raw: JsonObject, nodes: Mapping[str, SeenNode]) -> GpuNode | None:
    node = nodes.get(node_of(raw))
    return None if node is None else node.gpu
