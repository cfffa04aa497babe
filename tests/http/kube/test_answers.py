"""What is read of an answer: lists page by page, texts, pages of programs, and what that costs."""

import base64
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from kube import (
    BadReplyError,
    Client,
    ForbiddenError,
    GoneError,
    UnreachableError,
    connect,
    fetch_page,
)
from tests.http.kube.builders import PODS, SETTINGS, Dripping, pod, pods, status
from tests.http.kube.test_kubeconfig import kubeconfig
from tests.support.authority import Authority
from tests.support.servers import PATIENCE_SECONDS, Answer, ApiServer, reply, watch


def test_lists_put_pages_together(server: ApiServer, client: Client) -> None:
    """All pages of one list come back as one, with the version of that list."""
    server.on(
        f"GET {PODS}",
        reply(pods(pod("a"), pod("b"), token="next&1")),
        reply(pods(pod("c"))),
    )

    listing = client.list(PODS, {"labelSelector": "gpu=yes"}, page_size=2)

    first, second = (seen.query for seen in server.seen(f"GET {PODS}"))
    assert ["a", "b", "c"] == [item["metadata"]["name"] for item in listing.items]
    assert "10" == listing.resource_version
    assert {"labelSelector": "gpu=yes", "limit": "2"} == first
    assert {"labelSelector": "gpu=yes", "limit": "2", "continue": "next&1"} == second


def test_a_list_that_expires_between_pages_begins_anew(server: ApiServer, client: Client) -> None:
    """After 410 in the middle, no object of the abandoned list is left."""
    server.on(
        f"GET {PODS}",
        reply(pods(pod("deleted-meanwhile"), token="t")),
        reply(status(410, "Expired"), 410),
        reply(pods(pod("a"), version="20", token="u")),
        reply(pods(pod("b"), version="20")),
    )

    listing = client.list(PODS, page_size=1)

    assert ["a", "b"] == [item["metadata"]["name"] for item in listing.items]
    assert "20" == listing.resource_version


def test_a_list_that_always_expires_is_given_up(server: ApiServer, client: Client) -> None:
    """Paging that cannot keep up ends in an error instead of a loop."""
    first, second = reply(pods(pod("a"), token="t")), reply(status(410, "Expired"), 410)
    server.on(f"GET {PODS}", first, second, first, second, first, second)

    with pytest.raises(GoneError):
        client.list(PODS)

    assert len(server.seen(f"GET {PODS}")) == 6


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


PAGE = "/v1/snapshot"


def test_a_page_is_read_with_its_query(server: ApiServer) -> None:
    """What is asked for comes back as text."""
    server.on(f"GET {PAGE}", reply("grüße".encode()))

    assert "grüße" == fetch_page(f"{server.url}{PAGE}", 30.0, 100, {"only": "pods,cards"})
    assert {"only": "pods,cards"} == server.seen(f"GET {PAGE}")[0].query


def test_no_proxy_is_asked(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that the environment names stands before the internet, not before our programs."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.on(f"GET {PAGE}", reply(b"x"))

    assert "x" == fetch_page(f"{server.url}{PAGE}", 30.0, 100)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(b"x" * 101), "longer than 100 bytes"),
        (reply(b"no", status=404), "status 404"),
        (reply(b"", status=302, headers={"Location": "/elsewhere"}), "status 302"),
    ],
)
def test_what_is_no_page_is_an_error(server: ApiServer, answer: Answer, why: str) -> None:
    """A refusal, a redirect and too much are named."""
    server.on(f"GET {PAGE}", answer)

    with pytest.raises(BadReplyError, match=why):
        fetch_page(f"{server.url}{PAGE}", 30.0, 100)


def test_half_a_page_is_an_error(server: ApiServer) -> None:
    """What came of it is not taken for all of it."""
    server.on(f"GET {PAGE}", watch(b"half", then="cut"))

    with pytest.raises(UnreachableError, match="broke off"):
        fetch_page(f"{server.url}{PAGE}", 30.0, 100)


