"""The four watches of an agent, and how far they can be trusted."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent.cluster.filter import filter_namespace, filter_node, filter_pod, filter_policy
from gpufence import names
from gpufence.mode import highest_mode
from kube import Reflector, Source, core
from kube.informers import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.cluster.filter import NamespaceTexts
    from agent.cluster.settings import ClusterSettings
    from gpufence.mode import Mode
    from kube import Client, JsonObject

_WATCHES: Final = 4
_NO_NODE: Final[JsonObject] = {}


class WatchHealth(NamedTuple):
    """
    `silence_seconds` is None before the first word; `trouble` is what the watches complain of.
    """

    synced: bool
    fresh: bool
    silence_seconds: float | None
    trouble: str


class Watches:
    """
    Namespaces and the kill switch are read as the agent itself, pods and Node as whoever it acts.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        on_node: Callable[[], None],
        on_pods: Callable[[], None] | None = None,
    ) -> None:
        self._settings = settings
        self._reflectors: dict[str, Reflector[Any]] = {}
        self._pods: Store[JsonObject] = Store(on_pods)
        self._namespaces: Store[NamespaceTexts] = Store()
        self._policies: Store[Mapping[str, str]] = Store()
        self.nodes: Store[JsonObject] = Store(on_node)

    @property
    def pods(self) -> Mapping[str, JsonObject]:
        return self._pods.items

    @property
    def namespaces(self) -> Mapping[str, NamespaceTexts]:
        return self._namespaces.items

    @property
    def node(self) -> JsonObject:
        return self.nodes.items.get(self._settings.node, _NO_NODE)

    @property
    def complete(self) -> bool:
        """Return whether everything has been read once, so that no part is taken for absent."""
        return (
            self._pods.known
            and self._namespaces.known
            and self._policies.known
            and self.nodes.known
        )

    @property
    def highest(self) -> Mode:
        """
        Return what the kill switch allows; until it has been read, and without it, no evictions.
        """
        return highest_mode(self._policies.items.get(names.POLICY_CONFIGMAP))

    def start_own(self, client: Client) -> None:
        follow = partial(self._follow, client)
        follow(
            "namespaces",
            self._namespaces,
            Source(
                path=core("namespaces"),
                keep=filter_namespace,
                query={"labelSelector": names.MODE},
                from_cache=True,
            ),
        )
        follow(
            "policy",
            self._policies,
            Source(
                path=core("namespaces", self._settings.system_namespace, "configmaps"),
                keep=filter_policy,
                query={"fieldSelector": f"metadata.name={names.POLICY_CONFIGMAP}"},
                from_cache=True,
            ),
        )

    def start_node(self, client: Client) -> None:
        node = self._settings.node
        follow = partial(self._follow, client)
        follow(
            "pods",
            self._pods,
            Source(
                path=core("pods"),
                keep=filter_pod,
                query={"fieldSelector": f"spec.nodeName={node}"},
                from_cache=True,
            ),
        )
        follow(
            "node",
            self.nodes,
            Source(
                path=core("nodes"),
                keep=filter_node,
                query={"fieldSelector": f"metadata.name={node}"},
                from_cache=True,
            ),
        )

    def stop(self) -> None:
        for reflector in list(self._reflectors.values()):
            reflector.stop()

    def trust(self) -> WatchHealth:
        """Return how far what is known may be acted on."""
        now = time.monotonic()
        states = {kind: each.state for kind, each in list(self._reflectors.items())}
        synced = len(states) == _WATCHES and all(state.synced for state in states.values())
        heard = [
            now - state.last_contact for state in states.values() if state.last_contact is not None
        ]
        outage, silence = self._settings.outage_seconds, self._settings.silence_seconds
        fresh = synced and all(state.is_fresh(now, outage, silence) for state in states.values())
        return WatchHealth(
            synced=synced,
            fresh=fresh,
            silence_seconds=max(heard, default=None),
            trouble="; ".join(
                f"{kind}: {state.last_error}" for kind, state in states.items() if state.failing
            ),
        )

    def _follow(self, client: Client, kind: str, cache: Store[Any], source: Source[Any]) -> None:
        reflector: Reflector[Any] = Reflector(client, source, cache, self._settings.watching)
        self._reflectors[kind] = reflector
        reflector.start()
