"""Which pods are busy and which are idle: found out tick by tick, and said by the pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from agent.concern import Concern
from agent.concerns.activity.condition import NOTHING_SAID, conditions
from agent.concerns.activity.model import (
    NO_ACTIVITY,
    Activity,
    ActivityMemory,
    ActivityPolicy,
    PodTrack,
    Witness,
)
from agent.concerns.activity.watch import pids_to_read, strangers, watched
from agent.metrics import by_labels, pods_on_cards
from agent.model.state import PodRows
from gpufence.snapshot import ActivityRow, PodActivityRow
from service.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from agent.concern import Ground
    from agent.concerns.activity.condition import LastCondition
    from agent.concerns.activity.model import Track
    from agent.model.pod import PodCondition
    from agent.model.state import TickResult
    from agent.model.use import Observation, PodOnCard
    from agent.ports import Processes

    ActivityFigure = tuple[str, str, str, Callable[[Track, float], float | None]]
    Row = tuple[dict[str, str], float | None]

_PAUSE_SECONDS: Final = 1.0
"""Between two looks at what pods shall say: nothing there is younger."""
_QUIET_SECONDS: Final = 5.0
"""The same while nothing happens but that time passes."""
_OLD: Final = PodTrack(why="the cards have not been looked at for too long")
_LAST_BUSY: Final = "gpu_last_busy_timestamp_seconds"


def _last_busy(track: Track | PodTrack, now: float) -> float | None:
    idle = track.idle_seconds(now)
    return None if idle is None else now - idle


_ACTIVITY_FIGURES: Final[tuple[ActivityFigure, ...]] = (
    (
        _LAST_BUSY,
        "gauge",
        "Unix time at which a pod last worked on a card, or on any; now while it is busy",
        _last_busy,
    ),
    (
        "gpu_busy_seconds_total",
        "counter",
        "Time in which a pod was at work on a card, as far as driver and kernel share it out",
        lambda track, _: round(track.busy_seconds, 3),
    ),
)


class ActivityConcern(Concern):
    """
    Owns what is remembered of everybody's work. The kernel is asked only about cards that have
    something new to say, which is every few seconds.
    """

    name = "activity"
    title = "Busy and idle pods"
    settings = ActivityPolicy

    def __init__(
        self, policy: ActivityPolicy, processes: Processes, clock: Callable[[], float]
    ) -> None:
        self._policy = policy
        self._processes = processes
        self._clock = clock
        self._said: Mapping[str, LastCondition] = NOTHING_SAID
        self._said_at = clock()
        self._due: Sequence[PodCondition] = ()
        self.memory = NO_ACTIVITY

    @classmethod
    def on(cls, ground: Ground, settings: ActivityPolicy) -> Self:
        return cls(settings, ground.processes, ground.clock)

    def look(self, tick: TickResult) -> None:
        """Take in one observation of the node; after a bug in it everybody is unknown."""
        try:
            self._look(tick.observation)
        except Exception:
            self.memory = NO_ACTIVITY
            raise

    def conditions(self) -> Sequence[PodCondition]:
        due, self._due = self._due, ()
        return due

    def idle(self, now: float) -> Mapping[str, float]:
        known = {uid: track.idle_seconds(now) for uid, track in self.memory.pods.items()}
        return {uid: seconds for uid, seconds in known.items() if seconds is not None}

    def families(self, last: TickResult | None, now: float) -> list[Family]:
        """Return which pods are idle and which are busy; of those unknown there is no line."""
        uses = [] if last is None else sorted(pods_on_cards(last), key=by_labels)
        return list(_families(last, uses, self.memory, now))

    def rows(self, now: float, *, current: bool) -> Mapping[str, PodRows]:
        memory = self.memory
        if not current:
            old = PodActivityRow(*_said(_OLD, now))
            return {uid: PodRows({"activity": old}) for uid in memory.pods}
        uses: dict[str, dict[str, Mapping[str, object]]] = {}
        for (uid, uuid), track in memory.tracks.items():
            row = {"activity": ActivityRow(*_said(track, now))}
            uses.setdefault(uid, {})[uuid] = row
        pods = {
            uid: PodActivityRow(*_said(track, now), track.busy_share)
            for uid, track in memory.pods.items()
        }
        uids = pods.keys() | uses.keys()
        return {uid: PodRows({"activity": pods.get(uid)}, uses.get(uid, {})) for uid in uids}

    def _look(self, observation: Observation) -> None:
        before = self.memory
        unknown = strangers(observation, before)
        wanted = pids_to_read(observation, before)
        witness = Witness(
            at=self._clock(),
            cpu=self._processes.cpu_times(wanted) if wanted else {},
            strangers=self._processes.occupants(unknown) if unknown else {},
        )
        now = self._clock()
        self.memory = watched(observation, witness, before, policy=self._policy, now=now)
        pause = _QUIET_SECONDS if self.memory is before else _PAUSE_SECONDS
        if now - self._said_at >= pause:
            self._said_at = now
            self._due, self._said = conditions(
                observation.pods, self.memory, self._said, self._policy, now
            )


def _said(track: Track | PodTrack, now: float) -> tuple[str, float | None, str, str]:
    return str(track.activity), track.idle_seconds(now), str(track.evidence), track.why


def _families(
    last: TickResult | None,
    rows: Iterable[tuple[dict[str, str], PodOnCard]],
    memory: ActivityMemory,
    now: float,
) -> Iterator[Family]:
    """Yield which pods are idle and which are busy; an unknown one has no line."""
    known = [
        (labels, track)
        for labels, use in rows
        if (track := memory.tracks.get((use.pod.uid, use.card.uuid))) is not None
        and track.activity is not Activity.UNKNOWN
    ]
    for name, kind, text, read in _ACTIVITY_FIGURES:
        values = tuple((labels, read(track, now)) for labels, track in known)
        if name == _LAST_BUSY:
            values += tuple(sorted(_without_memory(last, memory, now), key=by_labels))
        yield Family(f"gpufence_pod_{name}", kind, text, values)


def _without_memory(last: TickResult | None, memory: ActivityMemory, now: float) -> Iterator[Row]:
    """Yield when those last worked that were given a GPU and hold no memory of any card."""
    pods = {} if last is None else last.observation.pods.by_uid
    for uid, track in memory.pods.items():
        if uid in pods and not track.held and track.activity is not Activity.UNKNOWN:
            labels = {"namespace": pods[uid].namespace, "pod": pods[uid].name, "card": ""}
            yield labels, _last_busy(track, now)
