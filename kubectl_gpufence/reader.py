"""
Reading the cluster: objects from the API server, and pages of agents and controller through its
pod proxy, or at addresses of their own where they are no pods or it cannot reach them.

GpufenceError
├── AddressError     nothing answers there as an agent or a controller would: name another address
└── MissingError     what was named is not there: name something else
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from gpufence import names
from gpufence.errors import GpufenceError, InvalidError
from gpufence.names import SYSTEM_NAMESPACE, WEBHOOK_CONFIGURATION
from gpufence.setting_kinds import read_agents, read_url
from gpufence.shape import as_object, as_text, objects
from gpufence.snapshot import CARDS_AND_PODS
from gpufence.text import printable
from kube import (
    ForbiddenError,
    KubeError,
    NotFoundError,
    connect,
    core,
    fetch_page,
    group,
    read_client_settings,
)
from kube.lists import collect_pages
from kubectl_gpufence.agents import (
    MOST_ASKED,
    SNAPSHOT,
    AgentPatience,
    AgentPods,
    ask_agents,
)
from kubectl_gpufence.arguments import AGENTS, CONTROLLER
from kubectl_gpufence.cluster_view import (
    ClusterAnswers,
    SeenNode,
    SeenObjects,
    cluster_of,
    see_node,
)
from kubectl_gpufence.pods import (
    AlikePlans,
    StatusPod,
    node_of,
    read_event,
    read_status_pod,
    see_pod,
    slim,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gpufence.snapshot import Snapshot, SnapshotCut
    from kube import Client, JsonObject
    from kubectl_gpufence.cluster_view import NodeAgent
    from kubectl_gpufence.pods import SeenEvent, SeenPod


_MOST_BYTES: Final = 64 * 2**20
T = TypeVar("T")
R = TypeVar("R")
Query = dict[str, str | int]
AGENT_LABEL: Final = "app.kubernetes.io/name=gpufence-agent"
WEBHOOK_LABEL: Final = "app.kubernetes.io/name=gpufence-webhook"
CONFIGURATION: Final = group(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", WEBHOOK_CONFIGURATION
)
CONTROLLER_LABEL: Final = f"app.kubernetes.io/name={names.CONTROLLER}"
NO_CONTROLLER: Final = "no controller runs in this cluster: no owner is released"
NO_AGENTS: Final = "no agent runs in this cluster: nothing measured is shown"
_AGENT_SECONDS: Final = 5.0
LIVING: Final = "status.phase!=Succeeded,status.phase!=Failed"


class AddressError(GpufenceError):
    """Raised where an address does not answer, or refuses."""


@dataclass(frozen=True, slots=True)
class Direct:
    """The addresses of agents, by node, and that of the controller, empty without one."""

    agents: Mapping[str, str] = field(default_factory=dict)
    controller: str = ""


def addresses(call: argparse.Namespace, environ: Mapping[str, str]) -> Direct:
    """
    Read what a call, or else the environment, says of addresses.

    Raises:
        InvalidError: one of them cannot be read.
    """
    said, variable = call.agents, environ.get(AGENTS, "")
    field_of = "--agents" if said else AGENTS
    listed = said or [item for item in variable.split(",") if item.strip()]
    controller, at = call.controller or "", "--controller"
    if not controller:
        controller, at = environ.get(CONTROLLER, ""), CONTROLLER
    return Direct(read_agents(listed, field_of), read_url(controller, at) if controller else "")


def page(url: str, timeout_seconds: float, query: Mapping[str, str | int] | None = None) -> str:
    """
    Read a page that stands at an address, past any proxy.

    Raises:
        AddressError: nobody answers there, or not with a page.
    """
    try:
        return fetch_page(url, timeout_seconds, _MOST_BYTES, query)
    except KubeError as error:
        raise AddressError(printable(str(error))) from error


class MissingError(GpufenceError):
    """Raised for a pod, a node or an agent that somebody named and that is not there."""


@dataclass(frozen=True, slots=True)
class ClusterReader:
    """
    One API server; whoever is behind its proxy gets `agent_seconds`, for a dead node answers
    nobody, and one of many agents no more than `patience` has. `progress` is told what is being
    waited for; `over` says whether nobody waits for agents any longer.
    """

    client: Client
    agent_seconds: float
    progress: Callable[[str], None]
    direct: Direct = field(default_factory=Direct)
    patience: AgentPatience = field(default_factory=AgentPatience)
    over: Callable[[], bool] = lambda: False

    def together(self, ask: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Ask several at the same time; answers come in the order of the questions."""
        with ThreadPoolExecutor(MOST_ASKED, thread_name_prefix="ask") as pool:
            return list(pool.map(ask, items))

    def listed(
        self, path: str, keep: Callable[[JsonObject], T], query: Query | None = None
    ) -> list[T]:
        """Read a whole collection, each object projected on the way."""
        page = self.client.page
        return collect_pages(lambda asked: page(path, keep, asked), path, query).items

    def nodes(self) -> tuple[dict[str, SeenNode], str]:
        """Read all Nodes, or say why they cannot be read."""
        try:
            nodes = self.listed(core("nodes"), see_node)
        except ForbiddenError:
            return {}, "you may not list nodes: units and cards are taken from the pods' own plans"
        return {node.name: node for node in nodes}, ""

    def node(self, name: str) -> SeenNode | None:
        """Read one Node; None where it is gone or hidden."""
        try:
            return see_node(self.client.get(core("nodes", name)))
        except (NotFoundError, ForbiddenError):
            return None

    def require_node(self, name: str) -> None:
        """Raise MissingError for a node that is not there."""
        try:
            self.client.get(core("nodes", name))
        except ForbiddenError:
            return
        except NotFoundError as error:
            near = get_close_matches(name, self.nodes()[0], n=1)
            remedy = f"did you mean {near[0]}?" if near else "`kubectl get nodes` lists them"
            raise MissingError(f"there is no node {name}; {remedy}") from error

    def pods(
        self, namespace: str, node: str, nodes: Mapping[str, SeenNode]
    ) -> tuple[list[SeenPod], list[str]]:
        """
        Read the living pods that have to do with GPU memory, and what is wrong with those that
        cannot be read; no namespace means all.
        """
        notes: list[str] = []
        plans = AlikePlans()

        def keep(raw: JsonObject) -> SeenPod | None:
            try:
                its_node = nodes.get(node_of(raw))
                pod = see_pod(raw, None if its_node is None else its_node.gpu, plans=plans)
            except InvalidError as error:
                notes.append(f"a pod cannot be read: {error}")
                return None
            return slim(pod) if pod.uses_gpu else None

        chosen = f"{LIVING},spec.nodeName={node}" if node else LIVING
        path = core("namespaces", namespace, "pods") if namespace else core("pods")
        pods = self.listed(path, keep, {"fieldSelector": chosen})
        return [pod for pod in pods if pod is not None], notes

    def events(self, namespace: str, chosen: str) -> list[SeenEvent] | None:
        """Read Events of a namespace, or of all, by a field selector; None where that is denied."""
        path = core("namespaces", namespace, "events") if namespace else core("events")
        try:
            return self.listed(path, read_event, {"fieldSelector": chosen})
        except ForbiddenError:
            return None

    def home(self) -> str:
        """Return the namespace that gpufence is in, as its hooks say; the usual one else."""
        try:
            return home_of(self.client.get(CONFIGURATION))
        except (NotFoundError, ForbiddenError):
            return SYSTEM_NAMESPACE

    def ours(self, label: str) -> tuple[list[StatusPod] | None, str]:
        """
        List pods of ours, and the namespace they are in; None where they are hidden. Who has them
        in the usual one asks nothing else.
        """
        pods = self._labelled(SYSTEM_NAMESPACE, label)
        if pods or (home := self.home()) == SYSTEM_NAMESPACE:
            return pods, SYSTEM_NAMESPACE
        return self._labelled(home, label), home

    def _labelled(self, namespace: str, label: str) -> list[StatusPod] | None:
        path = core("namespaces", namespace, "pods")
        try:
            return self.listed(path, read_status_pod, {"labelSelector": label})
        except ForbiddenError:
            return None

    def agent_pods(self, node: str = "") -> AgentPods:
        """Find the pods of all agents, or of those on one node, or say why there are none."""
        if self.direct.agents:
            pods = [StatusPod(url, name) for name, url in self.direct.agents.items()]
            return AgentPods([pod for pod in pods if node in ("", pod.node)])
        found, home = self.ours(AGENT_LABEL)
        if found is None:
            note = f"you may not list pods in {home}, where the agents are: none is asked"
            return AgentPods((), note, hidden=True, home=home)
        chosen = [pod for pod in found if node in ("", pod.node)]
        return AgentPods(chosen, "" if found else NO_AGENTS, home=home)

    def agents(
        self, pods: Iterable[StatusPod], cut: SnapshotCut | None = None
    ) -> tuple[NodeAgent, ...]:
        """Ask these agents for their snapshots, or for what a cut leaves of them."""
        page_of = partial(self.ask_agent, path=SNAPSHOT, query=cut and cut.query)
        return ask_agents(pods, page_of, self.progress, cut)

    def snapshots(
        self, nodes: Collection[str], cut: SnapshotCut
    ) -> tuple[Mapping[str, Snapshot], Sequence[str]]:
        """Ask the agents of these nodes, and return with their snapshots who does not answer."""
        pods, note, *_ = self.agent_pods()
        answers = self.agents([pod for pod in pods if pod.node in nodes], cut)
        found = cluster_of(SeenObjects({}, (), notes=(note,) if note else ()), answers)
        return found.snapshots, found.notes

    def objects_of_pods(
        self, namespace: str, node: str, agents: AgentPods | None = None
    ) -> SeenObjects:
        """Read the pods of a namespace, or of all, and find the agents of the nodes they run on."""
        agent_pods, note, hidden, _ = agents or self.agent_pods(node)
        nodes, no_nodes = self.nodes()
        pods, wrong = self.pods(namespace, node, nodes)
        if namespace:
            used = {pod.node for pod in pods}
            agent_pods = [pod for pod in agent_pods if pod.node in used]
        notes = tuple(filter(None, (no_nodes, note, *wrong)))
        return SeenObjects(nodes, tuple(agent_pods), tuple(pods), notes, may_ask=not hidden)

    def objects_of_nodes(self, node: str, agents: AgentPods | None = None) -> SeenObjects:
        """Read about one node and its cards, or about all, and find their agents."""
        agent_pods, note, hidden, _ = agents or self.agent_pods(node)
        nodes, no_nodes = self.nodes()
        chosen = {name: item for name, item in nodes.items() if node in ("", name)}
        notes = tuple(filter(None, (no_nodes, note)))
        return SeenObjects(chosen, tuple(agent_pods), notes=notes, may_ask=not hidden)

    def cluster_of_pods(self, namespace: str, node: str) -> ClusterAnswers:
        """Ask about the pods of a namespace, or of all, and about the nodes they run on."""
        agents = self.agent_pods(node)
        read = partial(self.objects_of_pods, namespace, node, agents)
        if not namespace:
            return self._cluster(agents, read, CARDS_AND_PODS)
        objects = read()  # first: only the nodes of its pods are asked about
        return cluster_of(objects, self.agents(objects.agent_pods, CARDS_AND_PODS))

    def cluster_of_nodes(self, node: str, cut: SnapshotCut) -> ClusterAnswers:
        """Ask about one node and its cards, or about all."""
        agents = self.agent_pods(node)
        return self._cluster(agents, partial(self.objects_of_nodes, node, agents), cut)

    def ask_agent(self, pod: StatusPod, path: str, query: Query | None = None) -> str:
        """
        Read a page of an agent, and wait no longer than agents take.

        Raises:
            GpufenceError: it says nothing, or nobody waits for it any longer.
        """
        if self.over():
            raise MissingError("nobody waits for it any longer")
        most = self.agent_seconds
        return self.patience.ask(lambda seconds: self.proxied(pod, path, min(seconds, most), query))

    def proxied(
        self, pod: StatusPod, path: str, seconds: float | None = None, query: Query | None = None
    ) -> str:
        """Read a page of a pod's status port through the API server, or at its own address."""
        seconds = self.agent_seconds if seconds is None else seconds
        if pod.name in self.direct.agents.values():
            return page(f"{pod.name}{path}", seconds, query)
        target = f"{pod.name}:{pod.port}"
        at = core("namespaces", pod.namespace, "pods", target, "proxy")
        return self.client.text(f"{at}{path}", query, timeout_seconds=seconds)

    def controller_pages(self, path: str) -> tuple[list[str | GpufenceError], str]:
        """Read a page of each ready controller, or why not; or say why there is none to ask."""
        if self.direct.controller:
            url = f"{self.direct.controller}{path}"
            return [_page_or_error(lambda: page(url, self.agent_seconds))], ""
        pods, home = self.ours(CONTROLLER_LABEL)
        if pods is None:
            return [], f"you may not list pods in {home}, where the controller is"
        ready = [pod for pod in pods if pod.ready]
        if not ready:
            return [], "no controller is ready: no owner is released" if pods else NO_CONTROLLER
        read = partial(self.proxied, path=path)
        return self.together(lambda pod: _page_or_error(lambda: read(pod)), ready), ""

    def _cluster(
        self, agents: AgentPods, read: Callable[[], SeenObjects], cut: SnapshotCut
    ) -> ClusterAnswers:
        """Ask these agents while the API server lists everything else."""
        with ThreadPoolExecutor(1, thread_name_prefix="agents") as beside:
            asked = beside.submit(self.agents, agents.pods, cut)
            objects = read()
            return cluster_of(objects, asked.result())


