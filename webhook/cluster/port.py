"""
The cluster as the hooks see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.nodes import GpuNode
    from kube import JsonObject
    from webhook.fleet import Fleet


class UnknownError(GpufenceError):
    """
    Raised when the cluster cannot be asked, does not answer in time, or says no.

    `reason` is a word for the metrics.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ClusterView(Protocol):
    """
    Caches that answer at once, possibly with yesterday's truth, and questions that take a while.
    """

    def fleet(self) -> Fleet:
        """
        Return all GPU nodes that are known.
        """
        ...

    def node(self, name: str) -> GpuNode | None:
        """
        Return a GPU node, if it is known.
        """
        ...

    def namespace(self, name: str) -> Mapping[str, str] | None:
        """
        Return the annotations of a fenced namespace, if it is known.
        """
        ...

    async def read_namespace(self, name: str) -> Mapping[str, str]:
        """
        Ask for the annotations of a namespace. Raises UnknownError.
        """
        ...

    async def read_pod(self, namespace: str, name: str) -> JsonObject:
        """
        Ask for a pod. Raises UnknownError.
        """
        ...

    async def read_node(self, name: str) -> GpuNode | None:
        """
        Ask for a node; None if it offers no GPU. Raises UnknownError.
        """
        ...

    def trouble(self) -> str | None:
        """
        Say what is missing before the first answer can be good, or None.
        """
        ...
