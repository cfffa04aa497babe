"""API servers that can only be reached through a proxy."""

from dataclasses import replace
from pathlib import Path

import pytest

from kube import UnreachableError, connect
from kube.proxies import Proxies
from tests.http.kube.builders import PODS, SETTINGS, pods
from tests.http.kube.tunnel import tunnel
from tests.support.api_server import ApiServer, reply
from tests.support.authority import Authority


def test_https_goes_through_a_tunnel(server: ApiServer, tmp_path: Path) -> None:
    """TLS reaches from us to the API server, and the proxy's login goes to the proxy alone."""
    authority = Authority(tmp_path)
    with ApiServer(authority.server_context("api.example")) as behind:
        behind.on(f"GET {PODS}", reply(pods()))
        key = f"CONNECT api.example:{behind.port}"
        server.on(key, tunnel)
        settings = replace(
            SETTINGS,
            server=f"https://api.example:{behind.port}",
            ca_file=authority.ca_file,
            proxies=Proxies((("https", f"http://me:p%40ss@127.0.0.1:{server.port}"),)),
        )
        with connect(settings) as client:
            client.get(PODS)

        [through], [arrived] = server.seen(key), behind.seen(f"GET {PODS}")
    assert "Basic bWU6cEBzcw==" == through.headers["proxy-authorization"]
    assert "proxy-authorization" not in arrived.headers


def test_a_broken_proxy_is_named_as_such(server: ApiServer) -> None:
    """Trouble with the proxy is not blamed on the API server, and its password is not shown."""
    server.on("CONNECT api.example:6443", reply(b"", 407))
    settings = replace(
        SETTINGS,
        server="https://api.example:6443",
        proxies=Proxies((("https", f"http://me:secret@127.0.0.1:{server.port}"),)),
    )
    with (
        connect(settings) as client,
        pytest.raises(
            UnreachableError, match="through the proxy: Tunnel connection failed: 407 Pr"
        ) as caught,
    ):
        client.get(PODS)

    assert "secret" not in str(caught.value)
