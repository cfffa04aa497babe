"""
One pod on the node: its containers' processes, its reports, and its end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from gpufence.errors import GpufenceError
from kube import ConflictError, KubeError, NotFoundError
from simulator.node import clock
from simulator.node.errors import RefusedPodError
from simulator.node.lifecycle import (
    CONFIG_ERROR,
    Run,
    Running,
    Terminated,
    Waiting,
    comes_again,
    ended,
    fresh,
    next_steps,
    started,
)
from simulator.node.pod import Kind
from simulator.node.program import check_programs
from simulator.node.projections import check_volumes
from simulator.node.status import Verdict, failed_status, pod_status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from simulator.node.downward import NodeFacts
    from simulator.node.launch import Launch, Launched
    from simulator.node.lifecycle import Pauses
    from simulator.node.pod import Container, Pod

MINIMUM_GRACE_SECONDS = 2.0
AGAIN_SECONDS = 1.0
_OVER = {"Succeeded", "Failed"}
_SHUT_DOWN = Verdict("Terminated", "Pod was terminated in response to imminent node shutdown.")


class Reports(Protocol):
    """
    Where a pod's news go.
    """

    def report(self, pod: Pod, status: dict[str, object]) -> None: ...

    def remove(self, pod: Pod) -> None: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """
    What all pods of a node share.
    """

    node: NodeFacts
    reports: Reports
    launch: Callable[[Pod], Launch]
    pauses: Pauses
    say: Callable[[str], None]


class PodRun:
    """
    Carries out what `lifecycle` decides for one pod. It is gone when nobody needs it any more.
    """

    def __init__(self, pod: Pod, parts: Parts, now: float) -> None:
        self.pod = pod
        self.is_gone = False
        self._parts = parts
        self._launch = parts.launch(pod)
        self._records = fresh(pod)
        self._launched: dict[str, Launched] = {}
        self._patience: dict[str, float] = {}
        self._deadline: float | None = None
        self._vanished = False
        self._verdict = _refusal(pod)
        self._finished = pod.phase in _OVER
        self._began = clock.timestamp()
        self._has_news = not self._finished
        self._quiet_until = now
        self.update(pod, now)

    @property
    def is_finished(self) -> bool:
        """
        Tell whether nothing of the pod runs or will run.
        """
        return self._finished

    @property
    def lines(self) -> Mapping[int, str]:
        """
        The cgroup line of each running container, by its session.
        """
        return {one.process.session: one.cgroup for one in self._launched.values()}

    @property
    def folder(self) -> Path:
        return self._launch.folder

    def update(self, pod: Pod, now: float) -> None:
        """
        Take the pod as the API has it now.

        The grace of a deletion is fixed when it is first seen: with containerd a later, shorter
        one changes nothing, since the first is already being waited for.
        """
        self.pod = replace(pod, conditions=self.pod.conditions)
        if pod.deletion_grace is not None and self._deadline is None:
            self._deadline = now + max(pod.deletion_grace, MINIMUM_GRACE_SECONDS)
        if not self._finished and self._verdict is None:
            self._launch.refresh(self.pod)

    def vanish(self, now: float) -> None:
        """
        Note that the API no longer has the pod: end what runs, and report nothing more.
        """
        self._vanished = True
        if self._deadline is None:
            self._deadline = now + max(self.pod.grace, MINIMUM_GRACE_SECONDS)

    def shut_down(self, deadline: float) -> None:
        """
        End the pod because the node ends, until then at the latest.
        """
        self._deadline = min(deadline, self._deadline or deadline)
        self._patience = {name: min(until, deadline) for name, until in self._patience.items()}
        if not self._finished and self._verdict is None:
            self._verdict, self._has_news = _SHUT_DOWN, True

    def advance(self, now: float) -> None:
        """
        Notice what has happened to the processes and do what follows from it.
        """
        self._reap(now)
        if not self._finished:
            ending = self._deadline is not None or self._verdict is not None
            steps = next_steps(self.pod, self._records, now, ending=ending)
            for name in steps.start:
                self._start(self._container(name), now)
            self._stop(steps.stop, now)
            self._finished = steps.finished
            self._has_news |= bool(steps.start) or steps.finished

    def tell(self, now: float) -> None:
        """
        Bring the API up to date; what fails is tried again after a pause.
        """
        if now < self._quiet_until:
            return
        try:
            if self._has_news and not self._vanished:
                self._report()
            if self._finished and self.pod.deletion_grace is not None and not self._vanished:
                self._parts.reports.remove(self.pod)
                self._vanished = True
        except (NotFoundError, ConflictError):
            self.vanish(now)
        except KubeError as error:
            self._quiet_until = now + AGAIN_SECONDS
            self._say(f"not reported: {error}")
        if self._vanished and self._finished:
            self.is_gone = True
            self._launch.clear()

    def _reap(self, now: float) -> None:
        for name, launched in list(self._launched.items()):
            code = launched.process.poll()
            if code is None:
                continue
            del self._launched[name]
            self._patience.pop(name, None)
            self._has_news = True
            ending = Terminated(
                launched.id,
                launched.started_at,
                clock.timestamp(),
                code,
                launched.process.last_words(),
            )
            container, record = self._container(name), self._records[name]
            again = self._deadline is None and self._verdict is None
            again = again and comes_again(self.pod, self._records, container, code)
            self._records[name] = ended(
                container,
                record,
                ending,
                Run(now, now - launched.began),
                self._parts.pauses if again else None,
            )
            self._say(f"{name} ended with {code}: {ending.message}")

    def _start(self, container: Container, now: float) -> None:
        record = self._records[container.name]
        try:
            launched = self._launch.start(self.pod, container, record.restarts)
        except (GpufenceError, OSError) as error:
            waiting = Waiting(CONFIG_ERROR, str(error))
            self._records[container.name] = replace(record, state=waiting, due=now + AGAIN_SECONDS)
        else:
            self._launched[container.name] = launched
            running = Running(launched.id, launched.started_at)
            self._records[container.name] = started(record, running)
            self._say(f"{container.name} started on {launched.cards or 'no card'}")

    def _stop(self, names: tuple[str, ...], now: float) -> None:
        for name in names:
            launched = self._launched[name]
            if name not in self._patience:
                launched.process.terminate()
                self._patience[name] = self._last_moment(name, now)
            elif now >= self._patience[name]:
                launched.process.kill()

    def _last_moment(self, name: str, now: float) -> float:
        deadline = self._deadline
        if deadline is None:
            return now + max(self.pod.grace, MINIMUM_GRACE_SECONDS)
        if self._container(name).kind is Kind.SIDECAR and self._verdict is not _SHUT_DOWN:
            return max(deadline, now + MINIMUM_GRACE_SECONDS)
        return deadline

    def _report(self) -> None:
        status = self._status()
        self._parts.reports.report(self.pod, status)
        self._has_news = False
        conditions = status.get("conditions")
        if isinstance(conditions, list):
            self.pod = replace(self.pod, conditions=tuple(conditions))

    def _status(self) -> dict[str, object]:
        verdict = self._verdict
        if verdict is not None and verdict is not _SHUT_DOWN:
            return failed_status(verdict, self._began)
        times = (self._began, clock.timestamp())
        status = pod_status(
            self.pod, self._records, self._parts.node, times, terminal=self._finished
        )
        if verdict is not None and self._finished and status["phase"] != "Succeeded":
            return {**status, "reason": verdict.reason, "message": verdict.message}
        return status

    def _container(self, name: str) -> Container:
        return next(one for one in self.pod.containers if one.name == name)

    def _say(self, text: str) -> None:
        self._parts.say(f"{self.pod.full_name}: {text}")


def _refusal(pod: Pod) -> Verdict | None:
    try:
        check_programs(pod)
        check_volumes(pod)
    except RefusedPodError as error:
        return Verdict("Unsupported", str(error))
    return None
