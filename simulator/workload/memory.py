"""The memory of one process on its cards, taken the way its framework's allocator takes it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gpufence.names import ENV_GIVE_BACK, ENV_REQUEST_BYTES
from simulator.nvml.errors import CardFullError
from simulator.nvml.groups import own_group
from simulator.nvml.layout import NO_INSTANCE, Lists
from simulator.workload.errors import FrameworkError, NoCardError, OutOfMemoryError
from simulator.workload.frameworks.budget import Budget, Device, Dies, OnCpu, Shortage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.nvml.processes import CardPlace, Holding
    from simulator.nvml.state import State
    from simulator.workload.frameworks.budget import Framework

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_HOOK = (ENV_REQUEST_BYTES, ENV_GIVE_BACK)
_PAUSE_SECONDS = 60.0
ARENA_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class AllocatorProgram:
    """What decides how a process takes memory; `context` is taken first and outside any cap."""

    framework: Framework
    variables: Mapping[str, str]
    context: int = 0
    lists: Lists = Lists.COMPUTE


class FrameworkMemory:
    """
    What the process uses of one card.

    The card shows the context plus what is in use or, for frameworks that take an arena at once,
    the arena. Opening it raises what the framework would end with.
    """

    def __init__(
        self, state: State, place: CardPlace, index: int, program: AllocatorProgram
    ) -> None:
        self._state = state
        self._place = place
        self._index = index
        self._program = program
        self.in_use = 0
        self._cached = 0
        self._gave_back_at = -math.inf
        self._holding: Holding | None = self._open_context()
        self.budget = self._open_framework(self._holding)

    @property
    def shown(self) -> int:
        return 0 if self._holding is None else self._holding.memory

    @property
    def name(self) -> str:
        card = self._state.cards[self._place.card]
        return f"{card.name} ({card.uuid})"

    def reopened(self) -> Self:
        """Take as much again for another process: the one that calls this, after a fork."""
        again = type(self)(self._state, self._place, self._index, self._program)
        again.resize(self.in_use)
        if self._holding is not None:
            again.resize_managed(self._holding.managed)
        return again

    def resize(self, size: int) -> None:
        """Use so much from now on; raises OutOfMemoryError and changes nothing if it cannot be."""
        if self._holding is None:
            self.in_use = size
            return
        limit = self.budget.limit
        if size > self.in_use and limit is not None and size > limit:
            raise self._shortage(size - self.in_use, limit)
        cached = max(self._cached - max(size - self.in_use, 0), 0)
        needed = self._program.context + max(self.budget.arena, size + cached)
        try:
            self._holding.resize(needed)
        except CardFullError as error:
            raise self._shortage(size - self.in_use, None, error.free) from error
        self.in_use, self._cached = size, cached

    def need(self, size: int) -> None:
        """Use less, and keep what was used for later."""
        self._cached += max(self.in_use - size, 0)
        self.in_use = min(self.in_use, size)

    def look(self) -> None:
        """
        Give the cache back as the start-up hook does where its variables are: above the request, on
        a card with less free than it says, and not twice a minute.
        """
        request, floor = (int(self._program.variables.get(name, 0)) for name in _HOOK)
        now = time.monotonic()
        if not request or self._device().free >= floor or now < self._gave_back_at + _PAUSE_SECONDS:
            return
        if self._cached and self.shown > request:
            self._cached, self._gave_back_at = 0, now
            self.resize(self.in_use)

    def resize_managed(self, size: int) -> None:
        """Use so much managed memory: no allocator caps it and NVML charges nobody with it."""
        if self._holding is None:
            return
        try:
            self._holding.resize(managed=size)
        except CardFullError as error:
            raise self._shortage(error.wanted, None, error.free) from error

    def work(self, percent: int) -> None:
        if self._holding is not None:
            self._holding.work(percent)

    def release(self) -> None:
        if self._holding is not None:
            self._holding.release()

    def _open_context(self) -> Holding:
        try:
            return self._state.processes.hold(
                self._place, self._program.context, lists=self._program.lists
            )
        except CardFullError as error:
            raise self._shortage(error.wanted, None, error.free) from error

    def _open_framework(self, holding: Holding) -> Budget:
        """Decide anew when somebody else takes the memory that an arena was planned from."""
        for attempt in range(1, ARENA_ATTEMPTS + 1):
            decision = self._program.framework.decide(self._program.variables, self._device())
            if isinstance(decision, Dies):
                holding.release()
                raise FrameworkError(decision.message, decision.code)
            if isinstance(decision, OnCpu):
                holding.release()
                self._holding = None
                return Budget(None, f"{decision.why}; falling back to cpu")
            try:
                holding.resize(self._program.context + decision.arena)
            except CardFullError as error:
                if attempt == ARENA_ATTEMPTS:
                    holding.release()
                    raise self._shortage(decision.arena, None, error.free) from error
            else:
                return decision
        raise AssertionError("the last attempt returns or raises")

    def _device(self) -> Device:
        room = self._state.processes.room(self._place)
        groups = self._state.groups
        limit, used = groups.shown(self._place.card, own_group())
        total = min(limit, room.usable)
        return Device(
            index=self._index,
            total=total,
            free=min(max(0, limit - used), room.free),
            capability=self._state.cards[self._place.card].capability,
            size=total if groups.totals_capped else room.usable,
        )

    def _shortage(
        self, wanted: int, limit: int | None, free: int | None = None
    ) -> OutOfMemoryError:
        device = self._device()
        shortage = Shortage(
            device=device,
            wanted=wanted,
            in_use=self.in_use,
            free=device.free if free is None else free,
            limit=limit,
        )
        return OutOfMemoryError(self._program.framework.complain(shortage))


def choose_cards(
    state: State, asked: str | None, variables: Mapping[str, str]
) -> tuple[CardPlace, ...]:
    """Resolve the cards to use: those asked for or, like any framework, the first visible one."""
    if asked is not None:
        names = asked.split(",") if asked != "all" else [str(i) for i in range(len(state.cards))]
    else:
        names = [_first_visible(variables)]
    return tuple(_usable(state, state.find(name.strip())) for name in names)


def _first_visible(variables: Mapping[str, str]) -> str:
    text = variables.get(VISIBLE)
    if text in {None, "all"}:
        return "0"
    if text in {"", "none", "void"}:
        raise NoCardError(
            f"RuntimeError: no CUDA-capable device is detected ({VISIBLE} is {text!r}; "
            "request a GPU or set it to all, an index or a UUID)"
        )
    return str(text).split(",", maxsplit=1)[0]


def _usable(state: State, place: CardPlace) -> CardPlace:
    """Replace a card in MIG mode by its first instance, as CUDA does."""
    card = state.cards[place.card]
    if place.instance != NO_INSTANCE or not card.mig:
        return place
    if not card.instances:
        raise NoCardError(f"RuntimeError: {card.name} is in MIG mode and has no instance to use")
    return card.instances[0].place
