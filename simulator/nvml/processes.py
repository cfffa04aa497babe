"""Who holds memory of which card: the writing side of the process records."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.nvml import layout
from simulator.nvml.errors import CardFullError, TableFullError
from simulator.nvml.file import ProcessIdentity, own_namespace
from simulator.nvml.groups import Groups
from simulator.nvml.layout import Lists, Liveness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulator.nvml.file import StateFile

FREE, USED = 0, 1


@dataclass(frozen=True, slots=True)
class CardPlace:
    """Where memory is taken: a card, by its place in the state, or one of its MIG instances."""

    card: int
    instance: int = layout.NO_INSTANCE


@dataclass(frozen=True, slots=True)
class Room:
    """How much memory a place has; `free` is what an allocation may still take."""

    total: int
    reserved: int
    taken: int

    @property
    def free(self) -> int:
        return max(0, self.total - self.reserved - self.taken)

    @property
    def usable(self) -> int:
        return self.total - self.reserved


@dataclass(frozen=True, slots=True)
class Use:
    """One living process on one card; `pid` is 0 where this PID namespace cannot see it."""

    pid: int
    place: CardPlace
    memory: int
    managed: int
    lists: Lists
    kind: Liveness


class Holding:
    """What one process holds on one card; lasts until released or until the process ends."""

    def __init__(self, processes: ProcessLedger, slot: int, place: CardPlace) -> None:
        self._processes = processes
        self._slot = slot
        self.place = place

    @property
    def _record(self) -> layout.RecordLayout:
        return self._processes.record(self._slot)

    @property
    def memory(self) -> int:
        return self._record.memory

    @property
    def managed(self) -> int:
        return self._record.managed

    def resize(self, memory: int | None = None, *, managed: int | None = None) -> None:
        """Hold this much from now on; an increase that does not fit raises CardFullError."""
        record = self._record
        memory = record.memory if memory is None else memory
        managed = record.managed if managed is None else managed
        with self._processes.locks.allocation():
            grown = memory + managed - record.memory - record.managed
            self._processes.check_room(self.place, grown)
            self._processes.check_limit(record, memory - record.memory)
            record.memory = memory
            record.managed = managed
            record.peak = max(record.peak, memory)

    def grow(self, delta: int) -> None:
        self.resize(self.memory + delta)

    def work(self, sm: int, *, bandwidth: int = 0, encoder: int = 0, decoder: int = 0) -> None:
        """
        Keep the card so busy from now on; drivers sample it, so what was before shows for a while.
        """
        record = self._record
        level = record.levels[record.level_count % layout.MAX_LEVELS]
        level.since = _microseconds()
        level.sm, level.bandwidth = sm, bandwidth
        level.encoder, level.decoder = encoder, decoder
        record.level_count += 1

    def release(self) -> None:
        self._processes.release(self._slot)


class ProcessLedger:
    def __init__(self, file: StateFile) -> None:
        self._file = file
        self.locks = file.locks
        self.groups = Groups(file, self._living_records)

    def record(self, slot: int) -> layout.RecordLayout:
        return self._file.layout.records[slot]

    def hold(self, place: CardPlace, memory: int = 0, *, lists: Lists = Lists.COMPUTE) -> Holding:
        """Register this process on a card; the kernel ends the holding when the process ends."""
        return self._claim(place, memory, lists, Liveness.HELD, ProcessIdentity.own())

    def put(
        self,
        place: CardPlace,
        pid: int,
        memory: int = 0,
        *,
        lists: Lists = Lists.COMPUTE,
        kept: bool = False,
        group: str = "",
    ) -> Holding:
        """
        Register any PID by its number.

        It is listed while a process with that number lives or, if `kept`, until it is released:
        NVML may also list PIDs that have no /proc entry. `group` is its control group's folder.
        """
        identity = ProcessIdentity(pid, own_namespace(), 0, group)
        kind = Liveness.KEPT if kept else Liveness.CHECKED
        return self._claim(place, memory, lists, kind, identity)

    def living(self, card: int = layout.ANY_CARD) -> Iterator[Use]:
        for slot in range(self._file.layout.record_count):
            record = self.record(slot)
            if card not in {layout.ANY_CARD, record.card}:
                continue
            pid = self._pid(slot, record)
            if pid is not None:
                place = CardPlace(record.card, record.instance)
                lists, kind = Lists(record.lists), Liveness(record.kind)
                yield Use(pid, place, record.memory, record.managed, lists, kind)

    def _living_records(self, card: int) -> Iterator[layout.RecordLayout]:
        for slot in range(self._file.layout.record_count):
            record = self.record(slot)
            if record.group and record.card == card and self._pid(slot, record) is not None:
                yield record

    def room(self, place: CardPlace) -> Room:
        """Measure a card or an instance as an allocation would find it."""
        card = self._file.layout.cards[place.card]
        uses = tuple(self.living(place.card))
        if place.instance == layout.NO_INSTANCE:
            taken = card.extra + sum(use.memory + use.managed for use in uses)
            return Room(card.total, card.reserved, taken)
        instance = card.instances[place.instance]
        taken = sum(use.memory + use.managed for use in uses if use.place == place)
        return Room(instance.total, instance.reserved, taken)

    def check_room(self, place: CardPlace, wanted: int) -> None:
        """
        Raise CardFullError unless so much more memory is free. Call it under the allocation lock.
        """
        if wanted <= 0:
            return
        room = self.room(place)
        if wanted > room.free:
            raise CardFullError(wanted, room.free, room.usable)

    def check_limit(self, record: layout.RecordLayout, grown: int) -> None:
        """
        Raise CardFullError unless the driver lets the record's group have so much more.

        Else it counts from now on. Call it under the allocation lock.
        """
        room = self.groups.headroom(record.card, record.group.decode())
        if grown > room and record.instance == layout.NO_INSTANCE:
            raise CardFullError(grown, room, self._file.layout.cards[record.card].total)
        self.groups.charge(record, grown)

    def release(self, slot: int) -> None:
        with self.locks.allocation():
            self._keep_account(self.record(slot))
            self.record(slot).status = FREE
            self.locks.drop(slot)

    def _claim(
        self, place: CardPlace, memory: int, lists: Lists, kind: Liveness, identity: ProcessIdentity
    ) -> Holding:
        with self.locks.allocation():
            self.check_room(place, memory)
            slot = self._free_slot(kind)
            record = self.record(slot)
            record.card, record.instance = place.card, place.instance
            record.group = identity.group.encode()
            record.charges = type(record.charges)()
            try:
                self.check_limit(record, memory)
            except CardFullError:
                self.locks.drop(slot)
                raise
            record.sequence |= 1
            record.memory, record.managed, record.peak = memory, 0, memory
            record.since = _microseconds()
            record.accounted = self._file.layout.cards[place.card].accounting
            record.pid = identity.pid
            record.started, record.name_space = identity.started, identity.name_space
            record.lists, record.kind = lists, kind
            record.level_count = 0
            record.status = USED
            record.sequence += 1
        return Holding(self, slot, place)

    def _free_slot(self, kind: Liveness) -> int:
        state = self._file.layout
        for slot in range(layout.MAX_RECORDS):
            record = self.record(slot)
            if slot < state.record_count and self._pid(slot, record) is not None:
                continue
            self._keep_account(record)
            record.status = FREE
            if kind is Liveness.HELD and not self.locks.take(slot):
                continue
            state.record_count = max(state.record_count, slot + 1)
            return slot
        raise TableFullError("processes", layout.MAX_RECORDS)

    def _keep_account(self, record: layout.RecordLayout) -> None:
        """Keep what is known of an accounted process; drivers do so for a while after its end."""
        if record.status != USED or not record.accounted:
            return
        state = self._file.layout
        account = state.accounts[state.account_count % layout.MAX_ACCOUNTS]
        account.peak, account.since = record.peak, record.since
        account.started, account.name_space = record.started, record.name_space
        account.pid, account.card = record.pid, record.card
        state.account_count += 1
        record.accounted = 0

    def _pid(self, slot: int, record: layout.RecordLayout) -> int | None:
        """Return a living process's PID as seen from here, 0 if invisible, None if it is gone."""
        if record.status != USED:
            return None
        if record.kind == Liveness.KEPT:
            return record.pid
        if record.kind == Liveness.CHECKED:
            if record.name_space != own_namespace():
                return 0
            return record.pid if _exists(record.pid) else None
        pid = self.locks.holder(slot)
        if pid is None and record.pid == os.getpid() and ProcessIdentity.own() == _identity(record):
            return record.pid  # the kernel shows nobody the locks of its own process
        return pid


def _microseconds() -> int:
    return time.time_ns() // 1000


def _identity(record: layout.RecordLayout) -> ProcessIdentity:
    return ProcessIdentity(record.pid, record.name_space, record.started)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
