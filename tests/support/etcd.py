"""What an administrator can do to etcd behind the API server's back."""

import base64
import http.client
import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

_MOST_AT_ONCE: Final = 100
"""etcd takes 128 operations in one transaction."""


class Etcd:
    """The store of a control plane; close it."""

    def __init__(self, folder: Path) -> None:
        self._connection = _UnixConnection(folder / "etcd.sock")

    def close(self) -> None:
        self._connection.close()

    def compact(self) -> None:
        """Forget all history, as it does every few minutes on its own."""
        newest = self._ask("/v3/kv/range", {"key": "AA==", "limit": 1})["header"]["revision"]
        self._ask("/v3/kv/compaction", {"revision": newest, "physical": True})

    def get(self, key: str) -> bytes:
        [found] = self._ask("/v3/kv/range", {"key": _text(key.encode())})["kvs"]
        return base64.b64decode(found["value"])

    def put(self, pairs: Iterable[tuple[str, bytes]]) -> None:
        """Write values below their keys, many at a time."""
        left = iter(pairs)
        while some := list(islice(left, _MOST_AT_ONCE)):
            puts = [
                {"requestPut": {"key": _text(key.encode()), "value": _text(value)}}
                for key, value in some
            ]
            self._ask("/v3/kv/txn", {"success": puts})

    def fill(self, *, full: bool) -> None:
        """Raise or lift the alarm by which etcd takes nothing more, as when its disk is full."""
        member = self._ask("/v3/maintenance/status", {})["header"]["member_id"]
        action = "ACTIVATE" if full else "DEACTIVATE"
        body = {"action": action, "memberID": member, "alarm": "NOSPACE"}
        self._ask("/v3/maintenance/alarm", body)

    def _ask(self, target: str, body: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", target, json.dumps(body))
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status == http.client.OK, content
        parsed: dict[str, Any] = json.loads(content)
        return parsed


def compact(folder: Path) -> None:
    with closing(Etcd(folder)) as etcd:
        etcd.compact()


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Let the etcd of a control plane take nothing more, as when its disk is full."""
    with closing(Etcd(folder)) as etcd:
        etcd.fill(full=True)
        try:
            yield
        finally:
            etcd.fill(full=False)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
