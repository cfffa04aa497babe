"""
The cluster as the hooks see it: GPU nodes and the fleet made of them, the annotations of
namespaces, what is said of owners, a pod when it is bound.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from gpufence import names
from gpufence.slices import newest, read_slice
from kube import ConflictError, KubeError, NotFoundError, core, group
from kube.informers import Informers, Interner, Store
from kube.informers.views import NamespaceView, name_of, view_namespace, view_node
from kube.watch import Source
from webhook.claims import CONFLICT, SLOW, UnknownError, ask_claims, ask_devices
from webhook.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpufence.cards import Card
    from gpufence.dialects import Units
    from gpufence.nodes import GpuNode
    from gpufence.pods import PodClaim
    from gpufence.shape import Object
    from gpufence.slices import PublishedCards
    from kube import Client, JsonObject
    from kube.watch import WatchSettings
    from webhook.claims import ClaimsFound
    from webhook.rewrite.annotations import OwnersAmounts

THREADS = 8
_MOST_WAITING = 128
LONGEST_REPLY_BYTES = 512 * 2**10
"""
Of a pod that is being bound; what is read of JSON takes up to thirty times as much, on each thread.
"""


class ClusterView:
    """
    What hooks see of a cluster: caches that answer at once, possibly with yesterday's truth, and
    questions that take a while, all of one binding together no longer than the deadline.

    By itself it is the view without a cluster: it knows no nodes, so that the default card of the
    settings counts, and no namespaces' annotations.
    """

    def __init__(self, deadline_seconds: float = 1.0) -> None:
        self.deadline_seconds = deadline_seconds
        self._fleet = Fleet(())

    def fleet(self) -> Fleet:
        """Return all GPU nodes that are known."""
        return self._fleet

    def node(self, name: str) -> GpuNode | None:
        """Return a GPU node, if it is known."""
        del name
        return None

    def namespace(self, name: str) -> Mapping[str, str] | None:
        """Return the annotations of a fenced namespace, if it is known."""
        del name
        return {}

    def amounts(self, namespace: str, pod: Object) -> OwnersAmounts | None:
        """Return the amounts that are said of a pod's owner, where they are to be applied."""
        del namespace, pod
        return None

    def follows(self, name: str) -> bool:
        """Return whether an optional collection has been read, and is followed."""
        del name
        return False

    async def ask(self, ask: Callable[[Client, float], JsonObject]) -> JsonObject:
        """Ask the API server anything, within so many seconds. Raises UnknownError."""
        del ask
        raise UnknownError("no-cluster", "no cluster to ask")

    async def read_namespace(self, name: str) -> Mapping[str, str]:
        """Ask for the annotations of a namespace. Raises UnknownError."""
        del name
        return {}

    async def read_pod(self, namespace: str, name: str) -> JsonObject:
        """Ask for a pod. Raises UnknownError."""
        raise UnknownError("no-cluster", f"no cluster to ask for pod {namespace}/{name}")

    async def read_node(self, name: str) -> GpuNode | None:
        """Ask for a node; None if it offers no GPU. Raises UnknownError."""
        raise UnknownError("no-cluster", f"no cluster to ask for node {name}")

    async def read_claims(self, namespace: str, claims: Sequence[PodClaim]) -> ClaimsFound:
        """Ask for the resource claims of a pod, or the templates they will be made of."""
        del namespace
        return dict.fromkeys([ref.name for ref in claims], "cannot be read without a cluster")

    async def read_devices(self, node: str) -> Mapping[str, Card]:
        """Ask for the cards that a node's DRA driver publishes; none where nobody answers."""
        del node
        return {}

    def trouble(self) -> str | None:
        """Return what is missing before the first answer can be good, or None."""
        return None


class OptionalSource(Protocol):
    """Objects that a cluster may have, and let us read."""

    name: str

    def source(self, interner: Interner) -> Source[Any]: ...

    @property
    def store(self) -> Store[Any]: ...


class AmountSource(OptionalSource, Protocol):
    """Those in which amounts of owners stand."""

    def of_pod(self, namespace: str, pod: Object) -> OwnersAmounts | None: ...


