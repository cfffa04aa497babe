"""One pod on the node: its containers' processes, its reports, and its end."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from gpufence.errors import GpufenceError
from kube import ConflictError, KubeError, NotFoundError
from simulator.node.api import timestamp
from simulator.node.errors import RefusedPodError, StartError
from simulator.node.launch import check_pod
from simulator.node.lifecycle import (
    CONFIG_ERROR,
    START_ERROR,
    Running,
    Terminated,
    Waiting,
    crashed,
    ended,
    fresh,
    next_steps,
    not_started,
    started,
)
from simulator.node.status import PodFailure, failed_status, pod_status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from simulator.node.launch import PodStarter, StartedContainer
    from simulator.node.lifecycle import ContainerRecord, RestartPauses
    from simulator.node.pod import NodePod

MINIMUM_GRACE_SECONDS = 2.0
AGAIN_SECONDS = 1.0
_NEVER = "1970-01-01T00:00:00Z"
_START_CODE = 128
_OVER = {"Succeeded", "Failed"}
_SHUT_DOWN = PodFailure("Terminated", "Pod was terminated in response to imminent node shutdown.")


class StatusReports(Protocol):
    def report(self, pod: NodePod, status: dict[str, object]) -> None: ...

    def remove(self, pod: NodePod) -> None: ...


@dataclass(frozen=True, slots=True)
class PodRunContext:
    address: str
    reports: StatusReports
    starter: Callable[[NodePod], PodStarter]
    pauses: RestartPauses
    say: Callable[[str], None]


class PodRun:
    """
    Carries out what `lifecycle` decides for one pod. It is gone when nobody needs it any more.
    """

    def __init__(self, pod: NodePod, context: PodRunContext, now: float) -> None:
        self.pod = pod
        self.is_gone = False
        self._context = context
        self._starter = context.starter(pod)
        self._records = fresh(pod)
        self._running: dict[str, StartedContainer] = {}
        self._asked_to_end: set[str] = set()
        self._deadline: float | None = None
        self._vanished = False
        self._failure = _refusal(pod)
        self._finished = pod.phase in _OVER
        self._began = timestamp()
        self._changed = not self._finished
        self._quiet_until = now
        self.update(pod, now)

    @property
    def is_finished(self) -> bool:
        """Return whether nothing of the pod runs or will run."""
        return self._finished

    @property
    def lines(self) -> Mapping[int, str]:
        return {one.process.session: one.cgroup for one in self._running.values()}

    @property
    def folder(self) -> Path:
        return self._starter.folder

    def update(self, pod: NodePod, now: float) -> None:
        """
        Take the pod as the API has it now.

        The grace of a deletion is fixed when it is first seen: with containerd a later, shorter
        one changes nothing, since the first is already being waited for.
        """
        self.pod = replace(pod, conditions=self.pod.conditions)
        if pod.deletion_grace is not None:
            self._end_within(pod.deletion_grace, now)
        if not self._finished and self._failure is None:
            self._starter.refresh(self.pod)

    def vanish(self, now: float) -> None:
        """Note that the API no longer has the pod: end what runs, and report nothing more."""
        self._vanished = True
        self._end_within(self.pod.grace, now)

    def shut_down(self, deadline: float) -> None:
        """End the pod because the node ends, until then at the latest."""
        self._deadline = min(deadline, self._deadline or deadline)
        if not self._finished and self._failure is None:
            self._failure, self._changed = _SHUT_DOWN, True

    def advance(self, now: float) -> None:
        self._reap(now)
        if not self._finished:
            steps = next_steps(self.pod, self._records, now, ending=self._is_ending)
            for name in steps.start:
                self._start(name, now)
            for name in steps.stop:
                self._stop(name, now)
            self._finished = steps.finished
            self._changed |= bool(steps.start) or steps.finished

    def report(self, now: float) -> None:
        """Bring the API up to date; what fails is tried again after a pause."""
        if now < self._quiet_until:
            return
        try:
            if self._changed and not self._vanished:
                self._report_status()
            if self._finished and self.pod.deletion_grace is not None and not self._vanished:
                self._context.reports.remove(self.pod)
                self._vanished = True
        except (NotFoundError, ConflictError):
            self.vanish(now)
        except KubeError as error:
            self._quiet_until = now + AGAIN_SECONDS
            self._say(f"not reported: {error}")
        if self._vanished and self._finished:
            self.is_gone = True
            self._starter.clear()

    @property
    def _is_ending(self) -> bool:
        return self._deadline is not None or self._failure is not None

    def _end_within(self, grace: float, now: float) -> None:
        if self._deadline is None:
            self._deadline = now + max(grace, MINIMUM_GRACE_SECONDS)

    def _reap(self, now: float) -> None:
        for name, container in list(self._running.items()):
            code = container.process.poll()
            if code is None:
                continue
            del self._running[name]
            self._starter.end(self.pod, container.id)
            self._changed = True
            ending = Terminated(
                container.id,
                container.started_at,
                timestamp(),
                code,
                container.process.last_line(),
            )
            record = self._records[name]
            if self._is_ending or not self.pod.restart.applies(code):
                self._records[name] = ended(record, ending)
            else:
                ran, pauses = now - container.began, self._context.pauses
                self._records[name] = crashed(name, record, ending, pauses, ran=ran, now=now)
            self._say(f"{name} ended with {code}: {ending.message}")

    def _start(self, name: str, now: float) -> None:
        record = self._records[name]
        container = next(one for one in self.pod.containers if one.name == name)
        try:
            begun = self._starter.start(self.pod, container, record.restarts)
        except StartError as error:
            self._records[name] = self._not_started(name, error, now)
            self._say(f"{name} did not start: {error}")
        except (GpufenceError, OSError) as error:
            waiting = Waiting(CONFIG_ERROR, str(error))
            self._records[name] = replace(record, state=waiting, due=now + AGAIN_SECONDS)
        else:
            self._running[name] = begun
            self._records[name] = started(record, Running(begun.id, begun.started_at))
            cards = self._starter.cards
            where = " and ".join(f"card {card.index} ({card.uuid})" for card in cards)
            self._say(f"{name} started on {where or 'no card'}")

    def _not_started(self, name: str, error: StartError, now: float) -> ContainerRecord:
        """As containerd keeps a container whose start has failed: it has ended, and never began."""
        ending = Terminated(
            secrets.token_hex(32), _NEVER, timestamp(), _START_CODE, str(error), START_ERROR
        )
        record, pauses = self._records[name], self._context.pauses
        return not_started(self.pod, name, record, ending, pauses, now=now)

    def _stop(self, name: str, now: float) -> None:
        process = self._running[name].process
        if name not in self._asked_to_end:
            self._asked_to_end.add(name)
            process.terminate()
        elif self._deadline is not None and now >= self._deadline:
            process.kill()

    def _report_status(self) -> None:
        status = self._status()
        self._context.reports.report(self.pod, status)
        self._changed = False
        conditions = status.get("conditions")
        if isinstance(conditions, list):
            self.pod = replace(self.pod, conditions=tuple(conditions))

    def _status(self) -> dict[str, object]:
        failure = self._failure
        if failure is not None and failure is not _SHUT_DOWN:
            return failed_status(failure, self._began)
        times = (self._began, timestamp())
        address = self._context.address
        status = pod_status(self.pod, self._records, address, times, terminal=self._finished)
        if failure is not None and self._finished and status["phase"] != "Succeeded":
            return {**status, "reason": failure.reason, "message": failure.message}
        return status

    def _say(self, text: str) -> None:
        self._context.say(f"{self.pod.full_name}: {text}")


def _refusal(pod: NodePod) -> PodFailure | None:
    try:
        check_pod(pod)
    except RefusedPodError as error:
        return PodFailure("Unsupported", str(error))
    return None
