"""
Volumes as folders.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simulator.node.environment import Sources
from simulator.node.errors import NotYetError
from simulator.node.volumes import Volumes
from tests.unit.simulator.node.builders import NODE, container, field, pod

SOURCES = Sources(NODE)
KEY = "gpufence.io/sitecustomize"


def hook(source: str) -> Any:
    """
    A pod with an annotation in a downwardAPI volume, and an empty volume.
    """
    item = {"path": "sitecustomize.py", **field(f"metadata.annotations['{KEY}']")}
    return pod(
        annotations={KEY: source},
        volumes=(
            {"name": "hook", "downwardAPI": {"items": [item]}},
            {"name": "empty", "emptyDir": {}},
        ),
    )


def mounts(*entries: tuple[str, str, str]) -> Any:
    wishes = [{"name": name, "mountPath": path, "subPath": sub} for name, path, sub in entries]
    return pod(container(volumeMounts=wishes)).mains[0]


def test_a_mounted_volume_shows_its_files(tmp_path: Path) -> None:
    """
    A mount leads to the files of its volume.
    """
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("print(1)"), SOURCES)
    places = volumes.mount(mounts(("hook", "/gpufence", "")), tmp_path / "root")

    assert "print(1)" == Path(places["/gpufence"], "sitecustomize.py").read_text()


def test_a_file_mounted_alone_is_found_by_its_folder(tmp_path: Path) -> None:
    """
    A mount by subPath is a file, and the folder around it is known, too.
    """
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("print(1)"), SOURCES)
    container_ = mounts(("hook", "/gpufence/sitecustomize.py", "sitecustomize.py"))
    places = volumes.mount(container_, tmp_path / "root")

    assert "print(1)" == Path(places["/gpufence"], "sitecustomize.py").read_text()
    assert "print(1)" == Path(places["/gpufence/sitecustomize.py"]).read_text()


def test_a_mount_follows_its_volume_but_a_mounted_file_does_not(tmp_path: Path) -> None:
    """
    A new annotation shows in the mounted volume, while the file mounted by subPath stays.
    """
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("old"), SOURCES)
    wishes = mounts(("hook", "/all", ""), ("hook", "/one/s.py", "sitecustomize.py"))
    places = volumes.mount(wishes, tmp_path / "root")
    volumes.fill(hook("new"), SOURCES)

    assert ("new", "old") == (
        Path(places["/all"], "sitecustomize.py").read_text(),
        Path(places["/one/s.py"]).read_text(),
    )


def test_what_a_container_wrote_stays(tmp_path: Path) -> None:
    """
    A volume keeps what was written to it when a container starts again.
    """
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("x"), SOURCES)
    places = volumes.mount(mounts(("empty", "/scratch", "")), tmp_path / "root")
    Path(places["/scratch"], "mine").write_text("kept")
    volumes.fill(hook("x"), SOURCES)
    places = volumes.mount(mounts(("empty", "/scratch/", "")), tmp_path / "root")

    assert "kept" == Path(places["/scratch"], "mine").read_text()


def test_a_sub_path_that_is_not_there_becomes_a_folder(tmp_path: Path) -> None:
    """
    As in the kubelet, a subPath that nobody made is an empty folder.
    """
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("x"), SOURCES)
    places = volumes.mount(mounts(("empty", "/data", "deep/down")), tmp_path / "root")

    assert Path(places["/data"]).is_dir()


def test_a_sub_path_cannot_leave_its_volume(tmp_path: Path) -> None:
    """
    A subPath that climbs out of the volume keeps the container waiting.
    """
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("x"), SOURCES)
    with pytest.raises(NotYetError, match="leaves volume empty"):
        volumes.mount(mounts(("empty", "/data", "../hook")), tmp_path / "root")
