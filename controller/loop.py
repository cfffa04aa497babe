"""Look at all owners again and again; who holds the Lease acts, everybody else only shows."""

from __future__ import annotations

import logging
import time
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from controller.acts import ActOutcome, ActReport
from controller.decide import decide, last_look, nodes_of, refused, released, why_not
from controller.model import ReleaseMemory, Step
from gpufence import names
from gpufence.event_text import Anchor
from kube.events import EventText, Regarding
from kube.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from controller.model import Act, ClusterState, OwnerState, ReleaseDecision, ReleaseRules
    from gpufence.snapshot import Snapshot

_log = logging.getLogger(__name__)
_NO_MEMORY: Final = ReleaseMemory()

HOUR_SECONDS: Final = 3600.0
MOST_EVENTS: Final = 20
"""Of an owner and its pods together in any hour."""
MOST_OF_PODS: Final = 6
"""Of these, what pods get; their owner hears of everything as long as it can."""
_WARNINGS: Final = frozenset(
    {names.IDLE_WARNING, names.IDLE_CONTESTED, names.IDLE_SUSPENDED, names.IDLE_FAILED}
)
_SAID_OF_PODS: Final = frozenset({names.IDLE_WARNING, names.IDLE_RELEASED})


class Leadership(Protocol):
    """Whether this one may act: `term` is another one each time that begins."""

    @property
    def term(self) -> int: ...

    def left(self) -> float: ...


class EventSink(Protocol):
    def say(self, about: Regarding, text: EventText) -> None: ...


class AgentSnapshots(Protocol):
    def snapshots(
        self, nodes: Iterable[str], *, now: bool = False
    ) -> Mapping[str, Snapshot | None]: ...


class ActExecutor(Protocol):
    def carry_out(self, act: Act, owner: OwnerState) -> ActReport: ...


class LoopPorts(NamedTuple):
    look: Callable[[], ClusterState]
    lease: Leadership
    agents: AgentSnapshots
    acts: ActExecutor
    events: EventSink


class LastPass(NamedTuple):
    """What the last pass found."""

    state: ClusterState
    decision: ReleaseDecision
    leads: bool
    seconds: float


