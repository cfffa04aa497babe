"""What a program pays for the API server, in a pod and at a desk."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import yaml

from tests.http.kube.builders import PODS, pods
from tests.support.api_server import ApiServer, reply
from tests.support.authority import Authority

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
    """
    With a service account, one request over TLS stays far below what that package alone costs.
    """
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
    """Of the kubernetes package neither models nor watches, and no third party of its own."""
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
    dear = {"pydantic", "requests", "requests_oauthlib", "websocket", "kubernetes.dynamic"}
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
