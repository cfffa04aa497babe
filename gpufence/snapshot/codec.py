"""
A snapshot as JSON, written and read: amounts as quantities, times as seconds, null for what nobody
can tell.

A reader passes over what a newer agent adds; what is not as promised is named, nothing is guessed.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from gpufence.errors import InvalidError, Problem, described
from gpufence.quantity import read_bytes, write_bytes
from gpufence.shape import Object, as_integer, as_object, as_text, objects, read_versioned
from gpufence.snapshot.rows import (
    ActivityRow,
    CardRow,
    NobodyRow,
    OwnerRow,
    PodRow,
    ProcessRow,
    Snapshot,
    UseRow,
)

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R", bound=tuple[Any, ...])

VERSION: Final = 1

_NAME = "snapshot"
_MILLISECONDS = 3
_LONGEST_SECONDS: Final = 2**40
"""More than any machine has been up; a float of that size still tells milliseconds."""


def write_snapshot(snapshot: Snapshot) -> str:
    """
    Write one line of JSON, keys in a fixed order; times are kept to the millisecond.
    """
    whole = {"v": VERSION, **_write_row(snapshot)}
    return json.dumps(whole, separators=(",", ":"), allow_nan=False)


def read_snapshot(text: str) -> Snapshot:
    """
    Read what `/v1/snapshot` answers.

    Raises:
        UnknownVersionError: a newer agent wrote it.
        InvalidError: it is not what an agent writes.
    """
    return _read_row(Snapshot, read_versioned(text, _NAME, VERSION), _NAME)


def _write_row(row: tuple[object, ...]) -> dict[str, object]:
    fields = _FIELDS[type(row)]
    return {key: kind.write(value) for (key, kind), value in zip(fields, row, strict=True)}


def _read_row(row: Callable[..., R], written: Object, path: str) -> R:
    return row(*[kind.read(written.get(key), f"{path}.{key}") for key, kind in _FIELDS[row]])


def _write_process(row: ProcessRow) -> dict[str, object]:
    """
    Write a process without the texts that do not apply to it.
    """
    return {key: value for key, value in _write_row(row).items() if value != ""}


def _write_nobody(row: NobodyRow) -> dict[str, object]:
    return {"card": row.card, **_write_process(row.process)}


def _read_nobody(written: Object, path: str) -> NobodyRow:
    return NobodyRow(
        as_text(written.get("card"), f"{path}.card"), _read_row(ProcessRow, written, path)
    )


def _read_flag(value: object, path: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidError(
        Problem(path, described(value), "is neither true nor false", "write one of the two")
    )


def _read_seconds(value: object, path: str) -> float:
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is not None and 0 <= number <= _LONGEST_SECONDS:
        return float(number)
    remedy = "write a number of at least 0"
    raise InvalidError(Problem(path, described(value), "is no number of seconds", remedy))


class _FieldKind(NamedTuple):
    """
    How the values of a field are written and read; `read` takes what was written and its path.
    """

    write: Callable[[Any], object]
    read: Callable[[object, str], object]


def _or_null(kind: _FieldKind) -> _FieldKind:
    return _FieldKind(
        lambda value: None if value is None else kind.write(value),
        lambda value, path: None if value is None else kind.read(value, path),
    )


def _list_of(write: Callable[[Any], object], read: Callable[[Object, str], object]) -> _FieldKind:
    return _FieldKind(
        lambda rows: [write(row) for row in rows],
        lambda value, path: tuple(
            read(item, f"{path}[{position}]") for position, item in enumerate(objects(value, path))
        ),
    )


def _row(row: Callable[..., tuple[Any, ...]]) -> _FieldKind:
    return _FieldKind(_write_row, lambda value, path: _read_row(row, as_object(value, path), path))


def _rows(row: Callable[..., tuple[Any, ...]]) -> _FieldKind:
    return _list_of(_write_row, partial(_read_row, row))


_TEXT = _FieldKind(str, as_text)
_COUNT = _FieldKind(int, as_integer)
_FLAG = _FieldKind(bool, _read_flag)
_BYTES = _FieldKind(lambda amount: write_bytes(amount, largest="Mi"), read_bytes)
_SECONDS = _FieldKind(lambda seconds: round(seconds, _MILLISECONDS), _read_seconds)
_MAYBE_BYTES = _or_null(_BYTES)
_MAYBE_SECONDS = _or_null(_SECONDS)

_FIELDS: Final[dict[object, tuple[tuple[str, _FieldKind], ...]]] = {
    CardRow: (
        ("uuid", _TEXT),
        ("index", _COUNT),
        ("model", _TEXT),
        ("total", _BYTES),
        ("used", _MAYBE_BYTES),
        ("free", _MAYBE_BYTES),
        ("reserved", _MAYBE_BYTES),
        ("committed", _BYTES),
        ("unattributed", _MAYBE_BYTES),
        ("listed", _MAYBE_SECONDS),
        ("mps", _FLAG),
        ("trouble", _TEXT),
    ),
    ProcessRow: (
        ("pid", _COUNT),
        ("used", _MAYBE_BYTES),
        ("container", _TEXT),
        ("command", _TEXT),
    ),
    ActivityRow: (
        ("state", _TEXT),
        ("idle_seconds", _MAYBE_SECONDS),
        ("evidence", _TEXT),
        ("why", _TEXT),
    ),
    UseRow: (
        ("card", _TEXT),
        ("used", _MAYBE_BYTES),
        ("limit", _MAYBE_BYTES),
        ("allowance", _MAYBE_BYTES),
        ("outcome", _TEXT),
        ("over", _SECONDS),
        ("due", _MAYBE_SECONDS),
        ("processes", _list_of(_write_process, partial(_read_row, ProcessRow))),
        ("activity", _or_null(_row(ActivityRow))),
    ),
    PodRow: (
        ("uid", _TEXT),
        ("namespace", _TEXT),
        ("name", _TEXT),
        ("mode", _TEXT),
        ("owner", _TEXT),
        ("injected", _FLAG),
        ("undeclared", _TEXT),
        ("terminating", _FLAG),
        ("uses", _rows(UseRow)),
    ),
    OwnerRow: (
        ("namespace", _TEXT),
        ("kind", _TEXT),
        ("name", _TEXT),
        ("limit", _MAYBE_BYTES),
        ("peak", _BYTES),
        ("over", _SECONDS),
        ("processes", _COUNT),
        ("injected", _FLAG),
        ("pods", _COUNT),
        ("evictions", _COUNT),
    ),
    Snapshot: (
        ("node", _TEXT),
        ("version", _TEXT),
        ("at", _TEXT),
        ("started", _TEXT),
        ("driver", _TEXT),
        ("highest", _TEXT),
        ("fresh", _FLAG),
        ("stale", _MAYBE_SECONDS),
        ("brake", _TEXT),
        ("trouble", _TEXT),
        ("cards", _rows(CardRow)),
        ("pods", _rows(PodRow)),
        ("nobody", _list_of(_write_nobody, _read_nobody)),
        ("owners", _rows(OwnerRow)),
        ("cap_slack", _MAYBE_BYTES),
    ),
}
