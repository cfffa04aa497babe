"""
The cluster as the hooks see it: GPU nodes, the annotations of namespaces, a pod when it is bound.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol

from gpufence import names
from kube import Cache, KubeError, NotFoundError, Reflector, Source, core, group
from kube.optional import OptionalWatch
from webhook.caches import (
    NodeCache,
    SparseCache,
    keep_namespace,
    keep_node,
    keep_profile,
    keep_slice,
    profile_of,
)
from webhook.claims import UnknownError, ask_claims, ask_devices
from webhook.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpufence.cards import Card
    from gpufence.dialects import Units
    from gpufence.need.applied import AppliedProfile
    from gpufence.nodes import GpuNode
    from gpufence.pods import PodClaim
    from gpufence.shape import Object
    from kube import Client, JsonObject, WatchSettings
    from webhook.caches import NamedAnnotations, NamedNode
    from webhook.claims import ClaimsFound

THREADS = 8
_MOST_WAITING = 128
LONGEST_REPLY_BYTES = 512 * 2**10
"""
Of a pod that is being bound; what is read of JSON takes up to thirty times as much, on each thread.
"""


class ClusterView(Protocol):
    """
    Caches that answer at once, possibly with yesterday's truth, and questions that take a while:
    all of one binding together no longer than the deadline.
    """

    deadline_seconds: float

    def fleet(self) -> Fleet:
        """Return all GPU nodes that are known."""
        ...

    def node(self, name: str) -> GpuNode | None:
        """Return a GPU node, if it is known."""
        ...

    def namespace(self, name: str) -> Mapping[str, str] | None:
        """Return the annotations of a fenced namespace, if it is known."""
        ...

    def profile(self, namespace: str, pod: Object) -> AppliedProfile | None:
        """Return the profile of a pod's owner, where there is one that is to be applied."""
        ...

    async def read_namespace(self, name: str) -> Mapping[str, str]:
        """Ask for the annotations of a namespace. Raises UnknownError."""
        ...

    async def read_pod(self, namespace: str, name: str) -> JsonObject:
        """Ask for a pod. Raises UnknownError."""
        ...

    async def read_node(self, name: str) -> GpuNode | None:
        """Ask for a node; None if it offers no GPU. Raises UnknownError."""
        ...

    async def read_claims(self, namespace: str, claims: Sequence[PodClaim]) -> ClaimsFound:
        """Ask for the resource claims of a pod, or the templates they will be made of."""
        ...

    async def read_devices(self, node: str) -> Mapping[str, Card]:
        """Ask for the cards that a node's DRA driver publishes; none where nobody answers."""
        ...

    def trouble(self) -> str | None:
        """Return what is missing before the first answer can be good, or None."""
        ...


class WithoutCluster:
    """
    Knows no nodes, so that the default card of the settings counts, and no namespaces' annotations.
    """

    def __init__(self) -> None:
        self.deadline_seconds = 1.0
        self._fleet = Fleet(())

    def fleet(self) -> Fleet:
        return self._fleet

    def node(self, name: str) -> GpuNode | None:
        del name
        return None

    def namespace(self, name: str) -> Mapping[str, str] | None:
        del name
        return {}

    def profile(self, namespace: str, pod: Object) -> AppliedProfile | None:
        del namespace, pod
        return None

    async def read_namespace(self, name: str) -> Mapping[str, str]:
        del name
        return {}

    async def read_pod(self, namespace: str, name: str) -> JsonObject:
        raise UnknownError("no-cluster", f"no cluster to ask for pod {namespace}/{name}")

    async def read_node(self, name: str) -> GpuNode | None:
        raise UnknownError("no-cluster", f"no cluster to ask for node {name}")

    async def read_claims(self, namespace: str, claims: Sequence[PodClaim]) -> ClaimsFound:
        del namespace
        return dict.fromkeys([ref.name for ref in claims], "cannot be read without a cluster")

    async def read_devices(self, node: str) -> Mapping[str, Card]:
        del node
        return {}

    def trouble(self) -> str | None:
        return None


