"""
What one agent knows of its node at one moment, in values: the rows of `/v1/snapshot`.

None is what nobody can tell at the moment. It is never zero, and a reader must not add it up.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias


class CardRow(NamedTuple):
    """
    One card. `committed_bytes` is the sum of the limits of those who hold memory on it.

    `listed_seconds_ago` tells how old its list of processes is; `trouble` why it cannot be read.
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
    that does not tell of `activity` is an older one: what the pod does is unknown.
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


class PodRow(NamedTuple):
    """
    A pod that holds GPU memory, is fenced, or was given a GPU where the namespace wants to know
    whether it is used. `mode` is empty where its namespace is not fenced.

    `owner` is `Kind/name` of its controller, or empty. `injected` is False where the webhook never
    saw the pod. `undeclared` says why it has no limit. Without `activity` it neither holds memory
    nor was given a GPU, does not run, or its agent is an older one.
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
    agent says so; older agents do not tell.
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
