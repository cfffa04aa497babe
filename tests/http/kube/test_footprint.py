"""
What a program in a pod pays for the API server.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.http.kube.authority import Authority
from tests.http.kube.builders import PODS, pods
from tests.http.kube.server import ApiServer, reply

if TYPE_CHECKING:
    from pathlib import Path

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
