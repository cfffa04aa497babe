"""
What one agent knows of its node at one moment, in values: the rows of `/v1/snapshot`.

None is what nobody can tell at the moment. It is never zero, and a reader must not add it up.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from gpufence.shape import (
    BYTES,
    COUNT,
    FLAG,
    MAYBE_BYTES,
    MAYBE_SECONDS,
    SECONDS,
    SHARE,
    TEXT,
    Object,
    RowKind,
    as_text,
    list_of,
    objects,
    one,
    or_null,
    read_versioned,
    several,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class LeftRow(NamedTuple):
    """What a card still lists for a pod that has ended; `pod` is `namespace/name`."""

    pod: str
    pid: int
    used_bytes: int | None


class CardRow(NamedTuple):
    """
    One card. `committed_bytes` is the sum of the limits of those who hold memory on it.

    `listed_seconds_ago` tells how old its list of processes is; `trouble` why it cannot be read.
    `busy_share` is its utilization, from 0 to 1; of that, `celsius` and `watts` (of `most_watts`)
    older agents do not tell.
    """

    uuid: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs of a card
    model: str
    total_bytes: int
    used_bytes: int | None = None
    free_bytes: int | None = None
    reserved_bytes: int | None = None
    committed_bytes: int = 0
    unattributed_bytes: int | None = None
    listed_seconds_ago: float | None = None
    mps: bool = False
    trouble: str = ""
    busy_share: float | None = None
    left: tuple[LeftRow, ...] = ()
    celsius: int | None = None
    watts: int | None = None
    most_watts: int | None = None


class ProcessRow(NamedTuple):
    """One process on one card; a command only where it belongs to no pod."""

    pid: int
    used_bytes: int | None
    container: str = ""
    command: str = ""


SnapshotPart: TypeAlias = Literal["cards", "pods", "nobody"]
"""
The lists of a snapshot, which is nearly all of it: a reader of thousands takes those it shows.
"""

BUSY: Final = "busy"  # what a pod does on a card; the other words are idle and unknown


class ActivityRow(NamedTuple):
    """
    What a pod does on a card: `state` is `busy`, `idle` or `unknown`, which is never idle.

    `idle_seconds` is 0 while it is busy and None where nobody knows; `evidence` is one word of
    `agent.concerns.activity.model.Evidence`, and `why` says what stands against knowing.
    """

    state: str
    idle_seconds: float | None
    evidence: str
    why: str = ""


class PodActivityRow(NamedTuple):
    """
    What a pod does on all cards of its node together, in the words of an `ActivityRow`.

    `busy_share` is how much of the last minute any card was used by it, from 0 to 1; None where
    nobody knows.
    """

    state: str
    idle_seconds: float | None
    evidence: str
    why: str = ""
    busy_share: float | None = None


class UseRow(NamedTuple):
    """
    A pod on one card, and the agent's verdict on it in one word of `agent.model.decision.Outcome`.

    `allowance_bytes` is what its frameworks were told, where the plan on the pod says so. An agent
    that does not tell of `activity` is an older one: what the pod does is unknown. `fence` is a
    word of `gpufence.fences.Fence`; empty where nothing holds the pod, or the agent is older.

    `promised_bytes` is the request of a pod that may hold more, None for all of its limit;
    `borrowed_bytes` what it holds above that, `owed_bytes` what is reserved for it and not held.
    One that `lends` is idle: what it is owed may be borrowed. Older agents do not tell of these.
    """

    card: str
    used_bytes: int | None
    limit_bytes: int | None = None
    allowance_bytes: int | None = None
    outcome: str = ""
    over_seconds: float = 0.0
    due_seconds: float | None = None
    processes: tuple[ProcessRow, ...] = ()
    activity: ActivityRow | None = None
    fence: str = ""
    promised_bytes: int | None = None
    borrowed_bytes: int = 0
    owed_bytes: int = 0
    lends: bool = False


class EndedRow(NamedTuple):
    """
    How a container failed for want of GPU memory: `reason` is a word of `gpufence.capped.Why`. What
    it asked for and was given is None where nothing caps it, `peak_bytes` where it was not seen.
    """

    container: str
    at: str
    reason: str
    certain: bool
    asked_bytes: int | None = None
    given_bytes: int | None = None
    peak_bytes: int | None = None
    restarts: int = 0


class PodRow(NamedTuple):
    """
    A pod that holds GPU memory, is fenced, or was given a GPU where the namespace wants to know
    whether it is used. `mode` is empty where its namespace is not fenced.

    `owner` is `Kind/name` of its controller, or empty. `injected` is False where the webhook never
    saw the pod. `undeclared` says why it has no limit. Without `activity` it neither holds memory
    nor was given a GPU, does not run, or its agent is an older one. `ended` are containers that
    failed for want of GPU memory and have not run well since.
    """

    uid: str
    namespace: str
    name: str
    mode: str = ""
    owner: str = ""
    injected: bool = True
    undeclared: str = ""
    terminating: bool = False
    uses: tuple[UseRow, ...] = ()
    activity: PodActivityRow | None = None
    ended: tuple[EndedRow, ...] = ()


class NobodyRow(NamedTuple):
    """A process on a card that belongs to no pod the API server knows on this node."""

    card: str
    process: ProcessRow


class Snapshot(NamedTuple):
    """
    `at` and `started` are RFC 3339 in UTC. `highest` is the mode the kill switch allows.

    `fresh` is False while the API server is out of reach; `stale_seconds` is the age of the sample,
    None before the first. `brake` says why nobody is evicted at the moment, `trouble` why nothing
    is measured. `cap_slack_bytes` is how much more than it was told a process may hold before the
    agent says so; older agents do not tell. `limits_trouble` says why the driver's own limits
    cannot be relied on here, empty where nothing is known against them, and of an older agent.
    """

    node: str
    version: str
    at: str
    started: str
    driver: str = ""
    highest: str = ""
    fresh: bool = False
    stale_seconds: float | None = None
    brake: str = ""
    trouble: str = ""
    cards: tuple[CardRow, ...] = ()
    pods: tuple[PodRow, ...] = ()
    nobody: tuple[NobodyRow, ...] = ()
    cap_slack_bytes: int | None = None
    limits_trouble: str = ""


_NOBODY: Final[Object] = {"injected": False, "terminating": False}
_PARTS: Final[frozenset[SnapshotPart]] = frozenset(get_args(SnapshotPart))


class SnapshotCut(NamedTuple):
    """
    What an agent is asked for, as `/v1/snapshot?only=NAME`, and what leaves that of all it says.
    """

    name: str
    leave: Callable[[Object], Object]

    @property
    def query(self) -> dict[str, str | int]:
        return {"only": self.name}


def _only(*parts: SnapshotPart) -> SnapshotCut:
    """Return what leaves of the lists these parts, the others being empty."""
    others: dict[str, object] = {part: [] for part in _PARTS - {*parts}}
    return SnapshotCut("-and-".join(parts), lambda written: {**written, **others})


def _outlines(written: Object) -> Object:
    """Leave the cards, and of the pods which are fenced and which are over their limits."""
    left = CARDS_AND_PODS.leave(written)
    pods = objects(left.get("pods"), "pods")
    return {**left, "pods": [{**_NOBODY, **_outline(pod)} for pod in pods]}


def _outline(pod: Object) -> Object:
    over = [use for use in objects(pod.get("uses"), "uses") if use.get("over")]
    return {"mode": pod.get("mode"), "uses": over}


CARD_ROWS: Final = _only("cards")
POD_ROWS: Final = _only("pods")
CARDS_AND_PODS: Final = _only("cards", "pods")
OUTLINES: Final = SnapshotCut("outlines", _outlines)
CUTS: Final = (CARD_ROWS, POD_ROWS, CARDS_AND_PODS, OUTLINES)


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


_LEFT: Final = RowKind(LeftRow, (("pod", TEXT), ("pid", COUNT), ("used", MAYBE_BYTES)))

_CARD: Final = RowKind(
    CardRow,
    (
        *(("uuid", TEXT), ("index", COUNT), ("model", TEXT), ("total", BYTES)),
        *(("used", MAYBE_BYTES), ("free", MAYBE_BYTES), ("reserved", MAYBE_BYTES)),
        ("committed", BYTES),
        ("unattributed", MAYBE_BYTES),
        ("listed", MAYBE_SECONDS),
        ("mps", FLAG),
        ("trouble", TEXT),
        ("busy_share", or_null(SHARE)),
        ("left", several(_LEFT)),
        *((name, or_null(COUNT)) for name in ("celsius", "watts", "most_watts")),
    ),
    {"busy_share": None, "left": (), "celsius": None, "watts": None, "most_watts": None},
)

_PROCESS: Final = RowKind(
    ProcessRow,
    (("pid", COUNT), ("used", MAYBE_BYTES), ("container", TEXT), ("command", TEXT)),
    {"container": "", "command": ""},
)

_DOES: Final = (
    *(("state", TEXT), ("idle_seconds", MAYBE_SECONDS)),
    *(("evidence", TEXT), ("why", TEXT)),
)
_ACTIVITY: Final = RowKind(ActivityRow, _DOES)
_POD_ACTIVITY: Final = RowKind(PodActivityRow, (*_DOES, ("busy_share", or_null(SHARE))))

_USE: Final = RowKind(
    UseRow,
    (
        ("card", TEXT),
        *((name, MAYBE_BYTES) for name in ("used", "limit", "allowance")),
        ("outcome", TEXT),
        ("over", SECONDS),
        ("due", MAYBE_SECONDS),
        ("processes", several(_PROCESS)),
        ("activity", or_null(one(_ACTIVITY))),
        ("fence", TEXT),
        *(("promised", MAYBE_BYTES), ("borrowed", BYTES), ("owed", BYTES), ("lends", FLAG)),
    ),
    {"fence": "", "promised": None, "borrowed": 0, "owed": 0, "lends": False},
)

_ENDED: Final = RowKind(
    EndedRow,
    (
        *(("container", TEXT), ("at", TEXT), ("reason", TEXT), ("certain", FLAG)),
        ("asked", MAYBE_BYTES),
        ("given", MAYBE_BYTES),
        ("peak", MAYBE_BYTES),
        ("restarts", COUNT),
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
        ("ended", several(_ENDED)),
    ),
    {"ended": ()},
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
        ("limits_trouble", TEXT),
    ),
    {"limits_trouble": ""},
)
