"""All that is known of the cluster, and how far it may be acted on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.cluster.kinds_watch import KindsWatch
from controller.cluster.owners import Assembler
from controller.cluster.tree import SeenCluster
from controller.cluster.watches import ClusterWatches, is_current
from gpufence import names
from gpufence.idle import highest_rung
from kube import WatchSettings
from kube.discovery import Kinds
from kube.informers.interning import Interner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.cluster.kept import NamespaceWords
    from controller.model import ClusterState
    from controller.settings import ControllerSettings
    from kube import Client, ReflectorState
    from kube.owners import ApiOwner


MOST_AHEAD_SECONDS: Final = 30.0
"""
A clock that differs more from the API server's, in either direction, is wrong, or the API server's
is: by it nothing is done.
"""


class WatchTrust(NamedTuple):
    """Whether what is known may be acted on, and what stands against it."""

    fresh: bool
    trouble: str


class Cluster:
    """Watches, and puts together what is seen; `client` speaks as the controller's own account."""

    def __init__(
        self, client: Client, settings: ControllerSettings, pace: WatchSettings | None = None
    ) -> None:
        pace = pace or WatchSettings()
        self._client = client
        shared = Interner()
        units = settings.unit_defaults
        self.kinds = Kinds(client, remembered_seconds=settings.kinds_seconds / 2)
        self._given = dict(settings.agents)
        self._watches = ClusterWatches(client, settings.namespace, units, shared, pace)
        self._owners = KindsWatch(client, self.kinds, shared, pace, settings.kinds_seconds)
        self._assembler = Assembler(settings.rules, settings.exempt_namespaces)

    def start(self) -> None:
        self._watches.start()
        self._owners.start()

    def stop(self) -> None:
        self._owners.stop()
        self._watches.stop()

    def look(self) -> ClusterState:
        """Return everything as it is known now; one thread at a time."""
        # Asked before the parts are read: what comes in between is only newer. And after what is
        # known of kinds, of which one may just have been begun anew.
        fresh = self.trust().fresh
        known = self._owners.known()
        fresh = fresh and self.trust().fresh
        watches = self._watches
        return self._assembler.assemble(
            SeenCluster(
                now=time.time(),
                fresh=fresh,
                pods=watches.pods.items,
                owners=known.owners,
                nodes=watches.nodes.items,
                namespaces=watches.namespaces.items,
                budgets=watches.budgets.items,
                highest=highest_rung(watches.policies.items.get(names.POLICY_CONFIGMAP)),
                scalers=known.scalers,
                blind=known.blind,
                unread=known.unread,
                stale=known.stale,
            )
        )

    def namespaces(self) -> Mapping[str, NamespaceWords]:
        """Return what namespaces say to us, of those that do."""
        return self._watches.namespaces.items

    def owners(self) -> Iterator[ApiOwner]:
        """Yield the owners of kinds that can be scaled or stopped."""
        return (kept.owner for kept in self._owners.known().owners.values())

    def agents(self) -> Mapping[str, str]:
        """Return the address of each node's agent."""
        if self._given:
            return self._given
        found = self._watches.agents.items.values()
        return {node: f"http://{_shown(address)}:8080" for node, address in found}

    def trust(self) -> WatchTrust:
        known = self._owners.known()
        states: tuple[ReflectorState, ...] = (*self._watches.states(), *known.states)
        now = time.monotonic()
        wrong = _clock_trouble(self._client.clock_ahead_seconds)
        current = all(is_current(state, now) for state in states)
        fresh = known.complete and current and not wrong
        said = {state.last_error for state in states if state.failing and state.last_error}
        unsynced = sum(not state.synced for state in states)
        waiting = [f"{unsynced} collections have not been read yet"] if unsynced else []
        if not known.complete:
            waiting.append("it is not known which kinds there are")
        waiting += [wrong] if wrong else []
        return WatchTrust(fresh, "; ".join([*sorted(said), *waiting]))


def _shown(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _clock_trouble(ahead_seconds: float | None) -> str:
    """Say that this machine's clock or the API server's is wrong; nothing where they agree."""
    if ahead_seconds is None or abs(ahead_seconds) <= MOST_AHEAD_SECONDS:
        return ""
    where = "ahead of" if ahead_seconds > 0 else "behind"
    return (
        f"this machine's clock is {abs(ahead_seconds):.0f} s {where} the API server's, so no time "
        "can be trusted: set both by the same time server"
    )
