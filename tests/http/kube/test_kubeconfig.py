"""Kubeconfigs as people have them, used against a real TLS server."""

import base64
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kube import AccessError, Client, connect
from tests.http.kube.builders import PODS, SETTINGS, pods, status, tunnel
from tests.support.authority import Authority
from tests.support.servers import ApiServer, reply

LIST = f"GET {PODS}"
SECRET = "very-secret"
CA = {"certificate-authority": "ca.crt"}
KILLED = """
import os, signal, sys, kube
settings = kube.ClientSettings(kubeconfig=sys.argv[1])
print(len(kube.connect(settings).list(sys.argv[2]).items), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def secure(authority: Authority) -> Iterator[ApiServer]:
    with ApiServer(authority.server_context()) as server:
        server.on(LIST, reply(pods()))
        yield server


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def kubeconfig(
    folder: Path,
    server: ApiServer | None,
    user: Mapping[str, object] | None = None,
    cluster: Mapping[str, object] | None = None,
    *,
    name: str = "config",
    context: str = "here",
) -> Path:
    address = {"server": server.url} if server else {}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": f"{context}-cluster", "cluster": {**address, **(cluster or CA)}}],
        "users": [{"name": f"{context}-user", "user": dict(user or {})}],
        "contexts": [
            {
                "name": context,
                "context": {"cluster": f"{context}-cluster", "user": f"{context}-user"},
            }
        ],
    }
    path = folder / name
    path.write_text(yaml.safe_dump(content))
    return path


def plugin(token: str) -> Mapping[str, object]:
    version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}
    return {"apiVersion": version, "command": "echo", "args": [json.dumps(credential)]}


def client_from(path: object, context: str | None = None) -> Client:
    return connect(replace(SETTINGS, kubeconfig=str(path), context=context))


def authorization(server: ApiServer) -> list[str | None]:
    return [seen.headers.get("authorization") for seen in server.seen(LIST)]


@pytest.mark.parametrize(
    "user",
    [{"token": SECRET}, {"tokenFile": "mine.token"}, {"exec": plugin(SECRET)}],
    ids=["token", "file beside it", "program"],
)
def test_a_token_from_wherever_it_is_named(
    tmp_path: Path, authority: Authority, secure: ApiServer, user: Mapping[str, object]
) -> None:
    """In the kubeconfig, in a file of its own folder, or of a program; the CA is embedded."""
    (tmp_path / "mine.token").write_text(SECRET)
    data = {"certificate-authority-data": encoded(authority.pem)}
    with client_from(kubeconfig(tmp_path, secure, user, data)) as client:
        client.get(PODS)

    assert [f"Bearer {SECRET}"] == authorization(secure)


def test_the_default_place_is_tried_last(tmp_path: Path, secure: ApiServer) -> None:
    """Where nothing is said, the user's own kubeconfig is used, here one without any user."""
    path = kubeconfig(tmp_path, secure)
    path.write_text(path.read_text().replace("user: here-user", "user: ''"))
    with connect(replace(SETTINGS, default_kubeconfig=str(path))) as client:
        client.get(PODS)

    assert [None] == authorization(secure)


def test_a_proxy_of_the_kubeconfig_is_always_used(
    tmp_path: Path, authority: Authority, server: ApiServer
) -> None:
    """A proxy-url is meant, even for an address of this machine."""
    with ApiServer(authority.server_context()) as behind:
        behind.on(LIST, reply(pods()))
        key = f"CONNECT 127.0.0.1:{behind.port}"
        server.on(key, tunnel)
        path = kubeconfig(tmp_path, behind, cluster={**CA, "proxy-url": server.url})
        with client_from(path) as client:
            client.get(PODS)

        assert len(server.seen(key)) == 1


