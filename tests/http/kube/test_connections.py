"""Connections: whom they trust, as whom they come, through which proxy, how long they serve."""

import socket
import ssl
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kube import AccessError, Client, ForbiddenError, UnreachableError, connect
from kube.access import Proxies
from kube.credentials import Certificates, Trust
from tests.http.kube.builders import (
    AT_ONCE_SECONDS,
    PODS,
    SETTINGS,
    client_of,
    pod,
    pods,
    status,
    tunnel,
)
from tests.support.authority import Authority
from tests.support.servers import Answer, ApiServer, Exchange, Seen, cut, hang, reply, watch


def test_strictness_can_be_asked_for(tmp_path: Path) -> None:
    """A CA without key identifiers passes by default, and only by default."""
    authority = Authority(tmp_path)
    flags = [
        Trust(Certificates(ca_file=authority.ca_file, strict=strict)).context.verify_flags
        for strict in (False, True)
    ]

    assert [False, True] == [bool(flag & ssl.VERIFY_X509_STRICT) for flag in flags]


@pytest.mark.parametrize(("named", "trusted"), [("127.0.0.1", "ours"), ("elsewhere.example", "")])
def test_a_server_that_is_not_trusted_is_refused(tmp_path: Path, named: str, trusted: str) -> None:
    """By another CA or for another name: the error is about trust, and nothing is sent."""
    theirs = Authority(tmp_path, "theirs")
    ours = Authority(tmp_path, trusted) if trusted else theirs
    with ApiServer(theirs.server_context(named)) as server:
        client = client_of(server, replace(SETTINGS, ca_file=ours.ca_file))

        with pytest.raises(UnreachableError, match=r"certificate is not trusted: .*CA file"):
            client.get(PODS)

        assert [] == server.seen(f"GET {PODS}")


def test_a_renewed_ca_is_picked_up(tmp_path: Path) -> None:
    """When the mounted CA file changes, the next failing handshake is repeated with the new CA."""
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    with ApiServer(new.server_context()) as server:
        server.on(f"GET {PODS}", reply(pods()))
        with client_of(server, replace(SETTINGS, ca_file=old.ca_file)) as client:
            old.ca_file.write_bytes(new.pem)

            assert [] == client.list(PODS).items


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\n", b"\xff"])
def test_a_half_written_ca_changes_nothing(tmp_path: Path, content: bytes) -> None:
    """A CA file in the middle of being replaced leaves the old trust in place."""
    authority = Authority(tmp_path)
    trust = Trust(Certificates(ca_file=authority.ca_file))
    authority.ca_file.write_bytes(content)

    assert not trust.reload()
    assert len(trust.context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("name", "why"),
    [("ca.crt", r"ca\.crt cannot be used: .*PEM form"), ("none.crt", r"none\.crt .*No such file")],
)
def test_a_ca_file_that_is_none_is_refused_at_once(tmp_path: Path, name: str, why: str) -> None:
    """One that is broken or not there never means to trust the machine's roots instead."""
    (tmp_path / "ca.crt").write_text("not a certificate")
    settings = replace(SETTINGS, server="https://127.0.0.1:1", ca_file=tmp_path / name)

    with pytest.raises(AccessError, match=why):
        connect(settings)


def test_a_server_without_tls_is_named_as_such(tmp_path: Path) -> None:
    """Speaking TLS to a plain port fails with words about TLS."""
    authority = Authority(tmp_path)
    with ApiServer() as server:
        url = server.url.replace("http://", "https://")
        client = connect(replace(SETTINGS, server=url, ca_file=authority.ca_file))

        with pytest.raises(UnreachableError, match="TLS failed"):
            client.get(PODS)


