"""PURE. Which proxy, if any, stands between us and the API server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

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

    def value(name: str) -> str:
        return environ.get(name) or environ.get(name.upper()) or ""

    found = ((scheme, value(f"{scheme}_proxy")) for scheme in ("http", "https", "all"))
    return Proxies(
        by_scheme=tuple((scheme, url) for scheme, url in found if url),
        bypass=value("no_proxy"),
    )


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
