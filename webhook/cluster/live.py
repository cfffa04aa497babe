"""
A real cluster: two watches that fill the caches, and a few threads that ask.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from gpufence import names
from kube import Cache, KubeError, NotFoundError, Reflector, Source, core
from webhook.cluster.caches import NodeCache, keep_namespace, keep_node
from webhook.cluster.port import UnknownError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.dialects import Units
    from gpufence.nodes import GpuNode
    from kube import Client, JsonObject, WatchSettings
    from webhook.cluster.caches import NamedAnnotations, NamedNode
    from webhook.fleet import Fleet

THREADS = 8
_MOST_WAITING = 128


class LiveCluster:
    """
    Caches serve what they last knew for as long as the API server is away.
    """

    def __init__(
        self,
        client: Client,
        units: Units,
        deadline_seconds: float,
        watching: WatchSettings | None = None,
    ) -> None:
        self._client = client
        self._units = units
        self._deadline_seconds = deadline_seconds
        self._pool = ThreadPoolExecutor(THREADS, "api")
        self._waiting = 0
        self.nodes = NodeCache()
        self.namespaces: Cache[Mapping[str, str]] = Cache()
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

    def stop(self) -> None:
        for reflector in self._reflectors.values():
            reflector.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def fleet(self) -> Fleet:
        return self.nodes.fleet()

    def node(self, name: str) -> GpuNode | None:
        return self.nodes.items.get(name)

    def namespace(self, name: str) -> Mapping[str, str] | None:
        return self.namespaces.items.get(name)

    async def read_namespace(self, name: str) -> Mapping[str, str]:
        return keep_namespace(await self._get("namespaces", name))[1]

    async def read_pod(self, namespace: str, name: str) -> JsonObject:
        return await self._get("namespaces", namespace, "pods", name)

    async def read_node(self, name: str) -> GpuNode | None:
        return keep_node(await self._get("nodes", name), self._units)[1]

    def trouble(self) -> str | None:
        missing = [kind for kind, each in self._reflectors.items() if not each.state.synced]
        return f"{' and '.join(missing)} have not been read yet" if missing else None

    def silence_seconds(self) -> dict[str, float]:
        """
        Tell for how long each watch has heard nothing; a quiet one hears a bookmark each minute.
        """
        now = time.monotonic()
        heard = {kind: each.state.last_contact for kind, each in self._reflectors.items()}
        return {kind: round(now - last, 1) for kind, last in heard.items() if last is not None}

    async def _get(self, *segments: str) -> JsonObject:
        if self._waiting >= _MOST_WAITING:
            raise UnknownError("busy", "too many questions wait for the API server")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._deadline_seconds):
                return await asyncio.get_running_loop().run_in_executor(
                    self._pool, self._ask, segments
                )
        except TimeoutError as error:
            raise UnknownError(
                "api-slow", f"no answer of the API server within {self._deadline_seconds:g} s"
            ) from error
        finally:
            self._waiting -= 1

    def _ask(self, segments: tuple[str, ...]) -> JsonObject:
        try:
            return self._client.get(core(*segments), timeout_seconds=self._deadline_seconds)
        except NotFoundError as error:
            raise UnknownError("not-found", str(error)) from error
        except KubeError as error:
            raise UnknownError("api-error", str(error)) from error
        except ValueError as error:
            raise UnknownError("bad-name", str(error)) from error