class ControllerLoop:
    """
    One pass after the other, on a thread of its own. What concerns all owners is said of the Lease
    in `namespace`.
    """

    def __init__(
        self, ports: LoopPorts, rules: ReleaseRules, pass_seconds: float, namespace: str
    ) -> None:
        self._ports = ports
        self._itself = Regarding("coordination.k8s.io/v1", "Lease", namespace, names.CONTROLLER, "")
        self._rules = rules
        self._pass_seconds = pass_seconds
        self._repeating = Repeating("passes", self._turn, jitter=0.0)
        self._memory = _NO_MEMORY
        self._term = 0
        self._brake = ""
        self._said: Mapping[str, tuple[float, ...]] = {}
        self.last: LastPass | None = None
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.seen = False

    def start(self) -> None:
        self._repeating.start()

    def stop(self, seconds: float) -> None:
        self._repeating.stop(seconds)

    @property
    def silence_seconds(self) -> float:
        """Return for how long no pass has ended."""
        return self._repeating.silence_seconds

    @property
    def failures(self) -> int:
        """Return how many passes a bug has ended."""
        return self._repeating.bugs

    def _turn(self) -> float:
        self.turn()
        return self._pass_seconds

    def turn(self) -> None:
        """Look, decide, and act where that is ours to do."""
        began = time.monotonic()
        leads = self._ports.lease.left() > 0
        if not leads or self._ports.lease.term != self._term:
            # Whatever was announced before, somebody else may have done since.
            self._memory, self._term = _NO_MEMORY, self._ports.lease.term
        state = self._ports.look()
        self.seen = self.seen or state.fresh
        decision = decide(state, self._memory, self._rules)
        self.last = LastPass(state, decision, leads, time.monotonic() - began)
        if not leads:
            return
        self._memory = decision.memory
        self._tell_brake(decision.brake, suspended=self._memory.suspended_until > state.now)
        for act in decision.acts:
            owner = state.owners[act.key]
            if self._repeating.stopped:
                break
            if owner.rung is None:
                continue  # its namespace has taken back the word that let us write there
            report = self._carry_out(act, owner, state.now)
            if report is not None and report.outcome is ActOutcome.NOT_OURS:
                _log.info("no act is begun: %s", report.detail)
                break

    def _carry_out(self, act: Act, owner: OwnerState, now: float) -> ActReport | None:
        """
        Carry out one act, and say what became of it; None where the last look speaks against it.
        """
        if act.step is Step.RELEASE:
            snapshots = self._ports.agents.snapshots(nodes_of(owner), now=True)
            against = why_not(last_look(owner, snapshots), act.threshold_seconds)
            if against:
                self._memory = refused(self._memory, act.key, against, now)
                self._note(act, "called-off", against)
                return None
        report = self._ports.acts.carry_out(act, owner)
        self._note(act, str(report.outcome), report.detail)
        if report.outcome is ActOutcome.DONE:
            if act.step is Step.RELEASE:
                self._memory = released(self._memory, act.key, now)
            if act.message:
                self._say(owner, act.reason, act.message, now)
        elif act.step in {Step.RELEASE, Step.WAKE}:
            self._memory = refused(self._memory, act.key, report.detail, now)
            if report.outcome is ActOutcome.FAILED:
                self._say(owner, names.IDLE_FAILED, f"{act.step} failed: {report.detail}", now)
        return report

    def _note(self, act: Act, outcome: str, detail: str) -> None:
        self.outcomes[act.step, outcome] += 1
        key = act.key
        _log.info(
            "%s of %s %s/%s: %s %s",
            *(act.step, key.kind, key.namespace, key.name, outcome, detail or act.message),
            extra={
                "fields": {
                    "step": str(act.step),
                    "outcome": outcome,
                    "namespace": key.namespace,
                    "kind": key.kind,
                    "name": key.name,
                }
            },
        )

    def _say(self, owner: OwnerState, reason: str, message: str, now: float) -> None:
        key = owner.key
        about = [Regarding(key.api_version, key.kind, key.namespace, key.name, owner.uid)]
        if reason in _SAID_OF_PODS:
            about += [
                Regarding("v1", "Pod", pod.namespace, pod.name, pod.uid)
                for pod in islice(owner.pods, MOST_OF_PODS)
            ]
        self._said, allowed = events_allowed(self._said, owner.uid, len(about), now)
        text = EventText(reason, message, reason in _WARNINGS, Anchor.RELEASED)
        for item in about[:allowed]:
            self._ports.events.say(item, text)

    def _tell_brake(self, brake: str, *, suspended: bool) -> None:
        if brake == self._brake:
            return
        self._brake = brake
        if not brake:
            _log.info("releases go on")
            return
        _log.warning("no owner is released: %s", brake)
        if suspended:
            text = EventText(names.IDLE_SUSPENDED, brake, warning=True)
            self._ports.events.say(self._itself, text)


def events_allowed(
    said: Mapping[str, tuple[float, ...]], uid: str, wanted: int, now: float
) -> tuple[Mapping[str, tuple[float, ...]], int]:
    """
    Return how many of an owner's Events may be written, the first of which is its own and the
    others its pods'; and when the Events of the last hour were written, by owner.
    """
    recent = {
        key: left
        for key, times in said.items()
        if (left := tuple(at for at in times if now - at < HOUR_SECONDS))
    }
    mine = recent.get(uid, ())
    of_pods = max(MOST_OF_PODS - len(mine), 0)
    allowed = min(wanted, 1 + of_pods, MOST_EVENTS - len(mine))
    return {**recent, uid: (*mine, *[now] * allowed)}, allowed
