"""
A snapshot as JSON, written and read: amounts as quantities, times as seconds, null for what nobody
can tell.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpufence.fields import (
    BYTES,
    COUNT,
    FLAG,
    MAYBE_BYTES,
    MAYBE_SECONDS,
    SECONDS,
    SHARE,
    TEXT,
    RowKind,
    list_of,
    one,
    or_null,
    several,
)
from gpufence.shape import Object, as_text, read_versioned
from gpufence.snapshot.rows import (
    ActivityRow,
    CardRow,
    NobodyRow,
    PodActivityRow,
    PodRow,
    ProcessRow,
    Snapshot,
    UseRow,
)

if TYPE_CHECKING:
    from gpufence.snapshot.cuts import SnapshotCut

VERSION: Final = 1

_NAME = "snapshot"


def write_snapshot(snapshot: Snapshot, cut: SnapshotCut | None = None) -> str:
    """
    Write one line of JSON, or what a cut leaves of it, keys in a fixed order; times are kept to the
    millisecond.
    """
    whole: Object = {"v": VERSION, **_SNAPSHOT.write(snapshot)}
    return json.dumps(
        whole if cut is None else cut.leave(whole), separators=(",", ":"), allow_nan=False
    )


def read_snapshot(text: str, cut: SnapshotCut | None = None) -> Snapshot:
    """
    Read what `/v1/snapshot` answers, or what a cut leaves of it: most of the time goes into rows.

    Raises:
        UnknownVersionError: a newer agent wrote it.
        InvalidError: it is not what an agent writes.
    """
    written = read_versioned(text, _NAME, VERSION)
    return _SNAPSHOT.read(written if cut is None else cut.leave(written), _NAME)


def _write_nobody(row: NobodyRow) -> dict[str, object]:
    return {"card": row.card, **_PROCESS.write(row.process)}


def _read_nobody(written: Object, path: str) -> NobodyRow:
    return NobodyRow(as_text(written.get("card"), f"{path}.card"), _PROCESS.read(written, path))


_CARD: Final = RowKind(
    CardRow,
    (
        ("uuid", TEXT),
        ("index", COUNT),
        ("model", TEXT),
        ("total", BYTES),
        ("used", MAYBE_BYTES),
        ("free", MAYBE_BYTES),
        ("reserved", MAYBE_BYTES),
        ("committed", BYTES),
        ("unattributed", MAYBE_BYTES),
        ("listed", MAYBE_SECONDS),
        ("mps", FLAG),
        ("trouble", TEXT),
    ),
)

_PROCESS: Final = RowKind(
    ProcessRow,
    (
        ("pid", COUNT),
        ("used", MAYBE_BYTES),
        ("container", TEXT),
        ("command", TEXT),
    ),
    {"container": "", "command": ""},
)

_ACTIVITY: Final = RowKind(
    ActivityRow,
    (
        ("state", TEXT),
        ("idle_seconds", MAYBE_SECONDS),
        ("evidence", TEXT),
        ("why", TEXT),
    ),
)

_POD_ACTIVITY: Final = RowKind(
    PodActivityRow,
    (
        ("state", TEXT),
        ("idle_seconds", MAYBE_SECONDS),
        ("evidence", TEXT),
        ("why", TEXT),
        ("busy_share", or_null(SHARE)),
    ),
)

_USE: Final = RowKind(
    UseRow,
    (
        ("card", TEXT),
        ("used", MAYBE_BYTES),
        ("limit", MAYBE_BYTES),
        ("allowance", MAYBE_BYTES),
        ("outcome", TEXT),
        ("over", SECONDS),
        ("due", MAYBE_SECONDS),
        ("processes", several(_PROCESS)),
        ("activity", or_null(one(_ACTIVITY))),
    ),
)

_POD: Final = RowKind(
    PodRow,
    (
        ("uid", TEXT),
        ("namespace", TEXT),
        ("name", TEXT),
        ("mode", TEXT),
        ("owner", TEXT),
        ("injected", FLAG),
        ("undeclared", TEXT),
        ("terminating", FLAG),
        ("uses", several(_USE)),
        ("activity", or_null(one(_POD_ACTIVITY))),
    ),
)

_SNAPSHOT: Final = RowKind(
    Snapshot,
    (
        ("node", TEXT),
        ("version", TEXT),
        ("at", TEXT),
        ("started", TEXT),
        ("driver", TEXT),
        ("highest", TEXT),
        ("fresh", FLAG),
        ("stale", MAYBE_SECONDS),
        ("brake", TEXT),
        ("trouble", TEXT),
        ("cards", several(_CARD)),
        ("pods", several(_POD)),
        ("nobody", list_of(_write_nobody, _read_nobody)),
        ("cap_slack", MAYBE_BYTES),
    ),
)
