"""
Finding the pod that `explain` is asked about: by its name, by its owner, or what is left of it.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.capped import read_endings
from gpufence.shape import as_object, as_text
from gpufence.text import listed
from kube import ForbiddenError, NotFoundError, core
from kube.discovery import Kinds
from kube.owners import owner_of
from kubectl_gpufence.owners import PODS, find_named, topmost_owners
from kubectl_gpufence.pods import name_of
from kubectl_gpufence.reader import MissingError
from kubectl_gpufence.refusals import REMEDY, of_owner, ours
from kubectl_gpufence.verbs.explain.gone import Gone, is_about, made_like
from kubectl_gpufence.verbs.explain.record import read_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kube import JsonObject
    from kubectl_gpufence.pods import SeenEvent
    from kubectl_gpufence.reader import ClusterReader


class Chosen(NamedTuple):
    """
    The pod to be explained, what else there was to choose from, and which pods its owner has lost.
    """

    raw: JsonObject
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def find(namespace: str, word: str, reader: ClusterReader) -> Chosen | Gone:
    if "/" in word:
        return _of_owner(namespace, word, reader)
    try:
        return Chosen(reader.client.get(core("namespaces", namespace, "pods", word)))
    except NotFoundError as error:
        events = events_about(reader, namespace, f"involvedObject.name={word}")
        pods = _pods_to_be_seen(reader, namespace)
        if events:
            successors = made_like(word, [(name_of(raw), _generated(raw)) for raw in pods])
            return Gone(namespace, f"pod {word}", events, successors)
        near = get_close_matches(word, map(name_of, pods), n=1)
        others = f"`kubectl get pods -n {namespace}` lists those that are there, -n names another"
        remedy = f"did you mean {near[0]}?" if near else others
        raise MissingError(
            f"there is no pod {word} in namespace {namespace}, nor an Event about it; {remedy}"
        ) from error


def _of_owner(namespace: str, word: str, reader: ClusterReader) -> Chosen | Gone:
    """Choose the pod of an owner that is in most trouble, the newest of equals."""
    owner = find_named(reader.client, Kinds(reader.client), namespace, word)
    pods = _pods(reader, namespace)
    tops, _ = topmost_owners(reader, [owner_of(PODS, raw) for raw in pods])
    own = [raw for raw in pods if tops[_uid(raw)].uid == owner.uid]
    kind = owner.kind.kind
    said = [each for each in events_about(reader, namespace) if is_about(each, kind, owner.name)]
    if not own:
        return Gone(namespace, f"{kind} {owner.name}", tuple(said))
    first, *others = sorted(own, key=_trouble, reverse=True)
    named = f"{len(others)} more: {listed([name_of(raw) for raw in others])}"
    notes = (f"{owner.shown} has {named}",) if others else ()
    called = f"{kind}/{owner.name}"
    lost = (*_refused_since(said, called, word), *_evicted_before(said, namespace, word))
    return Chosen(first, notes, lost)


def _refused_since(said: Iterable[SeenEvent], owner: str, word: str) -> Iterator[str]:
    """Return that an owner's newer pods are refused, of which the older one says nothing."""
    refused = of_owner(ours(said), owner)
    if refused:
        newest = refused[-1]
        yield f"{word} had a pod refused, last at {newest.at}: {newest.message}. {REMEDY}"


def _evicted_before(said: Iterable[SeenEvent], namespace: str, word: str) -> Iterator[str]:
    """Return that an owner has lost pods, of which the one that is there says nothing."""
    times = [event.at for event in said if event.reason == names.EVICTED]
    if times:
        why = f"`kubectl gpufence why -n {namespace} {word}` shows how it came to that"
        yield f"{word} lost a pod by eviction, last at {max(times)}: {why}."


def _trouble(raw: JsonObject) -> tuple[bool, int, str]:
    endings = tuple(read_endings(as_object(raw.get("status"), "status")))
    metadata = as_object(raw.get("metadata"), "metadata")
    made = as_text(metadata.get("creationTimestamp"), "metadata.creationTimestamp")
    return bool(endings), sum(ending.restarts for ending in endings), made


def _pods(reader: ClusterReader, namespace: str) -> list[JsonObject]:
    pods = reader.listed(core("namespaces", namespace, "pods"), dict)
    return sorted(pods, key=lambda raw: _trouble(raw)[-1], reverse=True)


def _pods_to_be_seen(reader: ClusterReader, namespace: str) -> list[JsonObject]:
    try:
        return _pods(reader, namespace)
    except ForbiddenError:
        return []


def _generated(raw: JsonObject) -> str:
    metadata = as_object(raw.get("metadata"), "metadata")
    return as_text(metadata.get("generateName"), "metadata.generateName")


def _uid(raw: JsonObject) -> str:
    return as_text(as_object(raw.get("metadata"), "metadata").get("uid"), "metadata.uid")


def events_about(reader: ClusterReader, namespace: str, about: str = "") -> tuple[SeenEvent, ...]:
    path = core("namespaces", namespace, "events")
    query: dict[str, str | int] = {"fieldSelector": about} if about else {}
    try:
        return read_events(reader.listed(path, dict, query))
    except ForbiddenError:
        return ()