def _page_or_error(ask: Callable[[], str]) -> str | GpufenceError:
    try:
        return ask()
    except GpufenceError as error:
        return error


def home_of(configuration: Mapping[str, object]) -> str:
    """Return the namespace of the Service that the hooks call; the usual one where none is."""
    for hook in objects(configuration.get("webhooks"), "webhooks"):
        client = as_object(hook.get("clientConfig"), "clientConfig")
        service = as_object(client.get("service"), "clientConfig.service")
        if namespace := as_text(service.get("namespace"), "clientConfig.service.namespace"):
            return namespace
    return SYSTEM_NAMESPACE


@contextmanager
def reading(
    call: argparse.Namespace, environ: Mapping[str, str], progress: Callable[[str], None]
) -> Iterator[ClusterReader]:
    """
    Connect to the cluster that a call is about, found as kubectl does, with as many connections as
    are asked over at the same time.

    Raises:
        InvalidError: an address that it names cannot be read.
        KubeError: there is no cluster, or it does not answer, or refuses what all else stands on.
    """
    direct = addresses(call, environ)
    settings = read_client_settings(environ, user_agent="kubectl-gpufence")
    settings = replace(
        settings,
        kubeconfig=call.kubeconfig or settings.kubeconfig,
        context=call.context,
        connect_timeout_seconds=min(settings.connect_timeout_seconds, call.request_timeout),
        reply_timeout_seconds=call.request_timeout,
        pool_connections=MOST_ASKED,
    )
    with connect(settings) as client:
        seconds = min(_AGENT_SECONDS, call.request_timeout)
        yield ClusterReader(client, seconds, progress, direct)
