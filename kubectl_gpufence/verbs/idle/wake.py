"""`wake OWNER`: back to the replicas that it had before it was released."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError, shown
from gpufence.idle import ReleasePhase, read_note
from gpufence.names import RELEASED
from kube import workloads
from kube.discovery import Kinds
from kubectl_gpufence.arguments import add_owner
from kubectl_gpufence.verbs.idle.owners import RefusedError, carefully, named_owner, note_on
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    from gpufence.idle import ReleaseNote
    from kube import Client
    from kube.owners import ApiOwner
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

EXAMPLES: Final = """\
examples:
  kubectl gpufence wake deploy/worker         back to the replicas it had
  kubectl gpufence wake deploy/worker --replicas 2
"""

_BY: Final = "kubectl"
_MOST_REPLICAS: Final = 2**31 - 1  # of Kubernetes' int32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_owner(parser)
    parser.add_argument("--replicas", type=_replicas, metavar="N", help="instead of what it had")


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Bring an owner back, with the rights of whoever calls.

    Raises:
        MissingError: there is no such owner.
        RefusedError: nobody knows how many replicas it had.
    """
    client = reader.client
    owner = named_owner(client, Kinds(client), call.namespace, call.owner)
    note = _note(owner, call.replicas)
    if _is_there(owner, call.replicas):
        if note is not None and note.phase is not ReleasePhase.WOKEN:
            note_on(client, owner, _woken(note, ReleasePhase.WOKEN))
        output.lines([f"{owner.shown} {_what(owner)} already: nothing to be done"])
        return 0
    output.lines([f"{owner.shown} is back: {_what(_wake(client, owner, note, call.replicas))}"])
    return 0


def _wake(
    client: Client, owner: ApiOwner, note: ReleaseNote | None, replicas: int | None
) -> ApiOwner:
    """
    Write down what is meant before it is done, and that it was done after it: so the controller
    knows who brought the owner back, and finishes what is cut short.
    """
    if note is not None:
        note = _woken(note, ReleasePhase.WAKING)
        note = note if replicas is None else note._replace(replicas=replicas)
        owner = note_on(client, owner, note)
    wanted = 1 if owner.stoppable else replicas if note is None else note.replicas
    if wanted is None:
        raise RefusedError(
            f"{owner.shown} has no note of how many replicas it had; write --replicas N"
        )
    owner = carefully(client, owner, lambda item: workloads.bring_to(client, item, wanted))
    if note is not None:
        owner = note_on(client, owner, note._replace(phase=ReleasePhase.WOKEN))
    return owner


def _note(owner: ApiOwner, replicas: int | None) -> ReleaseNote | None:
    """Read the note of an owner; one that cannot be read is left alone, and says nothing."""
    text = owner.annotations.get(RELEASED)
    if text is None:
        return None
    try:
        return read_note(text)
    except GpufenceError as error:
        if replicas is None and not owner.stoppable:
            raise RefusedError(f"{error}; or write --replicas N") from error
        return None


def _woken(note: ReleaseNote, phase: ReleasePhase) -> ReleaseNote:
    return note._replace(phase=phase, woken_at=time.time(), woken_by=_BY)


def _is_there(owner: ApiOwner, replicas: int | None) -> bool:
    if owner.stoppable:
        return owner.active
    return bool(owner.replicas) and replicas in {None, owner.replicas}


def _what(owner: ApiOwner) -> str:
    return "runs" if owner.stoppable else f"has {counted(owner.replicas or 0, 'replica')}"


def _replicas(text: str) -> int:
    few = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_REPLICAS))
    if few and 0 < int(text) <= _MOST_REPLICAS:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"{shown(text)} is no number of replicas; write one from 1 to {_MOST_REPLICAS}"
    )
