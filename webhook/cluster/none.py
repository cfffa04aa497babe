"""
No cluster at all, for development, for the command line's figures and for benchmarks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cluster.port import UnknownError
from webhook.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.nodes import GpuNode
    from kube import JsonObject


class WithoutCluster:
    """
    Knows no nodes, so that the default card of the settings counts, and no words of namespaces.
    """

    def __init__(self) -> None:
        self._fleet = Fleet(())

    def fleet(self) -> Fleet:
        return self._fleet

    def node(self, name: str) -> GpuNode | None:
        del name
        return None

    def namespace(self, name: str) -> Mapping[str, str] | None:
        del name
        return {}

    async def read_namespace(self, name: str) -> Mapping[str, str]:
        del name
        return {}

    async def read_pod(self, namespace: str, name: str) -> JsonObject:
        raise UnknownError("no-cluster", f"no cluster to ask for pod {namespace}/{name}")

    async def read_node(self, name: str) -> GpuNode | None:
        raise UnknownError("no-cluster", f"no cluster to ask for node {name}")

    def trouble(self) -> str | None:
        return None
