"""
Owners that somebody names, and changes to them that hold only as long as nobody else interferes.

GpufenceError
└── RefusedError     it can be done, and is not, for a reason that is said: a person decides
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError
from gpufence.names import RELEASED
from kube import ConflictError, NotFoundError
from kube.workloads import find_owner, read_owner
from kubectl_gpufence.reader import MissingError
from kubectl_gpufence.verbs.idle.gather import PODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kube import Client
    from kube.discovery import Kinds
    from kube.kinds import ApiKind
    from kube.owners import ApiOwner

_TRIES: Final = 5
_POD_WORDS: Final = frozenset({"pod", "pods", "po"})


class RefusedError(GpufenceError):
    """
    Raised for what speaks against an act; the message names the way around it, where there is one.
    """


def named_owner(client: Client, kinds: Kinds, namespace: str, word: str) -> ApiOwner:
    """
    Find whom somebody means by KIND/NAME, or by the name of a pod, and who owns that in the end.

    Raises:
        MissingError: there is no such object.
        RefusedError: nobody can change how many replicas it has.
    """
    called, separator, name = word.partition("/")
    kind = _kind(kinds, called) if separator else PODS
    try:
        item = read_owner(client, kind, namespace, name if separator else word)
    except NotFoundError as error:
        raise MissingError(
            f"there is no {kind.kind} {name or word} in namespace {namespace}; write deploy/NAME, "
            "sts/NAME, notebook/NAME or the name of a pod, -n names another namespace"
        ) from error
    owner = find_owner(client, kinds, item)
    if owner.scalable or owner.stoppable:
        return owner
    raise RefusedError(
        f"{owner.shown} has no replicas that could be changed: nobody releases it, "
        "and nothing needs to keep or wake it"
    )


def _kind(kinds: Kinds, called: str) -> ApiKind:
    if called.lower() in _POD_WORDS:
        return PODS
    kind = kinds.called(called)
    if kind is None:
        raise MissingError(
            f'this cluster knows no kind "{called}"; `kubectl api-resources` lists those it knows'
        )
    return kind


def carefully(client: Client, owner: ApiOwner, change: Callable[[ApiOwner], ApiOwner]) -> ApiOwner:
    """
    Change an owner; where it has been written to since it was read, as its own controller does all
    the time, once more if it still wants what it wanted.

    Raises:
        RefusedError: somebody else changed what it wants, or its note.
        KubeError: it cannot be changed.
    """
    for _ in range(_TRIES):
        try:
            return change(owner)
        except ConflictError:
            now = read_owner(client, owner.kind, owner.namespace, owner.name)
            if _wants(now) != _wants(owner):
                break
            owner = now
    raise RefusedError(f"somebody else changes {owner.shown} at this moment; look, and try again")


def _wants(owner: ApiOwner) -> tuple[str, int | None, bool, str | None]:
    return owner.uid, owner.replicas, owner.active, owner.annotations.get(RELEASED)