class LiveCluster(ClusterView):
    """Caches serve what they last knew for as long as the API server is away."""

    def __init__(
        self,
        client: Client,
        units: Units,
        deadline_seconds: float,
        watching: WatchSettings | None = None,
        sources: Sequence[AmountSource] = (),
        more: Sequence[OptionalSource] = (),
    ) -> None:
        super().__init__(deadline_seconds)
        self._client = client
        self._sources = sources
        self._more = more
        self._pool = ThreadPoolExecutor(THREADS, "api")
        self._waiting = 0
        interner = Interner()
        self._view_node = partial(view_node, defaults=units, interner=interner, labelled=True)
        self._cache = NodeCache()
        self.nodes = self._cache.nodes
        self.namespaces: Store[NamespaceView] = Store()
        self._informers = Informers(client, watching)
        self._follow(interner)

    def _follow(self, interner: Interner) -> None:
        """Follow what each admission may need, and what a cluster may have besides."""
        labelled = {"labelSelector": names.MODE}
        nodes = Source(path=core("nodes"), keep=self._view_node)
        namespaces = Source(path=core("namespaces"), keep=view_namespace, query=labelled)
        slices = Source(path=group(names.RESOURCE_GROUP, "resourceslices"), keep=keep_slice)
        published = self._cache.published
        follow = self._informers.follow
        follow("nodes", nodes, self.nodes)
        follow("namespaces", namespaces, self.namespaces)
        for each in (*self._sources, *self._more):
            follow(each.name, each.source(interner), each.store, optional=True, vital=False)
        follow("slices", slices, published, optional=True, vital=False)

    def start(self) -> None:
        self._informers.start()

    def stop(self) -> None:
        self._informers.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def fleet(self) -> Fleet:
        return self._cache.fleet()

    def node(self, name: str) -> GpuNode | None:
        return self._cache.node(name)

    def namespace(self, name: str) -> Mapping[str, str] | None:
        known = self.namespaces.get(name)
        return None if known is None else known.annotations

    def amounts(self, namespace: str, pod: Object) -> OwnersAmounts | None:
        found = (each.of_pod(namespace, pod) for each in self._sources)
        return next(filter(None, found), None)

    def follows(self, name: str) -> bool:
        return self._informers.absent(name) is None and self._informers.state(name).synced

    async def read_namespace(self, name: str) -> Mapping[str, str]:
        _, found = view_namespace(await self._get(core, "namespaces", name))
        return {} if found is None else found.annotations

    async def read_pod(self, namespace: str, name: str) -> JsonObject:
        return await self._get(core, "namespaces", namespace, "pods", name)

    async def read_node(self, name: str) -> GpuNode | None:
        _, found = self._view_node(await self._get(core, "nodes", name))
        return found if found is not None and (found.resources or found.cards) else None

    async def read_claims(self, namespace: str, claims: Sequence[PodClaim]) -> ClaimsFound:
        return await ask_claims(self._get, namespace, claims)

    async def read_devices(self, node: str) -> Mapping[str, Card]:
        return await ask_devices(self._get, node)

    def trouble(self) -> str | None:
        missing = self._informers.unsettled()
        return f"{' and '.join(missing)} have not been read yet" if missing else None

    def last_contacts(self, now: float) -> dict[str, float]:
        """Return when each watch last heard anything; a quiet one hears a bookmark each minute."""
        silences = self._informers.silences()
        return {name: round(now - seconds, 1) for name, seconds in silences.items()}

    async def _get(self, where: Callable[..., str], *segments: str, **query: str) -> JsonObject:
        return await self.ask(
            lambda client, seconds: client.get(where(*segments), query, timeout_seconds=seconds)
        )

    async def ask(self, ask: Callable[[Client, float], JsonObject]) -> JsonObject:
        if self._waiting >= _MOST_WAITING:
            raise UnknownError("busy", "too many questions wait for the API server")
        self._waiting += 1
        try:
            async with asyncio.timeout(self.deadline_seconds):
                return await asyncio.get_running_loop().run_in_executor(self._pool, self._ask, ask)
        except TimeoutError as error:
            raise UnknownError(
                SLOW, f"no answer of the API server within {self.deadline_seconds:g} s"
            ) from error
        finally:
            self._waiting -= 1

    def _ask(self, ask: Callable[[Client, float], JsonObject]) -> JsonObject:
        try:
            return ask(self._client, self.deadline_seconds)
        except NotFoundError as error:
            raise UnknownError("not-found", str(error)) from error
        except ConflictError as error:
            raise UnknownError(CONFLICT, str(error)) from error
        except KubeError as error:
            raise UnknownError("api-error", str(error)) from error
        except ValueError as error:
            raise UnknownError("bad-name", str(error)) from error


_LEAST_PAUSE_SECONDS: Final = 0.02
_PAUSES_PER_BUILD: Final = 20  # so that building never takes more than a twentieth of the time


class NodeCache:
    """
    The GPU `nodes` by name, and the fleet made of them; the cards of those that say nothing of
    theirs are taken from what their DRA drivers have `published`.

    The fleet is made anew when it is asked for after a change, but not again and again while a
    thousand nodes report: until the pause is over, the last one serves.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.nodes: Store[GpuNode] = Store(self._note_change)
        self.published: Store[PublishedCards] = Store(self._note_change)
        self._monotonic = monotonic
        self._fleet = Fleet(())
        self._changed = False
        self._next_build = 0.0

    def node(self, name: str) -> GpuNode | None:
        """Return a node that offers GPUs, by resources or by claims."""
        node = self.nodes.get(name)
        if node is None or node.resources or node.cards:
            return node
        published = [item for item in self.published.items.values() if item.node == name]
        return _with_cards(node, published) if published else None

    def fleet(self) -> Fleet:
        now = self._monotonic()
        if not self._changed or now < self._next_build:
            return self._fleet
        self._changed = False
        by_node: dict[str, list[PublishedCards]] = {}
        for item in self.published.items.values():
            by_node.setdefault(item.node, []).append(item)
        known = [
            _with_cards(node, by_node.get(node.name, ())) for node in self.nodes.items.values()
        ]
        self._fleet = Fleet([node for node in known if node.cards or node.resources])
        done = self._monotonic()
        self._next_build = done + max(_LEAST_PAUSE_SECONDS, (done - now) * _PAUSES_PER_BUILD)
        return self._fleet

    def _note_change(self) -> None:
        self._changed = True


def _with_cards(node: GpuNode, published: Sequence[PublishedCards]) -> GpuNode:
    """
    Fill in what slices alone say: what a claim without an amount gets, and the cards where nobody
    else tells them.
    """
    least = [item.least_bytes for item in published if item.least_bytes is not None]
    if least:
        node = node._replace(units=node.units._replace(claim_bytes=min(least)))
    return node if node.cards else node._replace(cards=tuple(newest(published).values()))


def keep_slice(item: JsonObject) -> tuple[str, PublishedCards | None]:
    """Remember the cards that a ResourceSlice of a GPU driver lists."""
    return name_of(item), read_slice(item)
