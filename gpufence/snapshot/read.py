"""
Reading a snapshot that some agent, of whatever version, sent over the network.

What a newer agent adds is passed over; what is not as promised is named and nothing is guessed.
"""

from __future__ import annotations

from typing import Final

from gpufence.errors import InvalidError, Problem
from gpufence.quantity import read_bytes
from gpufence.shape import Object, as_integer, as_text, objects, read_versioned
from gpufence.snapshot.model import (
    CardRow,
    NobodyRow,
    OwnerRow,
    PodRow,
    ProcessRow,
    Snapshot,
    UseRow,
)
from gpufence.snapshot.write import VERSION

_NAME = "snapshot"
_LONGEST_SECONDS: Final = 2**40
"""More than any machine has been up; a float of that size still tells milliseconds."""


def read_snapshot(text: str) -> Snapshot:
    """
    Read what `/v1/snapshot` answers.

    Raises:
        UnknownVersionError: a newer agent wrote it.
        InvalidError: it is not what an agent writes.
    """
    said = read_versioned(text, _NAME, VERSION)
    return Snapshot(
        node=_text(said, "node", _NAME),
        version=_text(said, "version", _NAME),
        at=_text(said, "at", _NAME),
        started=_text(said, "started", _NAME),
        driver=_text(said, "driver", _NAME),
        highest=_text(said, "highest", _NAME),
        fresh=_flag(said, "fresh", _NAME),
        stale_seconds=_maybe_seconds(said, "stale", _NAME),
        brake=_text(said, "brake", _NAME),
        trouble=_text(said, "trouble", _NAME),
        cards=tuple(_card(item, path) for item, path in _rows(said, "cards", _NAME)),
        pods=tuple(_pod(item, path) for item, path in _rows(said, "pods", _NAME)),
        nobody=tuple(_nobody(item, path) for item, path in _rows(said, "nobody", _NAME)),
        owners=tuple(_owner(item, path) for item, path in _rows(said, "owners", _NAME)),
    )


def _card(said: Object, path: str) -> CardRow:
    return CardRow(
        uuid=_text(said, "uuid", path),
        index=_count(said, "index", path),
        model=_text(said, "model", path),
        total_bytes=_bytes(said, "total", path),
        used_bytes=_maybe_bytes(said, "used", path),
        free_bytes=_maybe_bytes(said, "free", path),
        reserved_bytes=_maybe_bytes(said, "reserved", path),
        committed_bytes=_bytes(said, "committed", path),
        unattributed_bytes=_maybe_bytes(said, "unattributed", path),
        listed_seconds_ago=_maybe_seconds(said, "listed", path),
        mps=_flag(said, "mps", path),
        trouble=_text(said, "trouble", path),
    )


def _pod(said: Object, path: str) -> PodRow:
    return PodRow(
        uid=_text(said, "uid", path),
        namespace=_text(said, "namespace", path),
        name=_text(said, "name", path),
        mode=_text(said, "mode", path),
        owner=_text(said, "owner", path),
        injected=_flag(said, "injected", path),
        undeclared=_text(said, "undeclared", path),
        terminating=_flag(said, "terminating", path),
        uses=tuple(_use(item, place) for item, place in _rows(said, "uses", path)),
    )


def _use(said: Object, path: str) -> UseRow:
    return UseRow(
        card=_text(said, "card", path),
        used_bytes=_maybe_bytes(said, "used", path),
        limit_bytes=_maybe_bytes(said, "limit", path),
        allowance_bytes=_maybe_bytes(said, "allowance", path),
        outcome=_text(said, "outcome", path),
        over_seconds=_seconds(said, "over", path),
        due_seconds=_maybe_seconds(said, "due", path),
        processes=tuple(_process(item, place) for item, place in _rows(said, "processes", path)),
    )


def _process(said: Object, path: str) -> ProcessRow:
    return ProcessRow(
        pid=_count(said, "pid", path),
        used_bytes=_maybe_bytes(said, "used", path),
        container=_text(said, "container", path),
        command=_text(said, "command", path),
    )


def _nobody(said: Object, path: str) -> NobodyRow:
    return NobodyRow(card=_text(said, "card", path), process=_process(said, path))


def _owner(said: Object, path: str) -> OwnerRow:
    return OwnerRow(
        namespace=_text(said, "namespace", path),
        kind=_text(said, "kind", path),
        name=_text(said, "name", path),
        limit_bytes=_maybe_bytes(said, "limit", path),
        peak_bytes=_bytes(said, "peak", path),
        over_seconds=_seconds(said, "over", path),
        processes=_count(said, "processes", path),
        injected=_flag(said, "injected", path),
        pods=_count(said, "pods", path),
        evictions=_count(said, "evictions", path),
    )


def _rows(said: Object, key: str, path: str) -> list[tuple[Object, str]]:
    field = f"{path}.{key}"
    found = objects(said.get(key), field)
    return [(item, f"{field}[{position}]") for position, item in enumerate(found)]


def _text(said: Object, key: str, path: str) -> str:
    return as_text(said.get(key), f"{path}.{key}")


def _count(said: Object, key: str, path: str) -> int:
    return as_integer(said.get(key), f"{path}.{key}")


def _bytes(said: Object, key: str, path: str) -> int:
    return read_bytes(said.get(key), f"{path}.{key}")


def _maybe_bytes(said: Object, key: str, path: str) -> int | None:
    return None if said.get(key) is None else _bytes(said, key, path)


def _flag(said: Object, key: str, path: str) -> bool:
    value = said.get(key)
    if isinstance(value, bool):
        return value
    raise InvalidError(
        Problem(f"{path}.{key}", repr(value), "is neither true nor false", "write one of the two")
    )


def _seconds(said: Object, key: str, path: str) -> float:
    value = said.get(key)
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is not None and 0 <= number <= _LONGEST_SECONDS:
        return float(number)
    remedy = "write a number of at least 0"
    raise InvalidError(Problem(f"{path}.{key}", repr(value), "is no number of seconds", remedy))


def _maybe_seconds(said: Object, key: str, path: str) -> float | None:
    return None if said.get(key) is None else _seconds(said, key, path)
