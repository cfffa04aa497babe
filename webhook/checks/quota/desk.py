"""
Where admissions of all replicas are reserved: a ConfigMap, which a replica can write only if it has
read the last version.

One replica writes for all pods that wait at once, so that a hundred cost a few writes. Where the
ledger cannot be written in time, what this replica knows decides, and how much it may give away.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gpufence import names
from kube import PatchType, core
from kube.replies import part_of, texts_of
from webhook.checks.quota.reservations import (
    MOST_RESERVED,
    NO_LEDGER,
    PENDING_SECONDS,
    merged,
    read_ledger,
    settle,
    settle_alone,
    tickets_of,
    without,
    write_changes,
)
from webhook.claims import CONFLICT, SLOW, UnknownError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kube import Client, JsonObject
    from webhook.checks.quota.reservations import InUse, Ledger, NewPod, RoomVerdict

_PAUSE_SECONDS: Final = 0.02  # until a watch may have shown the pod that another waits for
_MOST_AT_ONCE: Final = 256
_AGAIN: Final = (CONFLICT, SLOW)
_log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    asking: NewPod
    answer: asyncio.Future[RoomVerdict]
    since: float


class AskApi(Protocol):
    """Asks the API server on another thread, within a deadline. Raises UnknownError."""

    async def __call__(self, ask: Callable[[Client, float], JsonObject]) -> JsonObject: ...


class _Read(NamedTuple):
    """The ConfigMap as it was read last."""

    version: str
    data: Mapping[str, str]
    ledger: Ledger


_NOT_READ: Final = _Read("", {}, NO_LEDGER)


class Desk:
    """Settles pods one batch after the other; `look` is asked for what the live pods use."""

    def __init__(
        self,
        api: AskApi,
        namespace: str,
        patience_seconds: float,
        look: Callable[[Collection[str]], tuple[Mapping[str, InUse], Collection[str]]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._patience = patience_seconds
        self._look = look
        self._monotonic = monotonic
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._read = _NOT_READ
        self._stale = True
        self._own: Ledger = NO_LEDGER
        self._since: dict[str, float] = {}
        self.trouble = ""

    async def settle(self, asking: NewPod) -> RoomVerdict:
        """Decide about one pod, with all others that wait meanwhile."""
        answer: asyncio.Future[RoomVerdict] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(asking, answer, self._monotonic()))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._serve())
        return await answer

    async def _serve(self) -> None:
        while self._waiting:
            batch = self._waiting[:_MOST_AT_ONCE]
            del self._waiting[:_MOST_AT_ONCE]
            seconds = self._patience - (self._monotonic() - batch[0].since)
            try:
                verdicts = await self._round([each.asking for each in batch], seconds)
            except Exception as error:
                for each in batch:
                    with suppress(asyncio.InvalidStateError):
                        each.answer.set_exception(error)
                raise
            late = self._monotonic() - self._patience
            again = []
            for each, verdict in zip(batch, verdicts, strict=True):
                if verdict.doubtful and each.since > late:
                    again.append(each)
                elif not each.answer.done():
                    each.answer.set_result(verdict)
            if again:
                self._waiting[:0] = again
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _round(self, asked: Sequence[NewPod], seconds: float) -> list[RoomVerdict]:
        try:
            async with asyncio.timeout(seconds):
                verdicts = await self._written(asked)
        except (UnknownError, TimeoutError) as error:
            said = str(error) or f"not written within {self._patience:g} s"
            if not self.trouble:
                _log.warning("%s: each replica decides by itself: %s", names.QUOTA_LEDGER, said)
            self._stale, self.trouble = True, said
            known = self._known()
            alone = set(tickets_of(known)) - set(tickets_of(self._read.ledger))
            verdicts, after = settle_alone(asked, *self._looked(asked), known, alone)
            self._remember(after, verdicts)
        else:
            self.trouble = ""
        return verdicts

    async def _written(self, asked: Sequence[NewPod]) -> list[RoomVerdict]:
        """
        Decide, and write that down; anew as long as another replica was faster. Where there is
        nothing to write, as in dry runs, no conflict tells that, so the ledger is read.
        """
        is_read = False
        while True:
            if self._stale or self._unknown(asked):
                is_read = True
                await self._ask(partial(_get, self._namespace))
            known = self._known()
            verdicts, after = settle(asked, *self._looked(asked), known)
            if after == known and (is_read or not any(each.fits for each in verdicts)):
                return verdicts
            if after == known:
                self._stale = True
                continue
            try:
                await self._write(after)
            except UnknownError as error:
                self._stale = True
                if error.reason not in _AGAIN:
                    raise
            else:
                self._remember(after, verdicts)
                return verdicts

    def _looked(self, asked: Sequence[NewPod]) -> tuple[Mapping[str, InUse], Collection[str]]:
        return self._look({each.namespace for each in asked})

    def _unknown(self, asked: Sequence[NewPod]) -> bool:
        """Return whether a pod has a ticket that another replica may have given it just now."""
        known = {"", *tickets_of(self._known())}
        return any(each.ticket not in known for each in asked)

    def _known(self) -> Ledger:
        """
        Return what all have written, and this replica, too, without what is over: a replica that
        saw it later counts it for longer.
        """
        known = merged(self._own, self._read.ledger)
        now = self._monotonic()
        tickets = tickets_of(known)
        self._since = {ticket: self._since.get(ticket, now) for ticket in tickets}
        old = {ticket for ticket, at in self._since.items() if now - at > PENDING_SECONDS}
        self._own = without(self._own, old)
        return without(known, old)

    def _remember(self, ledger: Ledger, verdicts: Sequence[RoomVerdict]) -> None:
        """Keep what this replica has let in, should the ledger be lost or out of reach."""
        ours = {each.ticket for each in verdicts} | set(tickets_of(self._own))
        self._own = without(ledger, set(tickets_of(ledger)) - ours)

    async def _write(self, ledger: Ledger) -> None:
        if len(tickets_of(ledger)) > MOST_RESERVED:
            raise UnknownError("crowded", f"more than {MOST_RESERVED} pods are being made")
        changes = write_changes(self._read.data, ledger)
        body = {"metadata": {"resourceVersion": self._read.version}, "data": changes}
        await self._ask(partial(_patch, self._namespace, body))

    async def _ask(self, ask: Callable[[Client, float], JsonObject]) -> None:
        said = await self._api(ask)
        version = str(part_of(said, "metadata").get("resourceVersion", ""))
        data = texts_of(said, "data")
        self._read, self._stale = _Read(version, data, read_ledger(data)), False


def _path(namespace: str) -> str:
    return core("namespaces", namespace, "configmaps", names.QUOTA_LEDGER)


def _get(namespace: str, client: Client, seconds: float) -> JsonObject:
    return client.get(_path(namespace), timeout_seconds=seconds)


def _patch(namespace: str, body: JsonObject, client: Client, seconds: float) -> JsonObject:
    return client.patch(_path(namespace), body, PatchType.MERGE, timeout_seconds=seconds)
