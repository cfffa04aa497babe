"""
PURE. What happens next in a pod's life: which containers to start, which to stop, when it ends.

Containers start all at once; there are no init containers and no sidecars here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from gpufence.times import doubled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.node.pod import NodePod

CREATING = "ContainerCreating"
CRASH_LOOP = "CrashLoopBackOff"
CONFIG_ERROR = "CreateContainerConfigError"
RUN_ERROR = "RunContainerError"
START_ERROR = "StartError"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not started yet, or waiting to be started again."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A process lives; times are as the API writes them."""

    container_id: str
    started_at: str


@dataclass(frozen=True, slots=True)
class Terminated:
    container_id: str
    started_at: str
    finished_at: str
    exit_code: int
    message: str = ""
    reason: str = ""


ContainerState: TypeAlias = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """One container's past and present; `failures` counts towards its back-off, `due` ends it."""

    state: ContainerState
    last: Terminated | None = None
    restarts: int = 0
    failures: int = 0
    due: float = 0.0

    @property
    def is_running(self) -> bool:
        return isinstance(self.state, Running)

    @property
    def ending(self) -> Terminated | None:
        return self.state if isinstance(self.state, Terminated) else self.last

    @property
    def was_started(self) -> bool:
        return self.is_running or self.ending is not None

    @property
    def has_succeeded(self) -> bool:
        return not self.is_running and self.ending is not None and not self.ending.exit_code


Records: TypeAlias = "Mapping[str, ContainerRecord]"


@dataclass(frozen=True, slots=True)
class RestartPauses:
    """
    How long a crashing container waits: not at all the first time, then twice as long each time.

    A run of `forgiven_seconds` starts the counting anew.
    """

    first_seconds: float = 10.0
    most_seconds: float = 300.0
    forgiven_seconds: float = 600.0

    def after(self, failures: int) -> float:
        """Return the pause before the start that follows so many failures in a row."""
        if failures <= 1:
            return 0.0
        return doubled(self.first_seconds, self.most_seconds, failures - 2)


@dataclass(frozen=True, slots=True)
class Steps:
    """What to do now. `finished` means that nothing runs and nothing will."""

    start: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    finished: bool = False


def fresh(pod: NodePod) -> dict[str, ContainerRecord]:
    return {container.name: ContainerRecord(Waiting(CREATING)) for container in pod.containers}


def next_steps(pod: NodePod, records: Records, now: float, *, ending: bool) -> Steps:
    """Decide what a kubelet would do next; with `ending` nothing is started any more."""
    if ending:
        running = tuple(name for name, record in records.items() if record.is_running)
        return Steps(stop=running, finished=not running)
    if all(is_final(pod, record) for record in records.values()):
        return Steps(finished=True)
    return Steps(
        start=tuple(
            name
            for name, record in records.items()
            if not (record.is_running or is_final(pod, record) or record.due > now)
        )
    )


def is_final(pod: NodePod, record: ContainerRecord) -> bool:
    ending = record.ending
    if record.is_running or ending is None:
        return False
    return not pod.restart.applies(ending.exit_code)


def started(record: ContainerRecord, running: Running) -> ContainerRecord:
    """Note that a container was started, for the first time or again."""
    return replace(record, state=running, restarts=record.restarts + record.was_started)


def ended(record: ContainerRecord, ending: Terminated) -> ContainerRecord:
    """Note that a container has ended and is not started again."""
    return replace(record, state=ending, last=ending)


def crashed(
    name: str,
    record: ContainerRecord,
    ending: Terminated,
    pauses: RestartPauses,
    *,
    ran: float,
    now: float,
) -> ContainerRecord:
    """
    Note that a container has ended, after so many seconds, and is started again after a pause.
    """
    failures = 1 if ran >= pauses.forgiven_seconds else record.failures + 1
    pause = pauses.after(failures)
    state: ContainerState = ending
    if pause:
        state = Waiting(CRASH_LOOP, f"back-off {pause:.0f}s restarting container={name}")
    return replace(record, state=state, last=ending, failures=failures, due=now + pause)


def not_started(
    pod: NodePod,
    name: str,
    record: ContainerRecord,
    ending: Terminated,
    pauses: RestartPauses,
    *,
    now: float,
) -> ContainerRecord:
    """Note that the runtime could not start a container: an ending like others, and it waits."""
    record = replace(record, restarts=record.restarts + record.was_started)
    if not pod.restart.applies(ending.exit_code):
        return ended(record, ending)
    waits = crashed(name, record, ending, pauses, ran=0.0, now=now)
    if isinstance(waits.state, Waiting):
        return waits
    return replace(waits, state=Waiting(RUN_ERROR, ending.message))
