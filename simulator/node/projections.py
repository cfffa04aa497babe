"""
PURE. The files of a pod's volumes, and where its containers find them.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from gpufence.shape import Object, as_object, as_text, objects
from simulator.node.downward import field_value, resource_value
from simulator.node.environment import CONFIG_MAP, SECRET, Reference
from simulator.node.errors import NotYetError, RefusedPodError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simulator.node.environment import Sources
    from simulator.node.pod import Pod

_NAMED = {"configMap": CONFIG_MAP, "secret": SECRET}
_EMPTY = {"emptyDir", "serviceAccountToken"}
"""A token's file is left out: nothing that runs here talks to the API server."""
_BOUNDARY = r"[:;,=\s]"


def check_volumes(pod: Pod) -> None:
    """
    Raise RefusedPodError for a volume that is made of anything but words of the API.
    """
    for volume in pod.volumes:
        for kind, _ in _parts(volume):
            if kind not in {*_NAMED, *_EMPTY, "downwardAPI"}:
                raise RefusedPodError(
                    f"volume {volume.get('name')}: {kind} is not simulated; use downwardAPI,"
                    " configMap, secret, projected or emptyDir"
                )


def volume_references(pod: Pod) -> frozenset[Reference]:
    """
    Name the ConfigMaps and Secrets that the pod's volumes show.
    """
    return frozenset(
        Reference(_NAMED[kind], _source_name(part))
        for volume in pod.volumes
        for kind, part in _parts(volume)
        if kind in _NAMED
    )


def volume_files(volume: Object, pod: Pod, sources: Sources) -> dict[str, str]:
    """
    Return the files of a volume by their path in it; raises NotYetError where a source is missing.
    """
    files: dict[str, str] = {}
    for kind, part in _parts(volume):
        if kind == "downwardAPI":
            files |= {
                as_text(item.get("path"), "path"): _downward(item, pod, sources)
                for item in objects(part.get("items"), "items")
            }
        elif kind in _NAMED:
            files |= _data(Reference(_NAMED[kind], _source_name(part)), part, sources)
    return files


def relocate(text: str, places: Mapping[str, str]) -> str:
    """
    Replace every path at or below a mount by the path of this machine that stands for it.

    There is no file system of the container's own, so this is how its paths come true: in
    variables and arguments, where they begin the text or follow one of `: ; , =` or a space.
    """
    if not places:
        return text
    known = "|".join(re.escape(path) for path in sorted(places, key=len, reverse=True))
    path = re.compile(rf"(^|(?<={_BOUNDARY}))({known})(?=$|/|{_BOUNDARY})")
    return path.sub(lambda found: places[found[2]], text)


def places_of(mounts: Mapping[str, str], files: frozenset[str]) -> dict[str, str]:
    """
    Extend mount points by the folders around the single files among them, which hold nothing else.
    """
    around = {
        posixpath.dirname(path): posixpath.dirname(place)
        for path, place in mounts.items()
        if path in files and posixpath.dirname(path) != "/"
    }
    return {**around, **mounts}


def _parts(volume: Object) -> Iterator[tuple[str, Object]]:
    for kind, part in volume.items():
        if kind == "name" or part is None:
            continue
        if kind != "projected":
            yield kind, as_object(part, kind)
            continue
        for source in objects(as_object(part, kind).get("sources"), "sources"):
            for inner, content in source.items():
                yield inner, as_object(content, inner)


def _source_name(part: Object) -> str:
    return as_text(part.get("name"), "name") or as_text(part.get("secretName"), "secretName")


def _downward(item: Object, pod: Pod, sources: Sources) -> str:
    if "fieldRef" in item:
        path = as_text(as_object(item.get("fieldRef"), "fieldRef").get("fieldPath"), "fieldPath")
        return field_value(pod, sources.node, path)
    wish = as_object(item.get("resourceFieldRef"), "resourceFieldRef")
    name = as_text(wish.get("containerName"), "containerName")
    for container in pod.containers:
        if container.name == name:
            resource = as_text(wish.get("resource"), "resource")
            divisor = as_text(wish.get("divisor"), "divisor") or "0"
            return resource_value(container, sources.node, resource, divisor)
    raise NotYetError(f"container {name} not found")


def _data(reference: Reference, part: Object, sources: Sources) -> dict[str, str]:
    optional = part.get("optional") is True
    data = sources.data.get(reference)
    if data is None:
        if optional:
            return {}
        raise NotYetError(f'{reference.kind.lower()} "{reference.name}" not found')
    items = objects(part.get("items"), "items")
    if not items:
        return dict(data)
    wanted = {as_text(item.get("key"), "key"): as_text(item.get("path"), "path") for item in items}
    missing = sorted(key for key in wanted if key not in data)
    if missing and not optional:
        raise NotYetError(
            f"references non-existent {reference.kind.lower()} key: {', '.join(missing)}"
        )
    return {path: data[key] for key, path in wanted.items() if key in data}
