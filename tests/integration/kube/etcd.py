"""
What an administrator can do to etcd behind the API server's back.
"""

import http.client
import json
import socket
from pathlib import Path
from typing import Any


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def compact(folder: Path) -> None:
    """
    Make etcd forget all history, as it does every few minutes on its own.
    """
    path = folder / "etcd.sock"
    newest = _post(path, "/v3/kv/range", {"key": "AA==", "limit": 1})["header"]["revision"]
    _post(path, "/v3/kv/compaction", {"revision": newest, "physical": True})


def _post(path: Path, target: str, body: dict[str, Any]) -> dict[str, Any]:
    connection = _UnixConnection(path)
    try:
        connection.request("POST", target, json.dumps(body))
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == http.client.OK, content
        parsed: dict[str, Any] = json.loads(content)
        return parsed
    finally:
        connection.close()
