"""
What is no object, such as a pod's metrics through the proxy, and the namespace a context means.
"""

from pathlib import Path

import pytest

from kube import BadReplyError, Client, ForbiddenError, connect
from tests.http.kube.builders import SETTINGS, status
from tests.http.kube.test_kubeconfig import kubeconfig
from tests.support.api_server import ApiServer, reply

METRICS = "/api/v1/namespaces/a/pods/b:8080/proxy/metrics"
KEY = f"GET {METRICS}"


def test_text_comes_as_it_is(server: ApiServer, client: Client) -> None:
    """An answer that is no JSON is handed out, and the server was told that anything will do."""
    server.on(KEY, reply("first 1\nzweite ü 2\n".encode()))

    said = client.text(METRICS)

    assert "first 1\nzweite ü 2\n" == said
    assert "*/*" == server.seen(KEY)[0].headers["accept"]


def test_a_refused_text_is_the_same_error_as_ever(server: ApiServer, client: Client) -> None:
    """The API server's refusal of a proxied request is told by class."""
    server.on(KEY, reply(status(403, "Forbidden", "no"), 403))

    with pytest.raises(ForbiddenError):
        client.text(METRICS)


def test_a_success_without_content_is_no_text(server: ApiServer, client: Client) -> None:
    """Any other success than 200 is named, for nobody promised what it means."""
    server.on(KEY, reply({"kind": "Odd"}, 202))

    with pytest.raises(BadReplyError, match="status 202 comes without a text"):
        client.text(METRICS)


@pytest.mark.parametrize("named", ["", "team-a"])
def test_a_client_knows_the_namespace_of_its_context(
    tmp_path: Path, server: ApiServer, named: str
) -> None:
    """What a person has set with kubectl config set-context is there for programs of hers."""
    path = kubeconfig(tmp_path, server, cluster={})
    if named:
        text = path.read_text().replace(
            "user: here-user\n", "user: here-user\n    namespace: team-a\n", 1
        )
        path.write_text(text)

    client = connect(SETTINGS.__class__(kubeconfig=str(path)))

    assert named == client.namespace