@pytest.mark.parametrize("by_file", [True, False], ids=["token file", "new login"])
def test_a_new_token_is_noticed_after_a_refusal(
    tmp_path: Path, authority: Authority, secure: ApiServer, *, by_file: bool
) -> None:
    """A token that rotates, in its file or in the kubeconfig, is used after the next refusal."""
    data = {"certificate-authority-data": encoded(authority.pem)}

    def write(token: str) -> Path:
        (tmp_path / "mine.token").write_text(token)
        user = {"tokenFile": "mine.token"} if by_file else {"token": token}
        return kubeconfig(tmp_path, secure, user, data)

    secure.on(LIST, reply(status(401, "Unauthorized"), 401), reply(pods()))
    with client_from(write("old")) as client:
        write("new")
        client.get(PODS)

    assert ["Bearer old", "Bearer new"] == authorization(secure)


def test_client_certificate(tmp_path: Path, authority: Authority) -> None:
    """A server that demands a certificate gets the kubeconfig's."""
    certificate, key = authority.client_pem("alice")
    user = {
        "client-certificate-data": encoded(certificate),
        "client-key-data": encoded(key),
    }
    with ApiServer(authority.server_context(demand_client=True)) as server:
        server.on(LIST, reply(pods()))
        path = kubeconfig(tmp_path, server, user)
        with client_from(path) as client:
            assert [] == client.list(PODS).items


def test_a_key_of_another_certificate_is_named(tmp_path: Path, authority: Authority) -> None:
    """A certificate and a key that do not belong together are refused before anything is sent."""
    certificate, _ = authority.client_pem("alice")
    _, key = authority.client_pem("bob")
    user = {
        "client-certificate-data": encoded(certificate),
        "client-key-data": encoded(key),
    }
    with ApiServer(authority.server_context()) as server:
        path = kubeconfig(tmp_path, server, user)

        with pytest.raises(AccessError, match="must be PEM and belong together"):
            client_from(path)


def test_a_program_that_is_killed_leaves_no_key_behind(
    tmp_path: Path, authority: Authority, secure: ApiServer
) -> None:
    """Embedded keys are in no file by the time a program speaks with the server."""
    certificate, key = authority.client_pem("alice")
    path = kubeconfig(
        tmp_path,
        secure,
        user={
            "exec": plugin("x"),
            "client-certificate-data": encoded(certificate),
            "client-key-data": encoded(key),
        },
        cluster={"certificate-authority-data": encoded(authority.pem)},
    )
    folder = tmp_path / "temporary"
    folder.mkdir()
    command = [sys.executable, "-c", KILLED, str(path), PODS]
    done = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(folder)}, capture_output=True, check=False
    )

    assert (-signal.SIGKILL, b"0\n") == (done.returncode, done.stdout), done.stderr
    assert [] == list(folder.iterdir())


def test_tls_server_name_replaces_the_hosts(tmp_path: Path, authority: Authority) -> None:
    """A server reached by a detour is verified by the name that the kubeconfig gives."""
    with ApiServer(authority.server_context("kubernetes.example")) as server:
        server.on(LIST, reply(pods()))
        path = kubeconfig(
            tmp_path,
            server,
            cluster={**CA, "tls-server-name": "kubernetes.example"},
        )
        with client_from(path) as client:
            assert [] == client.list(PODS).items


