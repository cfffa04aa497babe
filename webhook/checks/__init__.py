"""
What a pod may have to pass beside what its own words say: one folder each, and one row in
`webhook.program`, which alone knows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from webhook.hooks import PodCheck

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.exposition import Metric
    from webhook.cluster import LiveCluster, OptionalSource


class OptionalCheck(PodCheck, Protocol):
    """A row of the program's list is a class of such, made of the policy."""

    @property
    def follows(self) -> OptionalSource:
        """Return what the cluster is to follow for it."""
        ...

    def begin(self, cluster: LiveCluster, namespace: str) -> None:
        """Work for a cluster that follows that; `namespace` is where gpufence is installed."""
        ...

    def families(self) -> Iterable[Metric]:
        """Return its metrics."""
        ...