class LiveCluster:
    """Caches serve what they last knew for as long as the API server is away."""

    def __init__(
        self,
        client: Client,
        units: Units,
        deadline_seconds: float,
        watching: WatchSettings | None = None,
    ) -> None:
        self._client = client
        self._units = units
        self.deadline_seconds = deadline_seconds
        self._pool = ThreadPoolExecutor(THREADS, "api")
        self._waiting = 0
        self.nodes = NodeCache()
        self.namespaces: Cache[Mapping[str, str]] = Cache()
        self.profiles: SparseCache[AppliedProfile] = SparseCache()
        self._profiles_watch = OptionalWatch(
            client,
            Source(path=group(names.PROFILE_GROUP, names.PROFILES), keep=keep_profile),
            self.profiles,
            watching,
        )
        self._slices_watch = OptionalWatch(
            client,
            Source(path=group(names.RESOURCE_GROUP, "resourceslices"), keep=keep_slice),
            self.nodes.published,
            watching,
        )
        self._reflectors: dict[str, Reflector[NamedNode] | Reflector[NamedAnnotations]] = {
            "nodes": Reflector(
                client,
                Source(path=core("nodes"), keep=partial(keep_node, defaults=units)),
                self.nodes,
                watching,
            ),
            "namespaces": Reflector(
                client,
                Source(
                    path=core("namespaces"),
                    keep=keep_namespace,
                    query={"labelSelector": names.MODE},
                ),
                self.namespaces,
                watching,
            ),
        }

    def start(self) -> None:
        for reflector in self._reflectors.values():
            reflector.start()
        self._profiles_watch.start()
        self._slices_watch.start()

    def stop(self) -> None:
        for reflector in self._reflectors.values():
            reflector.stop()
        self._profiles_watch.stop()
        self._slices_watch.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def fleet(self) -> Fleet:
        return self.nodes.fleet()

    def node(self, name: str) -> GpuNode | None:
        return self.nodes.node(name)

    def namespace(self, name: str) -> Mapping[str, str] | None:
        return self.namespaces.items.get(name)

    def profile(self, namespace: str, pod: Object) -> AppliedProfile | None:
        profiles = self.profiles.items
        return profiles.get(profile_of(namespace, pod)) if profiles else None

    async def read_namespace(self, name: str) -> Mapping[str, str]:
        return keep_namespace(await self._get(core, "namespaces", name))[1]

    async def read_pod(self, namespace: str, name: str) -> JsonObject:
        return await self._get(core, "namespaces", namespace, "pods", name)

    async def read_node(self, name: str) -> GpuNode | None:
        found = keep_node(await self._get(core, "nodes", name), self._units)[1]
        return found if found is not None and (found.resources or found.cards) else None

    async def read_claims(self, namespace: str, claims: Sequence[PodClaim]) -> ClaimsFound:
        return await ask_claims(self._get, namespace, claims)

    async def read_devices(self, node: str) -> Mapping[str, Card]:
        return await ask_devices(self._get, node)

    def trouble(self) -> str | None:
        missing = [kind for kind, each in self._reflectors.items() if not each.state.synced]
        if not self._profiles_watch.settled:
            missing.append("profiles")
        if not self._slices_watch.settled:
            missing.append("slices")
        return f"{' and '.join(missing)} have not been read yet" if missing else None

    def silence_seconds(self) -> dict[str, float]:
        """
        Return for how long each watch has heard nothing; a quiet one hears a bookmark each minute.
        """
        now = time.monotonic()
        heard = {kind: each.state.last_contact for kind, each in self._reflectors.items()}
        return {kind: round(now - last, 1) for kind, last in heard.items() if last is not None}

    async def _get(self, where: Callable[..., str], *segments: str, **query: str) -> JsonObject:
        if self._waiting >= _MOST_WAITING:
            raise UnknownError("busy", "too many questions wait for the API server")
        self._waiting += 1
        try:
            async with asyncio.timeout(self.deadline_seconds):
                return await asyncio.get_running_loop().run_in_executor(
                    self._pool, self._ask, where, segments, query
                )
        except TimeoutError as error:
            raise UnknownError(
                "api-slow", f"no answer of the API server within {self.deadline_seconds:g} s"
            ) from error
        finally:
            self._waiting -= 1

    def _ask(
        self, where: Callable[..., str], segments: tuple[str, ...], query: Mapping[str, str]
    ) -> JsonObject:
        try:
            return self._client.get(where(*segments), query, timeout_seconds=self.deadline_seconds)
        except NotFoundError as error:
            raise UnknownError("not-found", str(error)) from error
        except KubeError as error:
            raise UnknownError("api-error", str(error)) from error
        except ValueError as error:
            raise UnknownError("bad-name", str(error)) from error
