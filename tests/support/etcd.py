"""What is done to etcd behind the API server's back, and pods as large as it takes them."""

import base64
import http.client
import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kube import Client, JsonObject, NotFoundError, PatchType, TooLargeError
from tests.support.observing import wait_until

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


MOST_OF_IT: Final = 1_500_000
"""So many bytes leave less room in what etcd takes of one object than annotations may fill."""
_MOST_OF_ANNOTATIONS: Final = 200_000
_PADDING: Final = "padding"


def padded(pod: dict[str, Any]) -> dict[str, Any]:
    """Make a pod so large that annotations can take the rest, by a probe that is never asked."""
    probe = {"periodSeconds": 86_400, "exec": {"command": ["x" * MOST_OF_IT]}}
    pod["spec"]["containers"][0]["startupProbe"] = probe
    return pod


def fill(client: Client, path: str, room: int) -> None:
    """Annotate a padded pod, as anybody who may edit it can, until etcd takes `room` bytes more."""
    fits, exceeds = 0, _MOST_OF_ANNOTATIONS
    while exceeds - fits > 1:
        middle = (fits + exceeds) // 2
        if _has_room_for(client, path, middle):
            fits = middle
        else:
            exceeds = middle
    _has_room_for(client, path, fits - room)


def forget_writers(client: Client, path: str) -> None:
    """Take off a pod's entries of field managers, after which nothing is written into them."""
    client.patch(path, {"metadata": {"managedFields": [{}]}}, PatchType.MERGE)


def forget_conditions(client: Client, path: str) -> None:
    client.patch(f"{path}/status", {"status": {"conditions": None}}, PatchType.MERGE)


def end(client: Client, path: str) -> None:
    """Take a pod out of the API at once, which needs room as well."""
    _has_room_for(client, path, 0)
    wait_until(lambda: _is_deleted(client, path), "the API server's cache has the full pod")


def _is_deleted(client: Client, path: str) -> bool:
    try:
        client.delete(path, {"gracePeriodSeconds": 0})
    except TooLargeError:
        return False
    except NotFoundError:
        return True
    return True


def _has_room_for(client: Client, path: str, size: int) -> bool:
    body: JsonObject = {"metadata": {"annotations": {_PADDING: "x" * size}}}
    try:
        client.patch(path, body, PatchType.MERGE)
    except TooLargeError:
        return False
    return True
