"""
What a cluster may do without: one folder each, and one row in `controller.program`, which alone
knows them. Here is what such a row consists of, and what each keeper is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from controller.cluster.cluster import Cluster
    from controller.loop import AgentSnapshots, LastPass, Leadership
    from controller.settings import ControllerSettings
    from kube import Client
    from service.exposition import Family
    from service.status_server import PageQuestion, StatusReply


class Core(NamedTuple):
    """
    The program without its keepers: the owners that `last` has seen, and the means to see more and
    to act while the Lease is ours.
    """

    settings: ControllerSettings
    client: Client
    cluster: Cluster
    agents: AgentSnapshots
    lease: Leadership
    last: Callable[[], LastPass | None]


class Keeper:
    """
    Something that a cluster may do without, beside the releases: it waits for none of them, and
    none waits for it. Each says of these what it has.
    """

    def start(self) -> None:
        """Begin, after the core has."""

    def stop(self, seconds: float) -> None:
        """End, before the core does, within so long."""

    def families(self) -> Iterable[Family]:
        """Return its metrics."""
        return ()

    @property
    def folders(self) -> Mapping[str, Callable[[PageQuestion], StatusReply]]:
        """Return its pages."""
        return {}


class Shelf(NamedTuple):
    """
    A row of the program's list: `settings` is a dataclass whose rows stand in `--help` under
    `title`, and `build` is called with one of those.
    """

    name: str
    title: str
    settings: type
    build: Callable[[Core, Any], Keeper]
