"""Put the agent together from its settings: everything is built here, once, and handed down."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

from agent.clock import booted, boottime, timestamp
from agent.cluster import AgentCluster, ClusterSettings, Impersonation
from agent.concern import Concerns, Ground
from agent.concerns.activity import ActivityConcern
from agent.concerns.capped import CappedConcern
from agent.concerns.driver import DriverConcern
from agent.concerns.history import HistoryConcern
from agent.concerns.need import NeedConcern
from agent.concerns.repeated import RepeatedConcern
from agent.concerns.shown import ShownConcern
from agent.loop import Loop, Ports, Rules, TickThread, Worker
from agent.loop.worker import MOST_THREADS, LastResort
from agent.metrics import page
from agent.model.decision import ActResult, Answer
from agent.model.pod import pods_on_node
from agent.model.state import About
from agent.nvml.sampler import Sampler
from agent.nvml.session import Aside
from agent.procfs.lookup import Lookup
from agent.settings import STATUS_LISTEN, AgentSettings, read_agent_settings
from agent.snapshot_view import snapshot_of
from gpufence.names import SIMULATOR_STATE
from gpufence.settings import with_parts
from gpufence.snapshot import CUTS, write_snapshot
from kube import connect
from service import program
from service.command import version
from service.exposition import CONTENT_TYPE, write_page
from service.itself import Itself
from service.status_server import (
    JSON,
    CachedPage,
    StatusReply,
    text_reply,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent.concern import Concern
    from agent.events.episodes import EventCreate, EventPatch
    from agent.model.decision import Verdict
    from agent.model.pod import PodCondition, PodsOnNode
    from gpufence.cards import NodeCards
    from gpufence.snapshot import SnapshotCut
    from kube import ClientSettings
    from service.status_server import PageQuestion

_LAST_TICK_SECONDS = 1.0
_LAST_ACT_SECONDS = 0.5
_log = logging.getLogger(__name__)

CONCERNS: Final[tuple[type[Concern], ...]] = (
    ActivityConcern,
    NeedConcern,
    DriverConcern,
    HistoryConcern,
    ShownConcern,
    RepeatedConcern,
    CappedConcern,
)
"""What is looked after beside the fence; the agent does without each of them."""
SETTINGS: Final = with_parts(
    AgentSettings, ((each.name, each.title, each.settings) for each in CONCERNS)
)


def run(environ: Mapping[str, str], access: ClientSettings) -> None:
    """
    Measure and act until told to end; `access` is the way to the cluster, if there shall be one.

    Raises GpufenceError, before the first socket opens, for settings that cannot work.
    """
    settings = read_agent_settings(environ, SETTINGS, needs_node=True)

    def build() -> AgentProgram:
        cluster = NoCluster() if settings.cluster == "none" else _cluster(settings, access)
        return AgentProgram(settings, cluster)

    program.run("agent", settings, environ, build, STATUS_LISTEN, {SIMULATOR_STATE})


class AgentProgram:
    """The parts that run together, and what they say of themselves."""

    def __init__(self, settings: AgentSettings, cluster: AgentCluster | NoCluster) -> None:
        real = cluster if isinstance(cluster, AgentCluster) else None
        policy, deadline = settings.policy, settings.sampler.deadline_seconds
        self._cluster = cluster
        self._itself = Itself("agent")
        self._cards = Sampler(settings.sampler)
        # The threads that act have a lookup of their own.
        kill = LastResort(Lookup(settings.proc))
        self._worker = Worker(cluster.carry_out, kill, boottime, policy.gap_seconds)
        ports = Ports(self._cards, Lookup(settings.proc), cluster, boottime, timestamp)
        rules = Rules(
            node=settings.node,
            policy=policy,
            damping=settings.damping,
            unmeasured_seconds=settings.unmeasured_seconds,
        )
        aside = Aside(settings.sampler)
        ground = Ground(settings.node, ports.processes, boottime, timestamp, real, aside, policy)
        self._concerns = Concerns(
            [each.on(ground, getattr(settings, each.name)) for each in CONCERNS]
        )
        self._loop = Loop(ports, rules, self._worker, self._concerns)
        self._ticker = TickThread(
            self._loop.tick, self._cards.close, policy.interval_seconds, boottime
        )
        self._about = About(
            node=settings.node,
            version=version(),
            started=timestamp(),
            gap_seconds=policy.gap_after(deadline) + deadline,
            cap_slack_bytes=policy.cap_slack_bytes,
        )

    @property
    def pages(self) -> dict[str, Callable[[], StatusReply]]:
        return {
            "/healthz": self._health,
            "/metrics": CachedPage(CONTENT_TYPE, self._metrics, boottime),
            "/v1/snapshot": CachedPage(JSON, self._snapshot, boottime),
            **{
                f"/v1/snapshot?{urlencode(cut.query)}": CachedPage(
                    JSON, partial(self._snapshot, cut), boottime
                )
                for cut in CUTS
            },
            **{
                path: CachedPage(JSON, page, boottime)
                for path, page in self._concerns.pages().items()
            },
        }

    folders: ClassVar[Mapping[str, Callable[[PageQuestion], StatusReply]]] = {}

    def start(self) -> None:
        if isinstance(self._cluster, AgentCluster):
            self._cluster.start()
        self._concerns.start()
        self._ticker.start()

    def stop(self) -> None:
        """End within a second or two. A look that hangs is left behind: its child dies with us."""
        if not self._ticker.stop(_LAST_TICK_SECONDS):
            _log.warning("the last look has not ended; it is left behind")
        self._worker.close(_LAST_ACT_SECONDS)
        self._concerns.stop()
        if isinstance(self._cluster, AgentCluster):
            self._cluster.close()

    def _health(self) -> StatusReply:
        # What only a restart would cure.
        trouble = self._ticker.trouble or self._loop.state.lost_container(boottime())
        status = HTTPStatus.SERVICE_UNAVAILABLE if trouble else HTTPStatus.OK
        return text_reply(status, trouble or "ok")

    def _metrics(self) -> str:
        state, about, now = self._loop.state, self._now(), boottime()
        last = state.last if state.is_current(now, about.gap_seconds) else None
        own = write_page(self._itself.families(), {"node": about.node})
        return page(state, about, now, self._concerns.families(last, now)) + own

    def _snapshot(self, cut: SnapshotCut | None = None) -> str:
        state, about, now = self._loop.state, self._now(), boottime()
        current = state.is_current(now, about.gap_seconds)
        more = self._concerns.rows(now, current=current)
        rows = snapshot_of(state, about, now, timestamp(), more)
        rows = rows._replace(**self._concerns.node_row())  # type: ignore[arg-type]  # its fields
        return write_snapshot(rows, cut) + "\n"

    def _now(self) -> About:
        cluster = self._cluster
        status = cluster.status() if isinstance(cluster, AgentCluster) else None
        restarts = self._cards.restarts
        return replace(self._about, cluster=status, restarts=restarts, booted=booted())


def _cluster(settings: AgentSettings, access: ClientSettings) -> AgentCluster:
    """Find the cluster; nothing is sent yet. Raises kube.AccessError where there is none."""
    patient = replace(access, pool_connections=MOST_THREADS + access.pool_connections)
    return AgentCluster(connect(patient), cluster_settings(settings))


def cluster_settings(settings: AgentSettings) -> ClusterSettings:
    return ClusterSettings(
        node=settings.node,
        impersonation=Impersonation(settings.impersonation),
        exempt_namespaces=settings.exempt_namespaces | {settings.namespace},
        units=settings.units.default,
        system_namespace=settings.namespace,
        help_url=settings.help_url,
        eviction_grace_seconds=settings.policy.eviction_grace_seconds,
    )


class NoCluster:
    """The agent without a cluster knows no pods: it measures and shows, and acts on nothing."""

    _pods = pods_on_node((), fresh=False)

    def pods(self) -> PodsOnNode:
        return self._pods

    def publish(self, cards: NodeCards) -> None: ...

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None: ...

    def say(self, conditions: Iterable[PodCondition]) -> None: ...

    def carry_out(self, verdict: Verdict) -> ActResult:
        del verdict
        return ActResult(Answer.FAILED, detail="there is no cluster")