def test_a_stuck_handshake_ends_with_the_connect_timeout(tmp_path: Path) -> None:
    """A server that accepts and then says nothing does not hold a thread for long."""
    authority = Authority(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = replace(
            SETTINGS,
            server=f"https://127.0.0.1:{listener.getsockname()[1]}",
            ca_file=authority.ca_file,
            connect_timeout_seconds=0.05,
        )
        began = time.monotonic()

        with pytest.raises(UnreachableError):
            connect(settings).get(PODS)

    assert time.monotonic() - began < AT_ONCE_SECONDS


def test_abort_wakes_a_thread_that_reads_over_tls(tmp_path: Path) -> None:
    """Cutting a TLS connection from another thread ends the read at once."""
    authority = Authority(tmp_path)
    with ApiServer(authority.server_context()) as server:
        server.on(f"GET {PODS}", lambda exchange: exchange.hang())
        client = client_of(server, replace(SETTINGS, ca_file=authority.ca_file))
        caught: list[BaseException] = []

        def read() -> None:
            try:
                client.get(PODS)
            except UnreachableError as error:
                caught.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        server.wait_for(f"GET {PODS}", 1)
        client.abort()
        thread.join(SETTINGS.reply_timeout_seconds / 2)

        assert len(caught) == 1
        assert len(server.seen(f"GET {PODS}")) == 1


LIST = f"GET {PODS}"
UNAUTHORIZED = reply(status(401, "Unauthorized", "token expired"), 401)


def tokens(requests: list[Seen]) -> list[str | None]:
    return [seen.headers.get("authorization") for seen in requests]


def test_a_pod_speaks_as_its_service_account(tmp_path: Path) -> None:
    """Inside a cluster the mounted token and CA are all that is needed."""
    authority = Authority(tmp_path)
    (tmp_path / "token").write_text("first\n")
    with ApiServer(authority.server_context()) as server:
        server.on(LIST, reply(pods()))
        settings = replace(
            SETTINGS,
            service_host="127.0.0.1",
            service_port=str(server.port),
            service_account=tmp_path,
        )
        with connect(settings) as client:
            client.get(PODS)

        assert ["Bearer first"] == tokens(server.seen(LIST))


def test_a_rotated_token_is_used_after_a_refusal(server: ApiServer, tmp_path: Path) -> None:
    """A 401 makes the client read the file at once and ask once more."""
    token = tmp_path / "token"
    token.write_text("old")
    server.on(LIST, reply(pods()), UNAUTHORIZED, reply(pods()))
    with client_of(server, replace(SETTINGS, token_file=token)) as client:
        client.get(PODS)
        token.write_text("new")
        client.get(PODS)

    assert ["Bearer old", "Bearer old", "Bearer new"] == tokens(server.seen(LIST))


def test_a_watch_is_opened_with_the_rotated_token(server: ApiServer, tmp_path: Path) -> None:
    """Streams renew their token as ordinary requests do."""
    token = tmp_path / "token"
    token.write_text("old")
    server.on(f"WATCH {PODS}", UNAUTHORIZED, watch({"type": "x"}))
    with client_of(server, replace(SETTINGS, token_file=token)) as client:
        token.write_text("new")
        # The header still holds the old token: the file is not read at every request.
        stream = client.stream(PODS, {"watch": "true"}, silence_seconds=1)
        received = b"".join(stream.chunks())

    assert b'{"type": "x"}\n' == received
    assert ["Bearer old", "Bearer new"] == tokens(server.seen(f"WATCH {PODS}"))


def test_a_token_that_stays_refused_is_reported(server: ApiServer, tmp_path: Path) -> None:
    """One renewal is tried, then the refusal is the answer."""
    token = tmp_path / "token"
    token.write_text("unknown")
    server.on(LIST, UNAUTHORIZED)
    with (
        client_of(server, replace(SETTINGS, token_file=token)) as client,
        pytest.raises(ForbiddenError, match="401 Unauthorized: token expired"),
    ):
        client.get(PODS)

    assert len(server.seen(LIST)) == 2


def test_without_credentials_a_refusal_is_not_repeated(server: ApiServer) -> None:
    """Who has nothing fresher to show asks once."""
    server.on(LIST, UNAUTHORIZED)
    with client_of(server) as client, pytest.raises(ForbiddenError):
        client.get(PODS)

    assert len(server.seen(LIST)) == 1


def test_no_token_appears_in_errors_and_reprs(server: ApiServer, tmp_path: Path) -> None:
    """Whatever is printed about a client, its token is not part of it."""
    token = tmp_path / "token"
    token.write_text("very-secret")
    server.on(LIST, UNAUTHORIZED)
    with (
        client_of(server, replace(SETTINGS, token_file=token)) as client,
        pytest.raises(ForbiddenError) as caught,
    ):
        client.get(PODS)

    shown = f"{caught.value!r} {client!r} {client._access!r} {client._settings!r}"
    assert "very-secret" not in shown


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


POD = "/api/v1/namespaces/a/pods/p"
KEY = f"GET {POD}"
PAGE = f"{POD}/proxy/v1/snapshot"


def test_all_questions_go_over_one_connection(server: ApiServer, client: Client) -> None:
    """Objects, pages and texts, whole and in chunks, come over the connection of the first."""
    callers = set()

    def noted(exchange: Exchange) -> None:
        callers.add(exchange.client_address)
        watch(pods(pod("a"), pod("b")))(exchange)

    server.on(f"GET {PODS}", noted)
    for _ in range(3):
        assert ["a", "b"] == [item["metadata"]["name"] for item in client.list(PODS).items]

    assert 1 == len(callers)


def test_a_question_is_the_same_on_every_connection(server: ApiServer, client: Client) -> None:
    """A server sees no difference between the first and those after it."""
    server.on(KEY, reply(pod("p")))
    client.get(POD, {"a": "b c"})
    client.get(POD, {"a": "b c"})
    first, second = server.seen(KEY)

    assert (first.query, first.headers) == (second.query, second.headers)


def _odd(exchange: Exchange) -> None:
    exchange.wfile.write(b"HTTP/9 no\r\n\r\n")


@pytest.mark.parametrize("answer", [cut(), _odd], ids=["cut", "odd"])
def test_a_connection_that_broke_is_replaced_once(
    server: ApiServer, client: Client, answer: Answer
) -> None:
    """The same question is asked on a new one, where its answer counts."""
    server.on(KEY, reply(pod("p")), answer, reply(pod("q")))
    client.get(POD)

    assert "q" == client.get(POD)["metadata"]["name"]
    assert 3 == len(server.seen(KEY))


def test_a_server_that_breaks_every_connection_is_asked_twice(
    server: ApiServer, client: Client
) -> None:
    """No more than with a connection that is new."""
    server.on(KEY, reply(pod("p")), cut())
    client.get(POD)

    with pytest.raises(UnreachableError, match="broke off"):
        client.get(POD)

    assert 3 == len(server.seen(KEY))


def test_patience_holds_on_every_connection(server: ApiServer) -> None:
    """Whoever says nothing is not asked once more."""
    server.on(KEY, reply(pod("p")), hang())
    with client_of(server, replace(SETTINGS, reply_timeout_seconds=0.3)) as client:
        client.get(POD)
        began = time.monotonic()
        with pytest.raises(UnreachableError, match="no answer in time"):
            client.get(POD)

        assert 0.3 <= time.monotonic() - began
        assert 2 == len(server.seen(KEY))


def test_half_an_answer_is_named(server: ApiServer, client: Client) -> None:
    """What came of a page is not taken for all of it, the next comes over a new connection."""
    server.on(f"GET {PAGE}", reply(b"x"), watch(b"half", then="cut"), reply(b"y"))
    assert "x" == client.text(PAGE)

    with pytest.raises(UnreachableError, match="broke off"):
        client.text(PAGE)

    assert "y" == client.text(PAGE)
