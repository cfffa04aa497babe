"""What holds each pod to its limit, and whether the driver does where it was asked to."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Self

from agent.concern import Concern
from agent.concerns.driver.canary import asked_of, canary_on
from agent.concerns.driver.label import REPEAT_SECONDS, CanaryWatch, NodeLabel
from agent.concerns.driver.leaves import Leaves
from agent.concerns.driver.model import (
    KEPT_READS,
    NO_HARD_LIMIT,
    DriverPolicy,
    LimitRecord,
    NodeTrouble,
    State,
    fence_on,
    needs_parent,
    node_trouble,
    recorded,
    wanted_in,
)
from agent.events.episodes import Notice, about_node, one_line, pod_notices
from agent.metrics import by_labels, pods_on_cards
from agent.model.sample import Trouble
from agent.model.state import PodRows
from agent.model.use import Owner
from agent.nvml.faults import Code
from agent.nvml.protocol import Ask, Limited, NvmlFailure, Question
from gpufence import names
from gpufence.errors import Finding, look, ok
from gpufence.event_text import MOST_TEXT, event_text, named_card, shortened
from gpufence.fences import FIRST_DRIVER
from gpufence.text import limit_mebibytes
from kube.repeating import Repeating
from service.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from agent.concern import Ground
    from agent.concerns.driver.model import AskedLimit, ReadKey, Said
    from agent.model.sample import Sample
    from agent.model.state import TickResult
    from agent.ports import NvmlAside

_MOST_AT_ONCE: Final = 64
"""Limits read in one turn; the next turn reads on with those that have waited longest."""
_TURN_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 60.0
"""After so long without a limit to read there is no child to ask."""
_FENCE: Final = "gpufence_pod_fence"
_READ: Final = "gpufence_driver_limits"
_WRONG: Final = "gpufence_driver_limits_unsupported"
_MOST_LOOKED_AT: Final = 64
_HELD_OTHERWISE: Final = "pods are held by frameworks and the agent, as without such limits"
_AS_WITHOUT: Final = "It is reported and evicted as without."
_UPDATE: Final = (
    f"Update driver and container toolkit, or take the label {names.DRIVER_LIMITS} off the Node."
)
_AGAIN: Final = "Its label is gone until another canary has passed."
_MOUNT: Final = (
    "apply component driver-limits, or set GPUFENCE_CGROUP_ROOT to the node's own cgroups"
)
_TRY: Final = "start a pod that asks for one, and run this again: only what is read back is proof"


class DriverConcern(Concern):
    """
    Reads limits back on a thread of its own, with an NVML child of its own: no look waits for it,
    and no verdict depends on it.
    """

    name = "driver"
    title = "Limits of the driver"
    settings = DriverPolicy

    def __init__(
        self,
        policy: DriverPolicy,
        node: str,
        nvml: NvmlAside,
        label: NodeLabel,
        clock: Callable[[], float],
    ) -> None:
        self._policy = policy
        self._node = node
        self._nvml = nvml
        self._label = label
        self._clock = clock
        self._canary, self._canary_id = (
            CanaryWatch(label, KEPT_READS * policy.read_seconds, clock),
            "",
        )
        self._leaves = Leaves(policy.cgroup_root, policy.read_seconds, clock)
        self._tick: TickResult | None = None
        self._read_at = clock()
        self._notices: tuple[Notice, ...] = ()
        self._said: tuple[Notice, ...] = ()
        self._said_at = self._label_at = clock()
        self._pause_seconds = min(_TURN_SECONDS, policy.read_seconds / 2)
        self._repeating = Repeating("driver limits", self.read, finish=nvml.rest)
        self.records: Mapping[ReadKey, LimitRecord] = {}
        self.trouble = NodeTrouble()

    @classmethod
    def on(cls, ground: Ground, settings: DriverPolicy) -> Self:
        label = NodeLabel(ground.cluster, settings.label)
        return cls(settings, ground.node, ground.nvml, label, ground.clock)

    @classmethod
    def findings(cls, settings: DriverPolicy, sample: Sample, nvml: NvmlAside) -> Sequence[Finding]:
        return (_finding(settings, sample, nvml),)

    def start(self) -> None:
        self._repeating.start()

    def look(self, tick: TickResult) -> None:
        self._tick = tick

    def notices(self) -> Sequence[Notice]:
        now = self._clock()
        if self._notices is self._said and now - self._said_at < REPEAT_SECONDS:
            return ()
        self._said, self._said_at = self._notices, now
        return self._said

    def families(self, last: TickResult | None, now: float) -> list[Family]:
        del now
        records = self.records
        uses = [] if last is None else sorted(pods_on_cards(last), key=by_labels)
        fences = tuple(
            ({**labels, "fence": str(fence)}, 1.0)
            for labels, use in uses
            if (fence := fence_on(use.card, use, records))
        )
        told = (item for key, item in records.items() if key[0] != self._canary_id)
        states = Counter(record.found.state for record in told)
        counted = (({"state": str(each)}, float(states[each])) for each in State)
        wrong = float(bool(self.trouble.why))
        return [
            Family(_FENCE, "gauge", "Always 1: what holds a pod to its limit on a card", fences),
            Family(_READ, "gauge", "Limits read back from the driver, by result", tuple(counted)),
            Family(
                _WRONG, "gauge", "Whether the driver's limits cannot be relied on", (({}, wrong),)
            ),
        ]

    def rows(self, now: float, *, current: bool) -> Mapping[str, PodRows]:
        del now, current
        uses: dict[str, dict[str, Mapping[str, object]]] = {}
        for uuid, card in {} if self._tick is None else self._tick.observation.cards.items():
            for uid, use in card.pods.items():
                fence = fence_on(card.card, use, self.records)
                uses.setdefault(uid, {})[uuid] = {"fence": str(fence)}
        return {uid: PodRows({}, rows) for uid, rows in uses.items()}

    def node_row(self) -> Mapping[str, object]:
        return {"limits_trouble": self.trouble.why}

    def stop(self) -> None:
        self._repeating.stop()

    def read(self) -> float:
        """Read back what is due, and say what follows."""
        tick = self._tick
        if tick is None:
            return self._pause_seconds
        canary = canary_on(tick.observation, self._label.namespace)
        wanted = wanted_in(tick.observation) | {item.key: item for item in asked_of(canary)}
        seconds, self._canary_id = self._policy.read_seconds, canary.container
        kept = {key: self.records[key] for key in wanted if key in self.records}
        self.records = kept | self._asked(wanted.values())
        now = self._clock()
        self._read_at = now if wanted else self._read_at
        if not wanted and now - self._read_at > _IDLE_SECONDS:
            self._nvml.rest()
        ours = {key: item for key, item in wanted.items() if item.ours and key in self.records}
        mine = [self.records[key] for key in ours]
        absent = [
            item
            for item, record in zip(ours.values(), mine, strict=True)
            if record.found.state is State.ABSENT and now - record.since >= seconds  # read twice
        ]
        self.trouble = node_trouble(
            tick.observation, mine, lasting=len(absent), labelled=self._label.is_set
        )
        notices = tuple(self._absent(item) for item in absent) + tuple(self._unsupported())
        if notices != self._notices:
            self._notices = notices
        self._canary.turn(canary, self.records, self.trouble)
        if self.trouble.certain and now >= self._label_at:
            self._label_at = now + REPEAT_SECONDS
            self._label.take_back(self.trouble.why)
        return self._pause_seconds

    def _asked(self, wanted: Iterable[AskedLimit]) -> dict[ReadKey, LimitRecord]:
        """Ask for the leaves that are due, and for the parents of those that look right."""
        seconds, records, now = self._policy.read_seconds, self.records, self._clock()
        waited = ((now - records[x.key].at if x.key in records else seconds, x) for x in wanted)
        longest = sorted(waited, key=itemgetter(0), reverse=True)[:_MOST_AT_ONCE]
        due = [item for since, item in longest if since >= seconds]
        folders = self._leaves.find(map(_owner, due)) if due else {}
        paths = {item.key: folders[owner] for item in due if (owner := _owner(item)) in folders}
        leaves = self._ask(paths)
        doubtful = {
            item.key: paths[item.key].rpartition("/")[0]
            for item in due
            if needs_parent(item, leaves.get(item.key), records.get(item.key))
        }
        parents = self._ask(doubtful)
        now, keep = self._clock(), KEPT_READS * seconds
        return {
            key: recorded(records.get(key), item, (leaves.get(key), parents.get(key)), now, keep)
            for item in due
            for key in (item.key,)
        }

    def _ask(self, paths: Mapping[ReadKey, str]) -> dict[ReadKey, Said]:
        questions = {key: Question(Ask.LIMITS, key[1], path) for key, path in paths.items()}
        answers = self._nvml.ask(list(questions.values())) if questions else {}
        return {key: answers[question] for key, question in questions.items()}

    def _absent(self, item: AskedLimit) -> Notice:
        first = (
            f"The driver does not hold container {shortened(item.container)} to its limit of "
            f"{limit_mebibytes(item.asked_bytes)} on {named_card(item.card)}."
        )
        why = f"Why: {self.records[item.key].found.why}."
        text = event_text(first, why, _AS_WITHOUT, most=MOST_TEXT)
        topic = f"{item.card.uuid}/{item.container}"
        return pod_notices(names.LIMIT_ABSENT, item.pod, text, topic=topic, anchor=None)[0]

    def _unsupported(self) -> Iterator[Notice]:
        for why, first, last, topic in (
            (self.trouble.why, "cannot be relied on here", _UPDATE, ""),
            (self._canary.lost, "are no longer proved here", _AGAIN, "canary"),
        ):
            if why:
                said = f"The driver's limits of containers {first}: {why}."
                text = one_line(event_text(said, last=last, most=MOST_TEXT))
                yield Notice(names.LIMIT_UNSUPPORTED, about_node(self._node), text, topic)


def _owner(item: AskedLimit) -> Owner:
    return Owner(item.pod.static_uid or item.pod.uid, item.identity)


def _finding(settings: DriverPolicy, sample: Sample, nvml: NvmlAside) -> Finding:
    """
    Say whether the driver can hold containers to limits here: good is only what was seen to be set.
    """
    subject, root = "driver limits", settings.cgroup_root
    leaves = Leaves(root, 0.0, lambda: 0.0)
    cards = [item.card for item in sample.cards if item.card.mig is None]
    if not cards:
        return look(subject, "no card here can have them: MIG instances cannot", _HELD_OTHERWISE)
    if not leaves.is_unified:
        return look(subject, f"{root} shows no cgroups of version 2", _MOUNT)
    if next(leaves.all(), None) is None:
        return look(subject, f"{root} shows no container of a pod", _MOUNT)
    asked = [
        Question(Ask.LIMITS, card.uuid, path)
        for card in cards
        for path in (root, *islice((path for _, path in leaves.all()), _MOST_LOOKED_AT))
    ]
    answers = nvml.ask(asked)
    for each in answers.values():
        if isinstance(each, Trouble):
            return look(subject, f"the driver does not say: {each}", _HELD_OTHERWISE)
        if isinstance(each, NvmlFailure) and each.code == Code.FUNCTION_NOT_FOUND:
            text = f"driver {sample.driver} has none; they begin with r{FIRST_DRIVER}"
            return look(subject, text, _HELD_OTHERWISE)
    found = [each for each in answers.values() if isinstance(each, Limited)]
    held = sum(each.hard_bytes < NO_HARD_LIMIT for each in found)
    if not held:
        text = f"driver {sample.driver} knows them, cgroups are of version 2, no container has one"
        return look(subject, text, _TRY)
    return ok(subject, f"driver {sample.driver} holds containers to them: {held}")
