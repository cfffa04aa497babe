"""
PURE. What happens next in a pod's life: which containers to start, which to stop, and when it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from gpufence.backoff import doubled
from simulator.node.pod import Container, Kind, Pod, Restart

if TYPE_CHECKING:
    from collections.abc import Mapping

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
CRASH_LOOP = "CrashLoopBackOff"
CONFIG_ERROR = "CreateContainerConfigError"


@dataclass(frozen=True, slots=True)
class Waiting:
    """
    Not started yet, or waiting to be started again.
    """

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """
    A process lives; times are as the API writes them.
    """

    container_id: str
    started_at: str


@dataclass(frozen=True, slots=True)
class Terminated:
    """
    The process has ended.
    """

    container_id: str
    started_at: str
    finished_at: str
    exit_code: int
    message: str = ""


State: TypeAlias = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class Record:
    """
    One container's past and present; `failures` counts towards its back-off, `due` ends it.
    """

    state: State
    last: Terminated | None = None
    restarts: int = 0
    failures: int = 0
    due: float = 0.0

    @property
    def is_running(self) -> bool:
        return isinstance(self.state, Running)

    @property
    def ending(self) -> Terminated | None:
        """
        How it last ended, if it does not run now.
        """
        return self.state if isinstance(self.state, Terminated) else self.last

    @property
    def was_started(self) -> bool:
        return self.is_running or self.ending is not None


@dataclass(frozen=True, slots=True)
class Pauses:
    """
    How long a crashing container waits: not at all the first time, then twice as long each time.

    A run of `forgiven_seconds` starts the counting anew.
    """

    first_seconds: float = 10.0
    most_seconds: float = 300.0
    forgiven_seconds: float = 600.0

    def after(self, failures: int) -> float:
        """
        Return the pause before the start that follows so many failures in a row.
        """
        if failures <= 1:
            return 0.0
        return doubled(self.first_seconds, self.most_seconds, failures - 2)


@dataclass(frozen=True, slots=True)
class Run:
    """
    How long a container ran, and when that was noticed, on the clock of `Record.due`.
    """

    now: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Steps:
    """
    What to do now. `finished` means that nothing runs and nothing will.
    """

    start: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    finished: bool = False


Records: TypeAlias = "Mapping[str, Record]"


def fresh(pod: Pod) -> dict[str, Record]:
    """
    Return the records of a pod whose first container has not been started.
    """
    waiting = Waiting(INITIALIZING if pod.inits else CREATING)
    return {container.name: Record(waiting) for container in pod.containers}


def next_steps(pod: Pod, records: Records, now: float, *, ending: bool) -> Steps:
    """
    Decide what a kubelet would do next: init containers one after the other, sidecars from their
    turn on until everything else has ended, all others at once.
    """
    if ending or is_over(pod, records):
        return _wind_down(pod, records)
    starts: list[str] = []
    initialized = is_initialized(pod, records)
    for container in pod.inits:
        record = records[container.name]
        if container.kind is Kind.INIT and has_succeeded(record):
            continue
        if not record.is_running and record.due <= now:
            starts.append(container.name)
        if not initialized and not (record.is_running and container.kind is Kind.SIDECAR):
            return Steps(tuple(starts))
    for container in pod.mains:
        record = records[container.name]
        if not (record.is_running or is_final(container, record) or record.due > now):
            starts.append(container.name)
    return Steps(tuple(starts))


def ended(
    container: Container, record: Record, ending: Terminated, run: Run, pauses: Pauses | None
) -> Record:
    """
    Note that a container has ended; without `pauses` it is not started again.
    """
    if pauses is None:
        return replace(record, state=ending, last=ending)
    failures = 1 if run.seconds >= pauses.forgiven_seconds else record.failures + 1
    pause = pauses.after(failures)
    state: State = ending
    if pause:
        state = Waiting(CRASH_LOOP, f"back-off {pause:.0f}s restarting container={container.name}")
    return replace(record, state=state, last=ending, failures=failures, due=run.now + pause)


def started(record: Record, running: Running) -> Record:
    """
    Note that a container was started, for the first time or again.
    """
    return replace(record, state=running, restarts=record.restarts + record.was_started)


def comes_again(pod: Pod, records: Records, container: Container, exit_code: int) -> bool:
    """
    Tell whether a container that has just ended so is to be started again.
    """
    if container.kind is Kind.SIDECAR:
        return not is_over(pod, records)
    return _restarts(container.restart, exit_code)


def is_final(container: Container, record: Record) -> bool:
    """
    Tell whether the container has ended for good, sidecars apart.
    """
    ending = record.ending
    if record.is_running or ending is None:
        return False
    return not _restarts(container.restart, ending.exit_code)


def is_over(pod: Pod, records: Records) -> bool:
    """
    Tell whether only sidecars could still run: the work is done, or an init container failed it.
    """
    return init_failed(pod, records) or all(
        is_final(container, records[container.name]) for container in pod.mains
    )


def init_failed(pod: Pod, records: Records) -> bool:
    """
    Tell whether an init container has failed and is not tried again.
    """
    return any(
        is_final(container, records[container.name]) and not has_succeeded(records[container.name])
        for container in pod.inits
        if container.kind is Kind.INIT
    )


def is_initialized(pod: Pod, records: Records) -> bool:
    """
    Tell whether all init containers have done their part; once true it stays true.
    """
    if any(records[container.name].was_started for container in pod.mains):
        return True
    return all(
        records[container.name].is_running
        if container.kind is Kind.SIDECAR
        else has_succeeded(records[container.name])
        for container in pod.inits
    )


def has_succeeded(record: Record) -> bool:
    """
    Tell whether the container ended with 0 and does not run now.
    """
    return not record.is_running and record.ending is not None and not record.ending.exit_code


def _restarts(restart: Restart, exit_code: int) -> bool:
    return restart is Restart.ALWAYS or (restart is Restart.ON_FAILURE and exit_code != 0)


def _wind_down(pod: Pod, records: Records) -> Steps:
    """
    Stop everything but the sidecars, then those, the last one first.
    """
    running = [one for one in pod.containers if records[one.name].is_running]
    others = tuple(one.name for one in running if one.kind is not Kind.SIDECAR)
    if others:
        return Steps(stop=others)
    return Steps(stop=(running[-1].name,)) if running else Steps(finished=True)
