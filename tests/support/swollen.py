"""Pods as large as etcd takes them, or almost."""

from typing import Any, Final

from kube import Client, PatchType, ReplyError

_MANY: Final = 4096
_TAIL: Final = "t"
_LONGEST: Final = 63
_REFUSAL: Final = "too large"


def swell(client: Client, path: str, room: int) -> None:
    """
    Put labels on a pod, as whoever may edit it can, until etcd takes no more than `room` bytes of
    it, or a little less.
    """
    last, step = 0, _MANY
    while step:
        labels = {f"l{number:06}".ljust(_LONGEST, "l"): "v" * 63 for number in _next(last, step)}
        if _fits(client, path, labels):
            last += step
        else:
            step //= 2
    _fill(client, path, room)


def _next(last: int, step: int) -> range:
    return range(last, last + step)


def _fill(client: Client, path: str, room: int) -> None:
    """Put short labels on it until not even one of a byte fits, then take off what `room` asks."""
    number = 0
    while _fits(client, path, {f"{_TAIL}{number:03}": ""}):
        number += 1
    length = 0
    while number and _fits(client, path, {f"{_TAIL}000": "v" * (length + 1)}):
        length += 1
    spare, first = room - length, 0
    if spare <= 0:
        _fits(client, path, {f"{_TAIL}000": "v" * (length - room)})
        return
    while spare > 0 and first < number:
        each = {f"{_TAIL}{first:03}": None}
        client.patch(path, {"metadata": {"labels": each}}, PatchType.MERGE)
        spare, first = spare - 20, first + 1


def _fits(client: Client, path: str, labels: dict[str, Any]) -> bool:
    """Put labels on a pod; return whether they fitted."""
    try:
        client.patch(path, {"metadata": {"labels": labels}}, PatchType.MERGE)
    except ReplyError as error:
        if _REFUSAL not in error.failure.message:
            raise
        return False
    return True
