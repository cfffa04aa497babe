"""A pod's volumes as folders of this machine, and a container's mounts of them."""

from __future__ import annotations

import posixpath
import re
import shutil
from typing import TYPE_CHECKING

from gpufence.shape import Object, as_object, as_text, objects
from simulator.node.environment import CONFIG_MAP, SECRET, Reference, field_of
from simulator.node.errors import NotYetError, RefusedPodError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from simulator.node.environment import ValueSources
    from simulator.node.pod import NodeContainer, NodePod, VolumeMount

_NAMED = {"configMap": CONFIG_MAP, "secret": SECRET}
_EMPTY = {"emptyDir", "serviceAccountToken"}
"""A token's file is left out: nothing that runs here talks to the API server."""
_BOUNDARY = r"[:;,=\s]"


def check_volumes(pod: NodePod) -> None:
    """Raise RefusedPodError for a volume that is made of anything but the API's own text."""
    for volume in pod.volumes:
        for kind, _ in _parts(volume):
            if kind not in {*_NAMED, *_EMPTY, "downwardAPI"}:
                raise RefusedPodError(
                    f"volume {volume.get('name')}: {kind} is not simulated; use downwardAPI,"
                    " configMap, secret, projected or emptyDir"
                )


def volume_references(pod: NodePod) -> frozenset[Reference]:
    return frozenset(
        Reference(_NAMED[kind], _source_name(part))
        for volume in pod.volumes
        for kind, part in _parts(volume)
        if kind in _NAMED
    )


def volume_files(volume: Object, pod: NodePod, sources: ValueSources) -> dict[str, str]:
    """
    Return the files of a volume by their path in it; raises NotYetError where a source is missing.
    """
    files: dict[str, str] = {}
    for kind, part in _parts(volume):
        if kind == "downwardAPI":
            files |= {
                as_text(item.get("path"), "path"): field_of(
                    {key: value for key, value in item.items() if key != "path"},
                    pod,
                    sources.address,
                )
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
    alternatives = "|".join(re.escape(path) for path in sorted(places, key=len, reverse=True))
    path = re.compile(rf"(^|(?<={_BOUNDARY}))({alternatives})(?=$|/|{_BOUNDARY})")
    return path.sub(lambda match: places[match[2]], text)


class Volumes:
    """
    The volumes of one pod, below a folder of its own.

    Mounts follow their volume, but a mount by `subPath` is a copy made when the container starts.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fill(self, pod: NodePod, sources: ValueSources) -> None:
        """Bring all volumes up to date; a file changes as a whole, what is not ours stays."""
        for volume in pod.volumes:
            folder = self._folder / as_text(volume.get("name"), "name")
            folder.mkdir(parents=True, exist_ok=True)
            for path, content in volume_files(volume, pod, sources).items():
                _write(folder / path, content)

    def mount(self, container: NodeContainer, root: Path) -> Mapping[str, str]:
        """
        Lay a container's mounts out below `root`; return which path of its stands where.

        The folder around a file that is mounted alone is known, too: nothing else is in it.
        """
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        places: dict[str, str] = {}
        around: dict[str, str] = {}
        for mount in sorted(container.mounts, key=lambda one: one.path):
            path, place = mount.path.rstrip("/"), root / mount.path.strip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            places[path] = str(place)
            if self._lay(mount, place) and posixpath.dirname(path) != "/":
                around[posixpath.dirname(path)] = str(place.parent)
        return {**around, **places}

    def _lay(self, mount: VolumeMount, place: Path) -> bool:
        volume = self._folder / mount.volume
        source = volume / mount.sub_path
        if not source.resolve().is_relative_to(volume.resolve()):
            raise NotYetError(f"subPath {mount.sub_path} leaves volume {mount.volume}")
        if source.is_file():
            shutil.copyfile(source, place)
            return True
        source.mkdir(parents=True, exist_ok=True)  # as the kubelet does for what is not there
        place.symlink_to(source)
        return False


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


def _data(reference: Reference, part: Object, sources: ValueSources) -> dict[str, str]:
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


def _write(path: Path, content: str) -> None:
    if path.is_file() and path.read_text() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"..{path.name}")
    aside.write_text(content)
    aside.replace(path)
