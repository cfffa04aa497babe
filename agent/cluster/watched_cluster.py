"""What an agent knows of its cluster: its pods, namespaces, the kill switch and its Node."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from agent.cluster.filter import filter_node, filter_pod
from gpufence import names
from gpufence.mode import highest_mode
from kube import core
from kube.informers import Informers, Store
from kube.informers.views import NamespaceView, view_namespace, view_policy
from kube.watch import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.cluster.settings import ClusterSettings
    from gpufence.mode import Mode
    from kube import Client, JsonObject
    from kube.informers import Health

T = TypeVar("T")

POLICY_KEYS: Final = (names.POLICY_MAX_MODE, names.POLICY_DEFAULT_MAX_MODE)
NO_TEXTS: Final = NamespaceView({}, {})
_NO_NODE: Final[JsonObject] = {}


class WatchedCluster:
    """Namespaces and the kill switch are read as the agent itself, pods and Node as it acts."""

    def __init__(
        self,
        client: Client,
        settings: ClusterSettings,
        on_pods: Callable[[], None],
        on_node: Callable[[], None],
    ) -> None:
        self._settings = settings
        self.pods: Store[JsonObject] = Store(on_pods)
        self.namespaces: Store[NamespaceView] = Store()
        self._policies: Store[Mapping[str, str]] = Store()
        self.nodes: Store[JsonObject] = Store(on_node)
        self._informers = Informers(client, settings.watching, expected=("pods", "node"))
        fenced = _source(core("namespaces"), view_namespace, labelSelector=names.MODE)
        self._informers.follow("namespaces", fenced, self.namespaces)
        path = core("namespaces", settings.system_namespace, "configmaps")
        keep = partial(view_policy, keys=POLICY_KEYS)
        policy = _source(path, keep, fieldSelector=f"metadata.name={names.POLICY_CONFIGMAP}")
        self._informers.follow("policy", policy, self._policies)

    @property
    def node(self) -> JsonObject:
        return self.nodes.get(self._settings.node) or _NO_NODE

    @property
    def complete(self) -> bool:
        """Return whether everything has been read once, so that no part is taken for absent."""
        stores = (self.pods, self.namespaces, self._policies, self.nodes)
        return all(store.known for store in stores)

    @property
    def highest(self) -> Mode:
        """Return what the kill switch allows; until it was read, and without it, no evictions."""
        return highest_mode(self._policies.get(names.POLICY_CONFIGMAP))

    def health(self) -> Health:
        """Return how far what is known may be acted on."""
        return self._informers.health()

    def start(self) -> None:
        self._informers.start()

    def stop(self) -> None:
        self._informers.stop()

    def follow_node(self, acting: Client) -> None:
        """Follow the Node and its pods, as soon as the identity to act by is known."""
        name = self._settings.node
        pods = _source(core("pods"), filter_pod, fieldSelector=f"spec.nodeName={name}")
        node = _source(core("nodes"), filter_node, fieldSelector=f"metadata.name={name}")
        self._informers.follow("pods", pods, self.pods, client=acting)
        self._informers.follow("node", node, self.nodes, client=acting)


def _source(path: str, keep: Callable[[JsonObject], T], **query: str) -> Source[T]:
    return Source(path=path, keep=keep, query=query, from_cache=True)
