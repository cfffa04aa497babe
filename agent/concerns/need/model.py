"""PURE. What is remembered of how much memory the owners of pods have needed, from day to day."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.pod import PodOnNode
    from agent.model.use import Observation
    from gpufence.need import CardNeed, NeedDay, NeedKey, NodeNeed


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedPolicy:
    """How what was measured is kept beyond the life of an agent."""

    write_seconds: float = field(
        default=600.0,
        metadata=setting(
            "GPUFENCE_NEED_SECONDS",
            "interval at which changed needs are stored; they are stored at the end as well",
            least=0.1,
            most=86400,
        ),
    )


class NeedLook(NamedTuple):
    """
    One look at the node on a `day` of UTC; `now` is the agent's clock, and what happens for longer
    than `gap_seconds` without a look was not seen.
    """

    observation: Observation
    before: Observation | None
    now: float
    day: str
    gap_seconds: float


class StoredNeed(NamedTuple):
    """What an agent of this node has stored, and when, RFC 3339; empty where none ever has."""

    need: NodeNeed
    written: str = ""


class SeenUsage(NamedTuple):
    """
    The most that a container of a pod has shown on a card on one day, and the need it counts for.
    """

    key: NeedKey
    pod: PodOnNode
    day: str
    most_bytes: int
    largest_bytes: int
    processes: int


@dataclass(frozen=True, slots=True)
class NeedLedger:
    """
    The days of each key. `known` are the pods that are there and have held memory, by UID and key,
    each with the day on which it was counted last, and `met` what has been entered of each, by UID,
    container and card. `holding` are the keys that held memory at the last look and the level of
    that, the time of which is entered up to `held_at`; `seen` says when each did so last.

    `restored` has the last day of each key that an earlier agent has stored, `restored_at` when:
    who is older than that and has such a key was counted by that agent.
    """

    rows: Mapping[NeedKey, Mapping[str, NeedDay]] = field(default_factory=dict)
    cards: Mapping[str, CardNeed] = field(default_factory=dict)
    known: Mapping[tuple[str, NeedKey], str] = field(default_factory=dict)
    met: Mapping[tuple[str, str, str], SeenUsage] = field(default_factory=dict)
    holding: Mapping[NeedKey, int] = field(default_factory=dict)
    held_at: float = 0.0
    seen: Mapping[NeedKey, float] = field(default_factory=dict)
    at: float | None = None
    day: str = ""
    restored: Mapping[NeedKey, str] = field(default_factory=dict)
    restored_at: str = ""


NO_NEED: Final = NeedLedger()
