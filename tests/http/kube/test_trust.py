"""Whom a client believes, shown with real handshakes."""

import socket
import ssl
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kube import AccessError, UnreachableError, connect
from kube.tls import Certificates, Trust
from tests.http.kube.builders import AT_ONCE_SECONDS, PODS, SETTINGS, client_of, pods
from tests.support.api_server import ApiServer, reply
from tests.support.authority import Authority


def test_a_server_of_the_cluster_ca_is_believed(tmp_path: Path) -> None:
    """The CA from the settings decides."""
    authority = Authority(tmp_path)
    with ApiServer(authority.server_context()) as server:
        server.on(f"GET {PODS}", reply(pods()))
        with client_of(server, replace(SETTINGS, ca_file=authority.ca_file)) as client:
            assert [] == client.list(PODS).items


def test_strictness_can_be_asked_for(tmp_path: Path) -> None:
    """A CA without key identifiers passes by default, and only by default."""
    authority = Authority(tmp_path)
    flags = [
        Trust(Certificates(ca_file=authority.ca_file, strict=strict)).context.verify_flags
        for strict in (False, True)
    ]

    assert [False, True] == [bool(flag & ssl.VERIFY_X509_STRICT) for flag in flags]


def test_a_server_of_another_ca_is_refused(tmp_path: Path) -> None:
    """The error says that it is about trust, and nothing is sent."""
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    with ApiServer(theirs.server_context()) as server:
        client = client_of(server, replace(SETTINGS, ca_file=ours.ca_file))

        with pytest.raises(UnreachableError, match=r"certificate is not trusted: .*CA file"):
            client.get(PODS)

        assert [] == server.seen(f"GET {PODS}")


def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    """A good CA does not make a wrong name right."""
    authority = Authority(tmp_path)
    with ApiServer(authority.server_context("elsewhere.example")) as server:
        client = client_of(server, replace(SETTINGS, ca_file=authority.ca_file))

        with pytest.raises(UnreachableError, match="certificate is not trusted"):
            client.get(PODS)


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


def test_a_ca_file_without_certificates_is_refused_at_once(tmp_path: Path) -> None:
    """A broken CA file is named before anything is sent."""
    (tmp_path / "ca.crt").write_text("not a certificate")
    settings = replace(SETTINGS, server="https://127.0.0.1:1", ca_file=tmp_path / "ca.crt")

    with pytest.raises(AccessError, match=r"ca\.crt cannot be used: .*PEM form"):
        connect(settings)


def test_a_missing_ca_file_is_refused_at_once(tmp_path: Path) -> None:
    """A CA file that is not there never means to trust the machine's roots instead."""
    settings = replace(SETTINGS, server="https://127.0.0.1:1", ca_file=tmp_path / "none.crt")

    with pytest.raises(AccessError, match=r"none\.crt cannot be used: .*No such file"):
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