def test_unverified_servers_are_used_with_a_warning(
    tmp_path: Path, secure: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Who asks to skip verification gets it, and is told what it means."""
    path = kubeconfig(tmp_path, secure, cluster={"insecure-skip-tls-verify": True})
    with caplog.at_level(logging.WARNING), client_from(path) as client:
        client.get(PODS)

    assert f"the certificate of {secure.url} is NOT verified" in caplog.text


def test_an_expired_oidc_token_is_renewed(
    tmp_path: Path, authority: Authority, secure: ApiServer
) -> None:
    """The issuer is asked for another one, which is used and written down."""
    renewed = {"id_token": SECRET, "refresh_token": "second", "access_token": "a"}
    endpoints = {"token_endpoint": f"{secure.url}/token"}
    secure.on("GET /.well-known/openid-configuration", reply(endpoints))
    secure.on("POST /token", reply({**renewed, "token_type": "Bearer"}))
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 1}).encode()).decode().rstrip("=")
    config = {
        "client-id": "kubectl",
        "client-secret": "s",
        "id-token": f"head.{claims}.signature",
        "refresh-token": "first",
        "idp-issuer-url": secure.url,
        "idp-certificate-authority-data": encoded(authority.pem),
    }
    path = kubeconfig(tmp_path, secure, {"auth-provider": {"name": "oidc", "config": config}})
    with client_from(path) as client:
        client.get(PODS)

    assert [f"Bearer {SECRET}"] == authorization(secure)
    assert "second" in path.read_text()


def test_a_failing_exec_plugin_is_named(
    tmp_path: Path, secure: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A plugin that gives nothing ends the start, instead of going on as nobody."""
    failing = {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}
    path = kubeconfig(tmp_path, secure, {"exec": failing})

    with pytest.raises(AccessError, match="exec plugin 'false' gave no credentials"):
        client_from(path)

    assert "exec: process returned 1" in caplog.text


def test_as_impersonates(tmp_path: Path, secure: ApiServer) -> None:
    """A user entry with `as` acts as that user, as with kubectl."""
    path = kubeconfig(tmp_path, secure, {"token": SECRET, "as": "bob"})
    with client_from(path) as client:
        client.get(PODS)

    assert "bob" == secure.seen(LIST)[0].headers["impersonate-user"]


def test_another_context_can_be_chosen(tmp_path: Path, secure: ApiServer) -> None:
    """The first of several files wins the current context; any context can be asked for by name."""
    first = kubeconfig(tmp_path, secure, {"token": "one"}, name="a", context="first")
    second = kubeconfig(tmp_path, secure, {"token": "two"}, name="b", context="second")
    for context in (None, "second"):
        with client_from(f"{first}:{second}", context) as client:
            client.get(PODS)

    assert ["Bearer one", "Bearer two"] == authorization(secure)


@pytest.mark.parametrize(
    ("user", "problem"),
    [
        ({"token": SECRET, "as": "a", "as-groups": ["b"]}, "sets as-groups"),
        ({"auth-provider": {"name": "azure", "config": {"token": SECRET}}}, "'azure'.*exec plugin"),
        ({"exec": {"command": SECRET}}, "exec plugin"),
        ({"tokenFile": "missing.token", "token": SECRET}, "token file .*missing.token is missing"),
        ({"tokenFile": "missing.token"}, "No such file or directory: .*missing.token"),
        ({"token": SECRET, "client-certificate": "none.crt"}, r"File does not exist: .*none\.crt"),
    ],
    ids=["groups", "provider", "malformed exec", "token file", "token file alone", "certificate"],
)
def test_users_that_cannot_be_used_are_named(
    tmp_path: Path, secure: ApiServer, user: Mapping[str, object], problem: str
) -> None:
    """What a user entry asks for and cannot have is said before anything is sent."""
    path = kubeconfig(tmp_path, secure, user)

    with pytest.raises(AccessError, match=problem):
        client_from(path)


CONTEXT = "current-context: a\ncontexts: [{name: a, context: {cluster: x, user: u}}]\n"
NAMELESS_USER = f"clusters: [{{name: x, cluster: {{server: h}}}}]\nusers: [{{user: {SECRET}}}]"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "config file is empty"),
        ("[1, 2]", "has not the form of a kubeconfig"),
        ("just words", "has not the form of a kubeconfig"),
        ("a: [", "line 1: .*"),
        ("{current-context: a, contexts: []}", "has no context 'a'; contexts in it: none"),
        ("{contexts: [{name: b, context: {}}]}", "has no current-context; contexts in it: b"),
        (CONTEXT, "has no cluster 'x'; clusters in it: none"),
        (CONTEXT + "clusters: [{name: x, cluster: {}}]", "cluster 'x' has no server"),
        (CONTEXT + NAMELESS_USER, "an entry of its clusters, contexts or users has no name"),
    ],
)
def test_broken_kubeconfigs_are_explained(tmp_path: Path, content: str, problem: str) -> None:
    """Each way to be broken has its own words, and none shows a secret."""
    path = tmp_path / "config"
    path.write_text(content)

    with pytest.raises(AccessError, match=problem) as caught:
        client_from(path)

    assert str(path) in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    """A path that leads nowhere is shown with what would help."""
    with pytest.raises(AccessError, match="none does not exist; name an existing file"):
        client_from(tmp_path / "none")
