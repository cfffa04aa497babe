"""
Volumes as folders of this machine: one per volume, and a root per container that shows the mounts.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from gpufence.shape import as_text
from simulator.node.errors import NotYetError
from simulator.node.projections import places_of, volume_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from simulator.node.environment import Sources
    from simulator.node.pod import Container, Mount, Pod


class Volumes:
    """
    The volumes of one pod, below a folder of its own.

    Mounts follow their volume, but a mount by `subPath` is a copy made when the container starts.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fill(self, pod: Pod, sources: Sources) -> None:
        """
        Bring all volumes up to date; a file changes as a whole, what is not ours stays.
        """
        for volume in pod.volumes:
            name = as_text(volume.get("name"), "name")
            folder = self._folder / name
            folder.mkdir(parents=True, exist_ok=True)
            for path, content in volume_files(volume, pod, sources).items():
                _write(folder / path, content)

    def mount(self, container: Container, root: Path) -> Mapping[str, str]:
        """
        Lay a container's mounts out below `root`; return which path of its stands where.
        """
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        mounts: dict[str, str] = {}
        files: set[str] = set()
        for mount in sorted(container.mounts, key=lambda one: one.path):
            place = root / mount.path.strip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if self._lay(mount, place):
                files.add(mount.path.rstrip("/"))
            mounts[mount.path.rstrip("/")] = str(place)
        return places_of(mounts, frozenset(files))

    def _lay(self, mount: Mount, place: Path) -> bool:
        """
        Lay out one mount; tell whether it is a single file.
        """
        volume = self._folder / mount.volume
        if not mount.sub_path:
            place.symlink_to(volume)
            return False
        source = volume / mount.sub_path
        if not source.resolve().is_relative_to(volume.resolve()):
            raise NotYetError(f"subPath {mount.sub_path} leaves volume {mount.volume}")
        if source.is_file():
            shutil.copyfile(source, place)
            return True
        source.mkdir(parents=True, exist_ok=True)  # as the kubelet does for what is not there
        place.symlink_to(source)
        return False


def _write(path: Path, content: str) -> None:
    if path.is_file() and path.read_text() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"..{path.name}")
    aside.write_text(content)
    aside.replace(path)
