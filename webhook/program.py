"""Put the server together from its settings: everything is built here, once, and handed down."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Final

from gpufence.settings import read_settings, shown_settings
from kube import connect
from service.itself import Itself
from service.listen import listen
from service.logs import tell_settings
from webhook import metrics as names
from webhook.checks.quota import QuotaMemory
from webhook.cluster import LONGEST_REPLY_BYTES, THREADS, ClusterView, LiveCluster
from webhook.metrics import Account, Gauge, Metrics, start_logging
from webhook.profiles import Profiles
from webhook.server import (
    BACKLOG,
    HOOKS,
    BoundApp,
    Draining,
    admission_app,
    hooks_of,
    serve,
    status_app,
)
from webhook.settings import LISTEN, STATUS_LISTEN, WebhookSettings
from webhook.tls import CertificateWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from socket import socket

    from kube import ClientSettings
    from webhook.checks import OptionalCheck
    from webhook.cluster import AmountSource, OptionalSource
    from webhook.hooks import PodCheck
    from webhook.metrics import RequestLog
    from webhook.policy import WebhookPolicy
    from webhook.settings import ServerSettings

CHECKS: Final[tuple[Callable[[WebhookPolicy], OptionalCheck], ...]] = (QuotaMemory,)
"""What pods have to pass besides: each is its folder in `webhook/checks`, and a row here."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What runs beside the two applications."""

    cluster: ClusterView
    certificate: CertificateWatch
    metrics: Metrics
    draining: Draining
    log: RequestLog

    def troubles(self) -> list[str]:
        """List why the next admission could fare badly."""
        leaving = "the server is ending" if self.draining() else None
        found = (self.certificate.trouble(), self.cluster.trouble(), leaving)
        return [trouble for trouble in found if trouble]


def run(environ: Mapping[str, str], access: ClientSettings) -> None:
    """
    Serve until told to end; `access` is the way to the cluster, if there shall be one.

    Raises GpufenceError, before the first socket opens, for settings that cannot work.
    """
    chosen = read_settings(WebhookSettings, environ)
    settings, policy = chosen.server, chosen.pods.policy(hook_source())
    log = start_logging(settings.log_level)
    shown = {**shown_settings(settings), "policy": shown_settings(chosen.pods)}
    tell_settings("webhook", WebhookSettings, shown, environ)
    metrics = Metrics(HOOKS)
    metrics.add_source(Itself("webhook").families)
    certificate = CertificateWatch(
        settings.tls_dir, metrics.count_load, settings.tls_poll_seconds, settings.client_ca
    )
    if settings.cluster == "none":
        parts = _Parts(ClusterView(), certificate, metrics, Draining(), log)
        _serve(parts, policy, settings)
        return
    profiles, checks = Profiles(), [each(policy) for each in CHECKS]
    more = [each.follows for each in checks]
    live = live_cluster(access, policy, settings, (profiles,), more)
    _add_cluster_gauges(metrics, live, profiles)
    for each in checks:
        each.begin(live, settings.namespace)
        metrics.add_source(each.families)
    live.start()
    try:
        _serve(_Parts(live, certificate, metrics, Draining(), log), policy, settings, checks)
    finally:
        live.stop()


def hook_source() -> str:
    """
    Return the start-up hook's text, which travels in an annotation of the pods that ask for it.
    """
    return (
        resources.files("webhook.python").joinpath("sitecustomize.py").read_text(encoding="utf-8")
    )


def live_cluster(
    access: ClientSettings,
    policy: WebhookPolicy,
    settings: ServerSettings,
    sources: Sequence[AmountSource] = (),
    more: Sequence[OptionalSource] = (),
) -> LiveCluster:
    """Find the cluster; nothing is sent yet. Raises kube.AccessError where there is none."""
    patient = replace(
        access,
        connect_timeout_seconds=settings.api_deadline_seconds,
        longest_reply_bytes=LONGEST_REPLY_BYTES,
        pool_connections=THREADS,
    )
    deadline = settings.api_deadline_seconds
    return LiveCluster(connect(patient), policy.default.units, deadline, sources=sources, more=more)


def _serve(
    parts: _Parts, policy: WebhookPolicy, settings: ServerSettings, checks: Sequence[PodCheck] = ()
) -> None:
    _add_gauges(parts)
    account = Account(parts.metrics, parts.log)
    hooks = hooks_of(parts.cluster, policy, checks)
    admissions = admission_app(hooks, account, parts.draining)
    sockets: list[socket] = []
    try:
        for setting, address in (
            (LISTEN, settings.listen),
            (STATUS_LISTEN, settings.status_listen),
        ):
            sockets.append(listen(setting, address, BACKLOG))
        parts.certificate.start()
        serve(
            BoundApp(admissions, sockets[0], parts.certificate.context),
            BoundApp(status_app(parts.metrics, parts.troubles), sockets[1]),
            parts.draining,
            settings.drain_seconds,
        )
    finally:
        parts.certificate.stop()
        for each in sockets:
            each.close()


def _add_gauges(parts: _Parts) -> None:
    parts.metrics.add_gauges(
        Gauge(
            names.EXPIRY,
            "Unix time at which the serving certificate expires",
            parts.certificate.expires,
        ),
        Gauge(names.READY, "Whether /readyz says yes", lambda: not parts.troubles()),
    )


def _add_cluster_gauges(metrics: Metrics, live: LiveCluster, profiles: Profiles) -> None:
    metrics.add_gauges(
        Gauge(names.NODES, "GPU nodes that are known", lambda: len(live.nodes.items)),
        Gauge(
            names.NAMESPACES,
            "Fenced namespaces that are known",
            lambda: len(live.namespaces.items),
        ),
        Gauge(
            names.PROFILES,
            "Profiles whose targets are the limits of pods that are made",
            lambda: len(profiles.store),
        ),
        Gauge(
            names.CONTACT,
            "Unix time at which a watch of the cluster last heard anything",
            lambda: live.last_contacts(time.time()),
            "source",
        ),
    )
