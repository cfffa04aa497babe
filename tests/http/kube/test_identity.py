"""As whom a client speaks: tokens that rotate, in a pod and from files."""

from dataclasses import replace
from pathlib import Path

import pytest

from kube import ForbiddenError, connect
from tests.http.kube.builders import PODS, SETTINGS, client_of, pods, status
from tests.support.api_server import ApiServer, Seen, reply, watch
from tests.support.authority import Authority

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
