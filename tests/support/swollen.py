"""Pods as large as etcd takes them, or almost."""

from typing import Any, Final

from kube import Client, JsonObject, NotFoundError, PatchType, TooLargeError
from tests.support.observing import wait_until

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
    """
    Take a pod out of the API at once, which needs room as well; without a status that was written
    its kubelet would never do so.
    """
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
