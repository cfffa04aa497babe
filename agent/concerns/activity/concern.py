"""Which pods are busy and which are idle: found out tick by tick, and said by the pods."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from agent.clock import timestamp
from agent.concern import DRY_RUN, NO_SUCH_POD, Check, Concern
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
from gpufence import names
from gpufence.snapshot import ActivityRow, PodActivityRow
from kube import ConflictError, NotFoundError, PatchType, core
from kube.background import Background
from service.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from agent.cluster import ClusterSettings
    from agent.concern import Ground
    from agent.concerns.activity.condition import LastCondition
    from agent.concerns.activity.model import IdleCondition, Track
    from agent.model.state import TickResult
    from agent.model.use import Observation, PodOnCard
    from agent.ports import Processes
    from kube import Client, JsonObject

    ActivityFigure = tuple[str, str, str, Callable[[Track, float], float | None]]
    Row = tuple[dict[str, str], float | None]

_log = logging.getLogger(__name__)
_MOST_WAITING: Final = 256
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
        self,
        policy: ActivityPolicy,
        processes: Processes,
        clock: Callable[[], float],
        say: Callable[[Iterable[IdleCondition]], None],
        end: Callable[[], None] | None = None,
    ) -> None:
        self._policy = policy
        self._processes = processes
        self._clock = clock
        self._say = say
        self._end = end
        self._said: Mapping[str, LastCondition] = NOTHING_SAID
        self._said_at = clock()
        self.memory = NO_ACTIVITY

    @classmethod
    def on(cls, ground: Ground, settings: ActivityPolicy) -> Self:
        if ground.cluster is None:
            return cls(settings, ground.processes, ground.clock, lambda _: None)
        writer = ConditionWriter(ground.cluster.settings)
        ground.cluster.when_acting(writer.start)
        return cls(settings, ground.processes, ground.clock, writer.write, writer.stop)

    @classmethod
    def checks(cls, client: Client, acting: Client, where: ClusterSettings) -> list[Check]:
        del client
        path = core("namespaces", where.system_namespace, "pods", NO_SUCH_POD)
        nothing: JsonObject = {"status": {}}
        ask = partial(acting.patch, f"{path}/status", nothing, PatchType.STRATEGIC, DRY_RUN)
        return [Check("conditions of pods", ask, "can be written")]

    def look(self, tick: TickResult) -> None:
        """Take in one observation of the node; after a bug in it everybody is unknown."""
        try:
            self._look(tick.observation)
        except Exception:
            self.memory = NO_ACTIVITY
            raise

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

    def stop(self) -> None:
        if self._end is not None:
            self._end()

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
            self._tell(observation, now)

    def _tell(self, observation: Observation, now: float) -> None:
        pods = observation.pods
        changes, self._said = conditions(pods, self.memory, self._said, self._policy, now)
        if changes:
            self._say(changes)


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


class ConditionWriter:
    """Writes conditions as the account that acts, once that is known."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._client: Client  # from the start on
        self._background: Background[str, IdleCondition] = Background(
            "conditions of pods",
            self._write,
            keep=_MOST_WAITING,
            forbidden="apply the agent's rights of this version",
        )

    def start(self, client: Client) -> None:
        self._client = client
        self._background.start()

    def stop(self) -> None:
        """End; a word that has not gone out is not needed any more."""
        self._background.stop(0.0)

    def write(self, conditions: Iterable[IdleCondition]) -> None:
        """Have pods say whether they are idle; of each only the last word counts."""
        for item in conditions:
            self._background.put(item.uid, item)

    def _write(self, _: str, item: IdleCondition) -> None:
        try:
            self._client.patch(
                f"{core('namespaces', item.namespace, 'pods', item.name)}/status",
                condition_patch(item, timestamp()),
                PatchType.STRATEGIC,
                timeout_seconds=self._settings.request_seconds,
            )
        except (NotFoundError, ConflictError):
            _log.debug("pod %s/%s is another one by now", item.namespace, item.name)


def condition_patch(condition: IdleCondition, now: str) -> JsonObject:
    """Change this very pod's one condition; the kubelet's others are merged by type."""
    return {
        "metadata": {"uid": condition.uid},
        "status": {
            "conditions": [
                {
                    "type": names.GPU_IDLE,
                    "status": str(condition.status),
                    "reason": str(condition.evidence),
                    "message": condition.message,
                    "lastTransitionTime": now,
                }
            ]
        },
    }
