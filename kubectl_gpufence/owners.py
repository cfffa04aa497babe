"""Owners of pods: who a person means by a kind and a name, and who owns each of many pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kube import ForbiddenError, NotFoundError
from kube.discovery import Kinds
from kube.kinds import ApiKind
from kube.owners import ApiOwner
from kube.workloads import find_owner, read_owner
from kubectl_gpufence.reader import MissingError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kube import Client
    from kubectl_gpufence.reader import ClusterReader


PODS: Final = ApiKind("v1", "Pod", "pods")
_POD_WORDS: Final = frozenset({"pod", "pods", "po"})


def find_named(client: Client, kinds: Kinds, namespace: str, word: str) -> ApiOwner:
    """
    Find the object that is meant by KIND/NAME, or by the name of a pod, and its topmost owner.

    Raises:
        MissingError: there is no such object.
    """
    called, separator, name = word.partition("/")
    kind = kind_called(kinds, called) if separator else PODS
    try:
        item = read_owner(client, kind, namespace, name if separator else word)
    except NotFoundError as error:
        raise MissingError(
            f"there is no {kind.kind} {name or word} in namespace {namespace}; write deploy/NAME, "
            "sts/NAME, notebook/NAME or the name of a pod, -n names another namespace"
        ) from error
    return find_owner(client, kinds, item)


def kind_called(kinds: Kinds, called: str) -> ApiKind:
    if called.lower() in _POD_WORDS:
        return PODS
    kind = kinds.called(called)
    if kind is None:
        raise MissingError(
            f'this cluster knows no kind "{called}"; `kubectl api-resources` lists those it knows'
        )
    return kind


def topmost_owners(
    reader: ClusterReader, items: Iterable[ApiOwner]
) -> tuple[dict[str, ApiOwner], str]:
    """Find the topmost owner of each pod, those of one controller together."""
    kinds = Kinds(reader.client)
    siblings: dict[str, list[ApiOwner]] = {}
    for item in items:
        siblings.setdefault(item.controller.uid if item.controller else item.uid, []).append(item)
    groups = list(siblings.values())
    tops = reader.together(lambda group: climb(reader, kinds, group[0]), groups)
    hidden = any(not top.version for top in tops)
    note = "you may not read all owners of pods: some are shown by their direct owner"
    found = {item.uid: top for group, top in zip(groups, tops, strict=True) for item in group}
    return found, note if hidden else ""


def climb(reader: ClusterReader, kinds: Kinds, item: ApiOwner) -> ApiOwner:
    """Return the topmost owner of an object, or the one up to which one may look."""
    try:
        return find_owner(reader.client, kinds, item)
    except (ForbiddenError, NotFoundError):
        above = item.controller
        if above is None:
            return item
        kind = ApiKind(above.api_version, above.kind, "")
        return ApiOwner(kind, item.namespace, above.name, above.uid, "", {})
