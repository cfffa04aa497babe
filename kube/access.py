"""Find the way to the API server: which address, trusted by what, as whom, through which proxy."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kube.credentials import Certificates, Credentials, NoCredentials, TokenFile, Trust
from kube.errors import AccessError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult


@dataclass(frozen=True, slots=True)
class Proxies:
    """
    The proxy variables of the environment; `bypass` is NO_PROXY, as written.

    Proxy addresses may hold a password, so they stay out of repr.
    """

    by_scheme: tuple[tuple[str, str], ...] = ()
    bypass: str = ""

    def __repr__(self) -> str:
        schemes = ", ".join(scheme for scheme, _ in self.by_scheme)
        return f"Proxies(for {schemes or 'nothing'}, bypass={self.bypass!r})"


def read_proxies(environ: Mapping[str, str]) -> Proxies:
    """Read the usual variables, where lower case wins, as for curl, Go and Python."""
    schemes = ("http", "https", "all", "no")
    found = {
        scheme: environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY") or ""
        for scheme in schemes
    }
    bypass = found.pop("no")
    return Proxies(tuple((scheme, url) for scheme, url in found.items() if url), bypass)


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
    """For the TCP connection and the TLS handshake, each."""

    reply_timeout_seconds: float = 30.0
    """For a whole ordinary request, unless the request says otherwise."""

    longest_reply_bytes: int | None = None
    """
    More than this of an ordinary answer is not read: tenants decide how large their objects are.
    """

    pool_connections: int = 4
    """Connections kept open for reuse: as many as threads that ask at the same time."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """
    A way that was found, ready to be used.

    `headers` say whom a kubeconfig wants to be impersonated; `server_name` replaces the host's name
    in TLS. The proxy may hold a password and stays out of repr. `namespace` is the one meant where
    a person names none; empty where nothing says.
    """

    server: str
    credentials: Credentials = field(default_factory=NoCredentials)
    trust: Trust | None = None
    server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""


def find_access(settings: ClientSettings) -> Access:
    """
    Take the first way that the settings give, in the order `ClientSettings` lists them.

    Raises AccessError with everything that was looked for and what would help.
    """
    if settings.server is not None:
        return _explicit(settings, settings.server)
    if settings.kubeconfig is not None:
        return _from_kubeconfig(settings, settings.kubeconfig)
    if settings.service_host is not None:
        return _in_cluster(settings, settings.service_host)
    if _is_there(Path(settings.default_kubeconfig)):
        return _from_kubeconfig(settings, settings.default_kubeconfig)
    raise AccessError(
        "no way to a Kubernetes cluster: no kubeconfig was named (KUBECONFIG is not set), this is "
        "no pod of a cluster (KUBERNETES_SERVICE_HOST is not set) and "
        f"{settings.default_kubeconfig} does not exist; set KUBECONFIG to a kubeconfig file"
    )


def _is_there(named: Path) -> bool:
    """Return whether a file is there; what stands in a folder that is closed to us nobody knows."""
    try:
        return named.expanduser().is_file()
    except (OSError, RuntimeError) as error:  # RuntimeError: nothing tells the home folder
        why = getattr(error, "strerror", None) or error
        raise AccessError(
            f"{named} cannot be looked for: {why}; "
            "name a kubeconfig that this user may read in KUBECONFIG"
        ) from error


def _explicit(settings: ClientSettings, server: str) -> Access:
    scheme, _, host = server.partition("://")
    if scheme not in {"http", "https"} or not host:
        raise AccessError(
            f"server {server!r} is not an address; write it like https://10.0.0.1:6443"
        )
    return Access(
        server=server.rstrip("/"),
        credentials=_credentials(settings, settings.token_file),
        trust=_trust(settings, settings.ca_file) if scheme == "https" else None,
        proxy=choose_proxy(server, settings.proxies),
    )


def _in_cluster(settings: ClientSettings, host: str) -> Access:
    shown_host = f"[{host}]" if ":" in host else host
    server = f"https://{shown_host}:{settings.service_port}"
    folder = settings.service_account
    if not (_is_there(folder / "token") and _is_there(folder / "ca.crt")):
        raise AccessError(
            f"this pod has no service account in {folder} (token and ca.crt are looked for); "
            "set automountServiceAccountToken: true, or name a kubeconfig in KUBECONFIG"
        )
    return Access(
        server=server,
        credentials=_credentials(settings, folder / "token"),
        trust=_trust(settings, folder / "ca.crt"),
        proxy=choose_proxy(server, settings.proxies),
    )


def _from_kubeconfig(settings: ClientSettings, paths: str) -> Access:
    try:
        # Programs in a pod never come here: any part of that client costs 20 MiB and 0.2 s.
        from kube.kubeconfig import access_by_kubeconfig  # noqa: PLC0415 (see above)
    except ImportError as error:
        raise AccessError(
            f"kubeconfig {paths} cannot be read by a program without the package `kubernetes`, "
            "which our images leave out: in a pod, leave KUBECONFIG unset and use its account"
        ) from error
    return access_by_kubeconfig(settings, paths)


def _credentials(settings: ClientSettings, token_file: Path | None) -> Credentials:
    if token_file is None:
        return NoCredentials()
    return TokenFile(token_file, settings.token_period_seconds)


def _trust(settings: ClientSettings, ca_file: Path | None) -> Trust:
    return Trust(Certificates(ca_file=ca_file, strict=settings.strict_certificates))


def choose_proxy(server: str, proxies: Proxies) -> str | None:
    """
    Name the proxy for a server's address, or None to go there directly.

    The machine itself is never reached through a proxy, listed or not: so does kubectl.
    """
    address = urlsplit(server)
    urls = dict(proxies.by_scheme)
    proxy = urls.get(address.scheme) or urls.get("all")
    if proxy is None or _is_bypassed(address, proxies.bypass):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_bypassed(address: SplitResult, bypass: str) -> bool:
    host = (address.hostname or "").lower()
    host_ip = _as_ip(host)
    if host == "localhost" or (host_ip is not None and host_ip.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in bypass.split(","))
    return any(_matches(entry, host, address.port) for entry in entries if entry)


def _matches(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    host_ip = _as_ip(host)
    if host_ip is not None:
        try:
            return host_ip in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            pass  # a name or a host with a port, compared below
    name, colon, wanted_port = entry.rpartition(":")
    if colon and wanted_port.isdecimal():
        if port != int(wanted_port):
            return False
        entry = name.strip("[]")
    suffix = entry.removeprefix("*").removeprefix(".")
    return bool(suffix) and (host == suffix or host.endswith(f".{suffix}"))


def _as_ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
