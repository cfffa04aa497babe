"""
Put the controller together from its settings: everything is built here, once, and handed down.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from controller.acts import OwnerActs
from controller.agents import MOST_ASKED, AgentClient
from controller.cluster.cluster import Cluster
from controller.keepers import Core
from controller.keepers.activity import ACTIVITY
from controller.keepers.profiles import PROFILES
from controller.lease import LeaderLease
from controller.loop import ControllerLoop, LoopPorts
from controller.pages import ControllerCounts, families, owners_page
from controller.settings import STATUS_LISTEN, ControllerSettings
from gpufence import names
from gpufence.settings import read_settings, with_parts
from kube import connect
from kube.event_writer import EventWriter
from kube.events import Reporter
from service import program
from service.exposition import CONTENT_TYPE, write_page
from service.itself import Itself
from service.status_server import (
    JSON,
    CachedPage,
    StatusReply,
    text_reply,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controller.keepers import Shelf
    from kube import ClientSettings
    from service.status_server import PageQuestion

SHELVES: Final[tuple[Shelf, ...]] = (
    ACTIVITY,
    PROFILES,
)
"""The keepers: each is its folder in `controller/keepers`, and a row here."""

SETTINGS: Final = with_parts(ControllerSettings, (each[:3] for each in SHELVES))
"""The dataclass of all settings, those of the keepers included."""

_NAME: Final = "controller"
_LONGEST_REPLY_BYTES: Final = 4 * 2**20
_MOST_EVENTS: Final = 512
"""Of owners and their pods, all of which may be told at once."""
STUCK_SECONDS: Final = 120.0
"""Without one pass ending for so long, the program hangs."""


def run(environ: Mapping[str, str], access: ClientSettings) -> None:
    """
    Look and act until told to end.

    Raises GpufenceError, before the first socket opens, for settings that cannot work.
    """
    settings = read_settings(SETTINGS, environ)
    build = partial(ControllerProgram, settings, access)
    program.run(_NAME, settings, environ, build, STATUS_LISTEN)


class ControllerProgram:
    """The parts that run together, and what they show."""

    def __init__(self, settings: ControllerSettings, access: ClientSettings) -> None:
        seconds = settings.request_seconds
        self._itself = Itself(_NAME)
        self._settings = settings
        self._client = connect(
            replace(
                access,
                pool_connections=MOST_ASKED,
                reply_timeout_seconds=seconds,
                longest_reply_bytes=_LONGEST_REPLY_BYTES,
            )
        )
        self._cluster = Cluster(self._client, settings)
        where = settings.namespace, names.CONTROLLER
        # The Lease has a connection of its own: nothing else may keep it from being renewed.
        self._lease = LeaderLease(
            self._client.dedicated(), where, settings.holder, settings.lease, seconds
        )
        self._agents = AgentClient(self._cluster.agents, settings.agent_seconds)
        self._events = EventWriter(
            Reporter(names.CONTROLLER, settings.holder),
            help_url=settings.help_url,
            keep=_MOST_EVENTS,
            request_seconds=seconds,
        )
        self._loop = ControllerLoop(
            LoopPorts(
                look=self._cluster.look,
                lease=self._lease,
                agents=self._agents,
                acts=OwnerActs(self._client, self._cluster.kinds, self._lease.left, seconds),
                events=self._events,
            ),
            settings.rules,
            settings.pass_seconds,
            settings.namespace,
        )
        core = Core(
            settings=settings,
            client=self._client,
            cluster=self._cluster,
            agents=self._agents,
            lease=self._lease,
            last=lambda: self._loop.last,
        )
        self._keepers = [each.build(core, getattr(settings, each.name)) for each in SHELVES]

    @property
    def pages(self) -> dict[str, Callable[[], StatusReply]]:
        cached = partial(CachedPage, clock=time.monotonic)
        return {
            "/healthz": self._health,
            "/readyz": self._ready,
            "/metrics": cached(CONTENT_TYPE, self._metrics),
            "/v1/owners": cached(JSON, self._owners),
        }

    @property
    def folders(self) -> dict[str, Callable[[PageQuestion], StatusReply]]:
        return {path: page for each in self._keepers for path, page in each.folders.items()}

    def start(self) -> None:
        self._cluster.start()
        self._events.start(self._client)
        self._lease.start()
        self._loop.start()
        for keeper in self._keepers:
            keeper.start()

    def stop(self) -> None:
        """End the act that is under way, then give the Lease back."""
        self._loop.stop(self._settings.request_seconds * 2)
        for keeper in self._keepers:
            keeper.stop(self._settings.request_seconds * 2)
        self._lease.stop()
        self._events.stop(self._settings.request_seconds)
        self._agents.close()
        self._cluster.stop()
        self._client.close()

    def _health(self) -> StatusReply:
        silence = self._loop.silence_seconds
        if silence > STUCK_SECONDS + self._settings.pass_seconds:
            text = f"no pass has ended for {silence:.0f} s"
            return text_reply(HTTPStatus.SERVICE_UNAVAILABLE, text)
        return text_reply(HTTPStatus.OK, "ok")

    def _ready(self) -> StatusReply:
        """Say whether the cluster has been seen once: what is stale later is told to who asks."""
        if self._loop.seen:
            return text_reply(HTTPStatus.OK, "ok")
        trouble = self._cluster.trust().trouble or "the cluster has not been looked at yet"
        return text_reply(HTTPStatus.SERVICE_UNAVAILABLE, trouble)

    def _metrics(self) -> str:
        counts = ControllerCounts(
            acts=dict(self._loop.outcomes),
            failures=self._loop.failures,
            events_written=self._events.written,
            events_dropped=self._events.dropped + self._events.refused,
            agents_asked=self._agents.asked,
            agents_silent=self._agents.silent,
        )
        found = families(self._loop.last, self._cluster.trust(), self._lease.left(), counts)
        kept = [family for each in self._keepers for family in each.families()]
        return write_page([*found, *kept, *self._itself.families()])

    def _owners(self) -> str:
        return owners_page(self._loop.last, self._cluster.trust(), time.time())