@pytest.mark.parametrize(
    ("headers", "head"),
    [({}, True), ({"Content-Length": "100000"}, False), ({"Connection": "close"}, False)],
)
def test_a_page_that_never_ends_is_not_waited_for(
    headers: Mapping[str, str], *, head: bool
) -> None:
    """All of it has to come in time, wherever it drips."""
    with Dripping(headers, head=head) as dripping:
        began = time.monotonic()
        with pytest.raises(UnreachableError, match=r"no whole answer in 0\.5 s|no answer in time"):
            fetch_page(f"{dripping.url}{PAGE}", 0.5, 2**20)
        took = time.monotonic() - began

    assert PATIENCE_SECONDS > took


PROGRAM = """
import sys
from pathlib import Path
import kube
settings = kube.ClientSettings(
    service_host="127.0.0.1", service_port=sys.argv[1], service_account=Path(sys.argv[2])
)
kube.connect(settings).list(sys.argv[3])
status = Path("/proc/self/status").read_text()
peak = int(status.split("VmHWM:")[1].split()[0])
print(peak, any(name.split(".")[0] in {"kubernetes", "pydantic", "yaml"} for name in sys.modules))
"""
AT_A_DESK = """
import os, sys, tempfile
import kube
kube.connect(kube.ClientSettings(kubeconfig=sys.argv[1])).list(sys.argv[2])
print(len(os.listdir(tempfile.gettempdir())))
"""


def test_a_pod_never_loads_the_kubernetes_package(tmp_path: Path) -> None:
    """With a service account, one request over TLS takes far less than that package alone."""
    authority = Authority(tmp_path)
    (tmp_path / "token").write_text("t")
    with ApiServer(authority.server_context()) as server:
        server.on(f"GET {PODS}", reply(pods()))
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(server.port), str(tmp_path), PODS],
            check=True,
            capture_output=True,
            text=True,
        )

    peak_kib, loaded = run.stdout.split()
    assert "False" == loaded
    assert int(peak_kib) < 36 * 1024


LOADED = """
import sys
import kube
kube.connect(kube.ClientSettings(kubeconfig=sys.argv[1]))
print(*sys.modules)
"""


def test_a_desk_loads_what_reads_kubeconfigs_and_no_more(tmp_path: Path) -> None:
    """Neither models nor watches, the package's or ours, and no third party of that package."""
    with ApiServer() as server:
        cluster = {"server": server.url}
        content = {
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": cluster}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": {"token": "t"}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(content))
        run = subprocess.run(
            [sys.executable, "-c", LOADED, str(tmp_path / "config")],
            check=True,
            capture_output=True,
            text=True,
        )

    loaded = set(run.stdout.split())
    dear = {"pydantic", "requests", "oauthlib", "websocket", "kubernetes.dynamic", "kube.informers"}
    assert "kubernetes.config.kube_config" in loaded
    assert set() == loaded & {*dear, "kubernetes.client.api_client", "kubernetes.client.models"}


def test_an_embedded_ca_is_gone_once_it_is_read(tmp_path: Path) -> None:
    """The copy that TLS needs as a file does not outlive the connection that is made with it."""
    authority = Authority(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with ApiServer(authority.server_context()) as server:
        server.on(f"GET {PODS}", reply(pods()))
        data = base64.b64encode(authority.pem).decode()
        cluster = {"server": server.url, "certificate-authority-data": data}
        content = {
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": cluster}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": {"token": "t"}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(content))
        run = subprocess.run(
            [sys.executable, "-c", AT_A_DESK, str(tmp_path / "config"), PODS],
            env={**os.environ, "TMPDIR": str(scratch)},
            check=True,
            capture_output=True,
            text=True,
        )

    assert ["0"] == run.stdout.split()
    assert [] == list(scratch.iterdir())
