"""
Carrying out what was decided about an owner: a note, the replicas, a note.

Each write holds only for the owner as it was read, by its UID and version, and only while the Lease
is ours for as long as a request takes. So a pass cut short leaves a note that the next pass
understands, and two that act at once cannot both succeed.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.lease import NotActingError, check_lease
from controller.model import Step
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.idle import write_note as note_text
from kube import ConflictError, KubeError, NotFoundError
from kube.owners import ApiOwner
from kube.workloads import bring_to, read_owner, write_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.model import Act, OwnerState
    from gpufence.idle import ReleaseNote
    from kube import Client
    from kube.discovery import Kinds

_log = logging.getLogger(__name__)
_TRIES: Final = 3


class ActOutcome(StrEnum):
    """What became of an act."""

    DONE = "done"
    CHANGED = "changed"  # the owner is not as it was any more: decided anew
    FAILED = "failed"  # the API server refused, or did not answer
    NOT_OURS = "not-ours"  # the Lease is not ours for long enough


class ActReport(NamedTuple):
    outcome: ActOutcome
    detail: str = ""


class OwnerActs:
    """`left` tells for how many seconds the Lease is ours."""

    def __init__(
        self, client: Client, kinds: Kinds, left: Callable[[], float], request_seconds: float
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._left = left
        self._request_seconds = request_seconds

    def carry_out(self, act: Act, owner: OwnerState) -> ActReport:
        """Do it, never raising; an act that says something alone has nothing to do here."""
        try:
            self._do(act, owner)
        except NotActingError as error:
            return ActReport(ActOutcome.NOT_OURS, str(error))
        except (ConflictError, NotFoundError) as error:
            return ActReport(ActOutcome.CHANGED, str(error))
        except KubeError as error:
            return ActReport(ActOutcome.FAILED, str(error))
        return ActReport(ActOutcome.DONE)

    def _do(self, act: Act, state: OwnerState) -> None:
        if act.step in {Step.NOTHING, Step.ANNOUNCE}:
            return
        key = act.key
        kind = self._kinds.find(key.api_version, key.kind)
        if kind is None:
            raise NotActingError(f"nobody serves {key.kind} of {key.api_version} any more")
        found = ApiOwner(kind, key.namespace, key.name, act.uid, act.version, {})
        check_lease(self._left, self._request_seconds)
        owner = write_note(self._client, found, _text(act.note))
        if act.replicas is None:
            return
        scaled = self._scale(owner, act.replicas, state)
        if act.done is not None:
            self._finish(scaled, owner.annotations.get(names.RELEASED), act.done)

    def _scale(self, owner: ApiOwner, replicas: int, state: OwnerState) -> ApiOwner:
        """
        Change the replicas. What others change meanwhile, such as its status, stands against it
        only where it is about the replicas, or what is said to us.
        """
        noted = owner
        for attempt in range(1, _TRIES + 1):
            check_lease(self._left, self._request_seconds)
            try:
                return bring_to(self._client, owner, replicas)
            except ConflictError:
                if attempt == _TRIES:
                    raise
                owner = read_owner(self._client, noted.kind, noted.namespace, noted.name)
                if _wishes(owner) != _wishes(noted) or _wanted(owner) != state.replicas:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _finish(self, owner: ApiOwner, noted: str | None, done: ReleaseNote) -> None:
        """Write down that it is done; where that does not succeed, the next pass does it."""
        try:
            check_lease(self._left, self._request_seconds)
            write_note(self._client, owner, _text(done))
        except ConflictError:
            self._finish_anew(owner, noted, done)
        except GpufenceError as error:
            _log.warning("the note on %s is not finished yet: %s", owner.shown, error)

    def _finish_anew(self, owner: ApiOwner, noted: str | None, done: ReleaseNote) -> None:
        """The same where something of the owner has changed, which most often is its status."""
        try:
            owner = read_owner(self._client, owner.kind, owner.namespace, owner.name)
            if owner.annotations.get(names.RELEASED) == noted:
                check_lease(self._left, self._request_seconds)
                write_note(self._client, owner, _text(done))
        except GpufenceError as error:
            _log.warning("the note on %s is not finished yet: %s", owner.shown, error)


def _text(note: ReleaseNote | None) -> str | None:
    return None if note is None else note_text(note)


def _wishes(owner: ApiOwner) -> tuple[str, dict[str, str]]:
    """Return who it is, and what people and we have said on it."""
    said = {key: text for key, text in owner.annotations.items() if key != names.STOPPED}
    return owner.uid, said


def _wanted(owner: ApiOwner) -> int | None:
    return int(owner.active) if owner.stoppable else owner.replicas
