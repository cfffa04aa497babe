"""Processes of our own take memory of a card, and everything is noted that NVML says meanwhile."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

from agent.clock import boottime
from agent.commands.verify import holder as program
from agent.commands.verify.caps import try_cap
from agent.commands.verify.facts import (
    Afterwards,
    CardFacts,
    CardTrial,
    Growth,
    KernelView,
    ProcessListing,
)
from agent.model.use import MPS_SERVER
from gpufence.quantity import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent.model.sample import CardSample
    from agent.nvml.sampler import Sampler
    from agent.procfs.lookup import Lookup
    from gpufence.cards import Card

Programs: TypeAlias = "Mapping[str, Sequence[str]]"
"""Commands that take all they can get, by the framework that they use."""

_MOST_STEP: Final = 256 * MIB
_LEAST_STEP: Final = 32 * MIB
_PART_OF_FREE: Final = 16
"""A step is a sixteenth of what is free: two processes and their contexts leave most of it."""

_SETTLE_SECONDS: Final = 1.0
_END_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.05
_ANSWER_SECONDS: Final = 60.0  # without persistence mode each card wakes up first
_LOOKS: Final = 5
_CROWD: Final = 6
_LINES: Final = 12


class TrialError(Exception):
    """Raised where a trial cannot go on, with the reason."""


class UntriedError(TrialError):
    """Raised where none can be begun for want of free memory or of CUDA."""


class CardLook(NamedTuple):
    """What NVML said of a card at one moment, by PID, and how long it took."""

    used_bytes: int
    free_bytes: int
    amounts: dict[int, int | None]
    clients: frozenset[int]
    seconds: float

    def of_others(self, pids: set[int]) -> int:
        return sum(used or 0 for pid, used in self.amounts.items() if pid not in pids)


class CardWatch:
    """Looks at one card as the agent does, through a child that asks NVML."""

    def __init__(self, sampler: Sampler, card: Card) -> None:
        self._sampler = sampler
        self.card = card

    def look(self) -> CardLook:
        began = time.monotonic()
        sample = self._sampler.sample(frozenset({self.card.uuid}))
        seconds = time.monotonic() - began
        found = (each for each in sample.cards if each.card.uuid == self.card.uuid)
        return _seen(next(found, None), seconds)

    def until(
        self, wanted: Callable[[CardLook], bool], seconds: float
    ) -> tuple[CardLook, float | None]:
        """Look until it is so; the seconds that took, None where it never was."""
        began = time.monotonic()
        while True:
            seen = self.look()
            passed = time.monotonic() - began
            if wanted(seen):
                return seen, passed
            if passed > seconds:
                return seen, None
            time.sleep(_PAUSE_SECONDS)


def _seen(card: CardSample | None, seconds: float) -> CardLook:
    if card is None or card.memory is None or card.processes is None:
        trouble = card.trouble.text if card is not None else ""
        raise TrialError(trouble or "NVML does not say what is in use, or by which processes")
    amounts = {each.pid: each.used_bytes for each in card.processes.processes}
    memory = card.memory
    return CardLook(memory.used_bytes, memory.free_bytes, amounts, card.mps_clients, seconds)


class Holder:
    """A process that sees one card and takes memory of it; its errors are answers."""

    def __init__(self, card: str) -> None:
        command = [sys.executable, "-I", "-S", program.__file__]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            env={**os.environ, program.VISIBLE: card},
        )
        self._hello: dict[str, Any] = {}

    @property
    def hello(self) -> dict[str, Any]:
        """Return what the card is for CUDA, or why it cannot be had."""
        self._hello = self._hello or self._answer()
        return self._hello

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, line: str) -> dict[str, Any]:
        """Say a line, and return the answer, which may be an error."""
        if "error" in self.hello:
            return self.hello
        if self._process.stdin is None:
            return {"error": "it has ended"}
        with suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return self._answer()

    def do(self, line: str) -> dict[str, Any]:
        """Say a line without which nothing can be tried."""
        answer = self.say(line)
        if "error" in answer:
            raise TrialError(f"{line}: {answer['error']}")
        return answer

    def end(self) -> None:
        """Let it end by itself."""
        self._process.communicate(timeout=_ANSWER_SECONDS)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        if self._process.stdout is None:
            return {"error": "it has ended"}
        if not select.select([self._process.stdout], [], [], _ANSWER_SECONDS)[0]:
            raise TrialError(f"CUDA has not answered for {_ANSWER_SECONDS:.0f} s")
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": "the process has ended"}


def try_card(sampler: Sampler, lookup: Lookup, card: Card, programs: Programs) -> CardFacts:
    """Try everything on one card; what cannot be tried says why."""
    facts = CardFacts(
        uuid=card.uuid,
        model=card.full_model,
        total_bytes=card.memory_bytes,
        compute_capability=card.compute_capability,
        mig=card.mig is not None,
    )
    try:
        trial = _Trial(CardWatch(sampler, card), lookup).run(programs)
    except UntriedError as error:
        return replace(facts, untried=str(error))
    except (TrialError, subprocess.TimeoutExpired) as error:
        return replace(facts, trouble=str(error))
    return replace(facts, trial=trial)


class _Trial:
    def __init__(self, watch: CardWatch, lookup: Lookup) -> None:
        self._watch = watch
        self._lookup = lookup
        self._before = watch.look()
        self._step = min(_MOST_STEP, self._before.free_bytes // _PART_OF_FREE) // MIB * MIB

    def run(self, programs: Programs) -> CardTrial:
        if self._step < _LEAST_STEP:
            raise UntriedError(f"only {self._before.free_bytes // MIB}Mi are free")
        with self._holder() as holder:
            holder.do("open")
            context = self._settled(holder.pid).amounts.get(holder.pid)
            visible = holder.do("memory")["total"]
            return CardTrial(
                cuda_uuid=holder.hello["uuid"],
                visible_bytes=visible,
                context_bytes=context,
                growths=tuple(self._growth(holder, kind) for kind in program.KINDS),
                listing=self._listing(holder),
                identity=self._identity(holder),
                ending=self._ending(holder),
                caps=tuple(try_cap(self._watch, *each, visible) for each in programs.items()),
            )

    def _holder(self) -> Holder:
        holder = Holder(self._watch.card.uuid)
        if "error" in holder.hello:
            holder.kill()
            raise UntriedError(f"CUDA: {holder.hello['error']}")
        return holder

    def _settled(self, pid: int) -> CardLook:
        return self._watch.until(lambda seen: pid in seen.amounts, _SETTLE_SECONDS)[0]

    def _growth(self, holder: Holder, kind: str) -> Growth:
        growth = Growth(kind=kind, asked_bytes=self._step)
        before, free = self._settled(holder.pid), holder.do("memory")["free"]
        answer = holder.say(f"hold {kind} {self._step}")
        if "error" in answer:
            return replace(growth, refused=answer["error"])
        after, less = self._watch.look(), free - holder.do("memory")["free"]
        holder.do("release")
        last = self._watch.look()
        others = after.of_others({holder.pid}) - before.of_others({holder.pid})
        return replace(
            growth,
            process_bytes=_grown(before, after, holder.pid),
            card_bytes=after.used_bytes - before.used_bytes - others,
            free_bytes=less,
            left_bytes=_grown(before, last, holder.pid),
        )

    def _listing(self, holder: Holder) -> ProcessListing:
        holder.do(f"hold malloc {self._step}")
        seen = self._settled(holder.pid)
        listed = holder.pid in seen.amounts
        news = {pid: used for pid, used in seen.amounts.items() if pid not in self._before.amounts}
        news.pop(holder.pid, None)
        with ExitStack() as stack:
            neighbour = stack.enter_context(self._holder())
            neighbour.do("open")
            neighbour.do(f"hold malloc {self._step}")
            both = self._settled(neighbour.pid)
            crowd = self._crowd(stack)
            looks = tuple(self._watch.look().seconds for _ in range(_LOOKS))
        return ProcessListing(
            under_its_pid=listed,
            strangers=() if listed else tuple(news.values()),
            neighbour_bytes=both.amounts.get(neighbour.pid),
            neighbour_asked=self._step,
            mps_client=holder.pid in both.clients,
            mps_server=self._mps_server(both),
            processes=len(both.amounts) + crowd,
            look_seconds=looks,
        )

    def _crowd(self, stack: ExitStack) -> int:
        """Start more processes, as far as their contexts leave half of what is free."""
        crowd = [stack.enter_context(Holder(self._watch.card.uuid)) for _ in range(_CROWD)]
        for count, holder in enumerate(crowd):
            if self._watch.look().free_bytes < self._before.free_bytes // 2:
                return count
            if "error" in holder.say("open"):
                return count
        return _CROWD

    def _mps_server(self, seen: CardLook) -> bool:
        occupants = self._lookup.occupants(seen.amounts).values()
        return any(each.command == MPS_SERVER for each in occupants)

    def _identity(self, holder: Holder) -> KernelView:
        occupant = self._lookup.look(holder.pid)
        lines: tuple[str, ...] = ()
        with suppress(OSError):
            text = Path("/proc", str(holder.pid), "cgroup").read_text(encoding="utf-8")
            lines = tuple(text.splitlines()[:_LINES])
        if occupant is None:
            return KernelView(cgroup=lines)
        owner = occupant.owner
        return KernelView(
            cgroup=lines,
            container=owner is not None and owner.container_id is not None,
            pod=owner is not None and owner.pod_uid is not None,
            age_seconds=round(boottime() - occupant.started_by, 3),
        )

    def _ending(self, holder: Holder) -> Afterwards:
        """Let one process end by itself, and kill another that holds memory."""
        pid = holder.pid
        holder.end()
        exited = self._watch.until(lambda seen: pid not in seen.amounts, _END_SECONDS)[1]
        with self._holder() as other:
            other.do("open")
            other.do(f"hold malloc {self._step}")
            self._settled(other.pid)
        last, killed = self._watch.until(
            lambda seen: other.pid not in seen.amounts, _END_SECONDS if exited is not None else 0.0
        )
        others = last.of_others(set()) - self._before.of_others(set())
        left = last.used_bytes - self._before.used_bytes - others
        return Afterwards(exited_seconds=exited, killed_seconds=killed, left_bytes=left)


def _grown(before: CardLook, after: CardLook, pid: int) -> int | None:
    first, then = before.amounts.get(pid), after.amounts.get(pid)
    return None if first is None or then is None else then - first
