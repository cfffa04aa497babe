"""
What a program may say about its way to the API server, and how patiently to wait for answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpufence.backoff import Backoff
from kube.proxies import Proxies, read_proxies

if TYPE_CHECKING:
    from collections.abc import Mapping

_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """
    Where the API server is and how to talk to it; `connect` takes the first way that is given.

    1. `server`, with `ca_file` and `token_file`: explicit, for tests and for `kubectl proxy`;
    2. `kubeconfig` (one path, or several joined by colons) and `context`;
    3. the pod's own service account, once `service_host` is set;
    4. `default_kubeconfig`.
    """

    server: str | None = None
    ca_file: Path | None = None
    token_file: Path | None = None

    kubeconfig: str | None = None
    context: str | None = None

    service_host: str | None = None
    service_port: str = "443"
    service_account: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")

    default_kubeconfig: str = "~/.kube/config"

    proxies: Proxies = field(default_factory=Proxies)

    connect_timeout_seconds: float = 5.0
    """
    For the TCP connection and the TLS handshake, each.
    """

    reply_timeout_seconds: float = 30.0
    """
    For a whole ordinary request, unless the request says otherwise.
    """

    pool_connections: int = 4
    """
    Connections kept open for reuse: as many as threads that ask at the same time.
    """

    token_period_seconds: float = 60.0
    """
    A token file is read again after this long; Kubernetes renews them well before they expire.
    """

    strict_certificates: bool = False
    """
    Demand RFC 5280 to the letter, as Python does by default from 3.13 on. Off, because cluster CAs
    made by old tools lack key identifiers, and every Kubernetes client in Go accepts those.
    """

    user_agent: str = "gpufence"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """
    The pace of a reflector.
    """

    window_seconds: float = 240.0
    """
    The server is asked to end each watch after this long, up to a quarter more by chance.
    """

    silence_seconds: float = 75.0
    """
    No byte for this long ends a watch, for its connection may be half open; the next one tells.
    Bookmarks come about once a minute on a busy server, but on a quiet one (Kubernetes 1.37) the
    first was seen after two minutes: silence alone proves nothing.
    """

    settled_seconds: float = 1.0
    """
    A watch that ends sooner and delivered nothing counts as a failure, so that no loop runs hot.
    """

    line_limit_bytes: int = 16 * _MIB
    """
    Longest line believed; etcd takes objects of about 1.5 MiB.
    """

    backoff: Backoff = field(default_factory=Backoff)


def read_client_settings(environ: Mapping[str, str], *, user_agent: str) -> ClientSettings:
    """
    Take what Kubernetes and its users say by environment: KUBECONFIG, the pod's service variables,
    and the proxy variables.
    """
    return ClientSettings(
        kubeconfig=environ.get("KUBECONFIG") or None,
        service_host=environ.get("KUBERNETES_SERVICE_HOST") or None,
        service_port=environ.get("KUBERNETES_SERVICE_PORT") or "443",
        proxies=read_proxies(environ),
        user_agent=user_agent,
    )
