"""Put the agent together from its settings: everything is built here, once, and handed down."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from agent.clock import boottime, timestamp
from agent.cluster import AgentCluster, ClusterSettings, Impersonation
from agent.health import trouble_of_container, trouble_of_loop
from agent.kill import LastResort
from agent.loop import Loop, Ports, Rules, TickThread, Worker
from agent.loop.worker import MOST_THREADS
from agent.metrics import page
from agent.model.decision import ActResult, Answer
from agent.model.pod import pods_on_node
from agent.model.state import About
from agent.need import need_of
from agent.nvml.sampler import Sampler
from agent.procfs.lookup import Lookup
from agent.settings import STATUS_LISTEN, read_agent_settings
from agent.snapshot_view import snapshot_of
from agent.version import version
from gpufence.names import SIMULATOR_STATE
from gpufence.need import write_bounded
from gpufence.snapshot import CUTS, write_snapshot
from kube import connect
from service import program
from service.exposition import CONTENT_TYPE
from service.status_server import (
    JSON,
    CachedPage,
    StatusReply,
    text_reply,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent.events import EventCreate, EventPatch
    from agent.model.activity import IdleCondition
    from agent.model.decision import Verdict
    from agent.model.need import StoredNeed
    from agent.model.pod import PodsOnNode
    from agent.settings import AgentSettings
    from gpufence.cards import NodeCards
    from gpufence.need import NodeNeed
    from gpufence.snapshot import SnapshotCut
    from kube import ClientSettings
    from service.status_server import PageQuestion

_LAST_TICK_SECONDS = 1.0
_LAST_ACT_SECONDS = 0.5
_DAY = len("2026-11-19")
_log = logging.getLogger(__name__)


def run(environ: Mapping[str, str], access: ClientSettings) -> None:
    """
    Measure and act until told to end; `access` is the way to the cluster, if there shall be one.

    Raises GpufenceError, before the first socket opens, for settings that cannot work.
    """
    settings = read_agent_settings(environ, needs_node=True)

    def build() -> AgentProgram:
        cluster = NoCluster() if settings.cluster == "none" else _cluster(settings, access)
        return AgentProgram(settings, cluster)

    program.run("agent", settings, environ, build, STATUS_LISTEN, {SIMULATOR_STATE})


class AgentProgram:
    """The parts that run together, and what they say of themselves."""

    def __init__(self, settings: AgentSettings, cluster: AgentCluster | NoCluster) -> None:
        policy, deadline = settings.policy, settings.sampler.deadline_seconds
        self._settings = settings
        self._cluster = cluster
        self._cards = Sampler(settings.sampler)
        # The threads that act have a lookup of their own.
        kill = LastResort(Lookup(settings.proc))
        self._worker = Worker(cluster.carry_out, kill, boottime, policy.gap_seconds)
        ports = Ports(self._cards, Lookup(settings.proc), cluster, boottime, timestamp)
        rules = Rules(
            node=settings.node,
            policy=policy,
            damping=settings.damping,
            activity=settings.activity,
            need=settings.need,
            unmeasured_seconds=settings.unmeasured_seconds,
        )
        self._loop = Loop(ports, rules, self._worker)
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
            "/v1/need": CachedPage(JSON, self._need, boottime),
        }

    @property
    def folders(self) -> dict[str, Callable[[PageQuestion], StatusReply]]:
        return {}

    def start(self) -> None:
        if isinstance(self._cluster, AgentCluster):
            self._cluster.start()
        self._ticker.start()

    def stop(self) -> None:
        """End within a second or two. A look that hangs is left behind: its child dies with us."""
        if not self._ticker.stop(_LAST_TICK_SECONDS):
            _log.warning("the last look has not ended; it is left behind")
        self._worker.close(_LAST_ACT_SECONDS)
        self._loop.end()
        if isinstance(self._cluster, AgentCluster):
            self._cluster.close()

    def trouble(self) -> str:
        """Return what only a restart would cure."""
        interval = self._settings.policy.interval_seconds
        hangs = trouble_of_loop(self._ticker.silence_seconds, interval)
        return hangs or trouble_of_container(self._loop.state, boottime())

    def _health(self) -> StatusReply:
        trouble = self.trouble()
        status = HTTPStatus.SERVICE_UNAVAILABLE if trouble else HTTPStatus.OK
        return text_reply(status, trouble or "ok")

    def _metrics(self) -> str:
        return page(self._loop.state, self._now(), boottime())

    def _snapshot(self, cut: SnapshotCut | None = None) -> str:
        rows = snapshot_of(self._loop.state, self._now(), boottime(), timestamp())
        return write_snapshot(rows, cut) + "\n"

    def _need(self) -> str:
        need = need_of(self._loop.state.need, self._settings.node)
        return write_bounded(need, timestamp()[:_DAY]) + "\n"

    def _now(self) -> About:
        cluster = self._cluster
        status = cluster.status() if isinstance(cluster, AgentCluster) else None
        return replace(self._about, cluster=status, restarts=self._cards.restarts)


def _cluster(settings: AgentSettings, access: ClientSettings) -> AgentCluster:
    """Find the cluster; nothing is sent yet. Raises kube.AccessError where there is none."""
    patient = replace(access, pool_connections=MOST_THREADS + access.pool_connections)
    return AgentCluster(connect(patient), cluster_settings(settings))


def cluster_settings(settings: AgentSettings) -> ClusterSettings:
    return ClusterSettings(
        node=settings.node,
        impersonation=Impersonation(settings.impersonation),
        exempt_namespaces=settings.exempt_namespaces,
        units=settings.unit_defaults,
        system_namespace=settings.namespace,
        eviction_grace_seconds=settings.policy.eviction_grace_seconds,
    )


class NoCluster:
    """
    The agent without a cluster knows no pods, hence everybody's memory is nobody's: it measures and
    shows, and there is nobody to act on.
    """

    def __init__(self) -> None:
        self._pods = pods_on_node((), fresh=False)

    def pods(self) -> PodsOnNode:
        return self._pods

    def publish(self, cards: NodeCards) -> None:
        del cards

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        del writes

    def say_idle(self, conditions: Iterable[IdleCondition]) -> None:
        del conditions

    def stored_need(self) -> StoredNeed | None:
        return None

    def store_need(self, need: NodeNeed) -> None:
        del need

    def carry_out(self, verdict: Verdict) -> ActResult:
        del verdict
        return ActResult(Answer.FAILED, detail="there is no cluster")
