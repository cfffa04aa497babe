"""Do the steps of a script."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import signal
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, Self

from gpufence.quantity import MIB
from simulator.workload.errors import OutOfMemoryError
from simulator.workload.script import (
    Await,
    Busy,
    Crash,
    Exit,
    Fork,
    Hold,
    Leave,
    Need,
    Resize,
    Serve,
    Slide,
    Step,
    Wait,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simulator.workload.signals import Workers, WorkloadClock

TICK_SECONDS = 0.05
RETRY_SECONDS = 0.2
LOOK_SECONDS = 1.0
_LISTEN_SECONDS = 0.2
_ALL = 100
_SYS_EXIT = {"x86_64": 60}.get(platform.machine(), 93)  # of a thread alone, as no call of Python's


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run needs besides memory; `patient` waits for memory instead of dying of its lack."""

    clock: WorkloadClock
    workers: Workers
    say: Callable[[str], None]
    patient: bool = False


class TenantMemory(Protocol):
    """The memory of one process on one card: of a simulated framework, or of a real one."""

    @property
    def in_use(self) -> int: ...

    @property
    def shown(self) -> int:
        """What NVML shows of it, the context included."""
        ...

    def resize(self, size: int) -> None:
        """Use so much from now on; raises OutOfMemoryError if it cannot be."""
        ...

    def need(self, size: int) -> None:
        """Use no more than that, and keep the rest in the framework's cache."""
        ...

    def look(self) -> None:
        """Give back from the cache what others need, as the start-up hook does each second."""
        ...

    def resize_managed(self, size: int) -> None: ...

    def work(self, percent: int) -> None: ...

    def reopened(self) -> Self: ...

    def release(self) -> None: ...


class ScriptRun:
    def __init__(self, memories: Sequence[TenantMemory], context: RunContext) -> None:
        self._memories = list(memories)
        self._context = context
        self._is_worker = False
        self._caching = False

    def follow(self, steps: Sequence[Step]) -> int:
        """Do all steps and return the exit code; without an `exit`, hold on until stopped."""
        for step in steps:
            if isinstance(step.action, Exit):
                self._context.say(step.text)
                return step.action.code
            if isinstance(step.action, Serve):
                self._context.say(step.text)
                self._serve(step.action)
            self._do(step)
        self._context.say("script done, holding on")
        self._pause(None)
        raise AssertionError("an endless pause ends by an exception only")

    def close(self) -> None:
        self._context.workers.stop()
        for memory in self._memories:
            memory.release()

    def _do(self, step: Step) -> None:
        match step.action:
            case Hold(size, managed):
                self._each(partial(_hold, size=size, managed=managed))
            case Resize(delta):
                self._each(lambda memory: memory.resize(max(0, memory.in_use + delta)))
            case Slide():
                self._slide(step.action)
            case Need(size):
                self._caching = True
                self._each(lambda memory: memory.need(size))
            case Busy(percent):
                self._each(lambda memory: memory.work(percent))
            case Wait() | Await():
                self._wait(step.action)
            case Fork(workers):
                self._fork(workers)
            case Crash() | Leave():
                self._go(step)
            case Exit() | Serve():
                raise AssertionError("handled where the script is followed")
        shown = ", ".join(f"{memory.shown // MIB} MiB" for memory in self._memories)
        self._context.say(f"{step.text}: {shown} on the card")

    def _go(self, step: Step) -> None:
        if isinstance(step.action, Crash):
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGSEGV)
        self._context.say(step.text)
        threading.Thread(target=threading.Event().wait).start()
        ctypes.CDLL(None).syscall(_SYS_EXIT, 0)

    def _wait(self, what: Wait | Await) -> None:
        if isinstance(what, Wait):
            self._pause(what.seconds)
            return
        while not Path(what.path).exists():
            self._pause(TICK_SECONDS)

    def _pause(self, seconds: float | None) -> None:
        """Wait; a process with a cache looks meanwhile whether others need it."""
        end = math.inf if seconds is None else self._context.clock.now() + seconds
        while self._caching and (left := end - self._context.clock.now()) > 0:
            self._context.clock.pause(min(left, LOOK_SECONDS))
            self._each(lambda memory: memory.look())
        if not self._caching:
            self._context.clock.pause(seconds)

    def _serve(self, serve: Serve) -> NoReturn:
        """
        Work off messages one by one, and tell another queue how long each waited; asked to stop,
        finish the one at hand.
        """
        from simulator.workload.stomp import StompClient  # noqa: PLC0415 - others start without

        with StompClient(serve.host, serve.port) as broker:
            broker.subscribe(serve.queue)
            while True:
                self._context.clock.pause(0)
                message = broker.receive(_LISTEN_SECONDS)
                if message is None:
                    continue
                waited = time.time() - float(message.headers["sent"])
                self._each(lambda memory: memory.work(_ALL))
                time.sleep(float(message.headers["seconds"]))  # no signal ends it: none is let in
                self._each(lambda memory: memory.work(0))
                again = message.headers.get("redelivered", "false")
                done = f"{time.time():.3f} {waited:.3f} {again}".encode()
                broker.send(f"{serve.queue}.done", done)
                broker.acknowledge(message)

    def _each(self, use: Callable[[TenantMemory], None]) -> None:
        for memory in self._memories:
            self._attempt(memory, use)

    def _attempt(self, memory: TenantMemory, use: Callable[[TenantMemory], None]) -> None:
        """
        Use memory; out of it, end or, being patient, keep what there is and ask again and again.
        """
        complained = False
        while True:
            try:
                use(memory)
            except OutOfMemoryError as error:
                if not self._context.patient:
                    raise
                if not complained:
                    self._context.say(f"{error} Waiting for memory.")
                complained = True
                self._context.clock.pause(RETRY_SECONDS)
            else:
                return

    def _slide(self, slide: Slide) -> None:
        for memory in self._memories:
            before = self._context.clock.now()
            while memory.in_use < slide.target if slide.up else memory.in_use > slide.target:
                self._context.clock.pause(TICK_SECONDS)
                now = self._context.clock.now()
                size = _moved(memory.in_use, slide, now - before)
                before = now
                self._attempt(memory, partial(_hold, size=size, managed=False))

    def _fork(self, count: int) -> None:
        """Start workers, but not from workers: theirs is the work, not the hiring."""
        if not self._is_worker and self._context.workers.fork(count):
            self._is_worker = True
            parents, self._memories = self._memories, []  # not ours to give back
            for memory in parents:
                self._memories.append(memory.reopened())


def _hold(memory: TenantMemory, size: int, *, managed: bool) -> None:
    if managed:
        memory.resize_managed(size)
    else:
        memory.resize(size)


def _moved(size: int, slide: Slide, seconds: float) -> int:
    way = round(slide.rate * seconds)
    return min(slide.target, size + way) if slide.up else max(slide.target, size - way)
