"""
The files of volumes, and where a container finds them.
"""

from pathlib import Path
from typing import Any

import pytest

from simulator.node.environment import CONFIG_MAP, SECRET, Reference, ValueSources
from simulator.node.errors import NotYetError
from simulator.node.volumes import Volumes, relocate, volume_files, volume_references
from tests.unit.simulator.node.builders import ADDRESS, container, field, pod

SOURCES = ValueSources(ADDRESS, {Reference(CONFIG_MAP, "conf"): {"a": "1", "b": "2"}})
KEY = "gpufence.io/sitecustomize"


def files(volume: dict[str, Any]) -> dict[str, str]:
    return volume_files({"name": "v", **volume}, pod(annotations={KEY: "print('hi')"}), SOURCES)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"a": "1", "b": "2"}),
        ({"items": [{"key": "b", "path": "deep/b.txt"}]}, {"deep/b.txt": "2"}),
        (
            {"items": [{"key": "z", "path": "z"}, {"key": "a", "path": "a"}], "optional": True},
            {"a": "1"},
        ),
    ],
    ids=["all", "chosen", "optional"],
)
def test_keys_become_files(fields: dict[str, Any], expected: dict[str, str]) -> None:
    """
    Without items every key of a ConfigMap is a file; items choose which, and where.
    """
    assert expected == files({"configMap": {"name": "conf", **fields}})


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"secret": {"secretName": "none"}}, 'secret "none" not found'),
        (
            {"configMap": {"name": "conf", "items": [{"key": "z", "path": "z"}]}},
            "references non-existent configmap key: z",
        ),
        (
            {"downwardAPI": {"items": [{"path": "x", "resourceFieldRef": {}}]}},
            "resourceFieldRef is not simulated",
        ),
    ],
)
def test_what_is_missing_keeps_waiting(volume: dict[str, Any], message: str) -> None:
    """
    A source that is not there is an error that names it.
    """
    with pytest.raises(NotYetError, match=message):
        files(volume)


def test_an_optional_secret_may_be_missing() -> None:
    """
    An optional Secret that is not there gives an empty volume.
    """
    assert {} == files({"secret": {"secretName": "none", "optional": True}})


def test_projected_sources_are_merged_without_tokens() -> None:
    """
    A projected volume, such as every pod has, shows all its sources but the token.
    """
    sources = [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "conf", "items": [{"key": "a", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", **field("metadata.namespace")}]}},
    ]

    assert {"ca.crt": "1", "namespace": "team-a"} == files({"projected": {"sources": sources}})


def test_the_objects_of_volumes_are_found() -> None:
    """
    Every ConfigMap and Secret that a volume shows is to be read.
    """
    volumes: tuple[dict[str, Any], ...] = (
        {"name": "a", "configMap": {"name": "one"}},
        {"name": "b", "secret": {"secretName": "two"}},
        {"name": "c", "projected": {"sources": [{"secret": {"name": "three"}}]}},
        {"name": "d", "emptyDir": {}, "hostPath": None},
    )

    assert {
        Reference(CONFIG_MAP, "one"),
        Reference(SECRET, "two"),
        Reference(SECRET, "three"),
    } == volume_references(pod(volumes=volumes))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/gpufence/", "/tmp/p/gpufence/"),
        ("/gpufence/sitecustomize.py", "/tmp/p/copy"),
        ("/app:/gpufence:/d", "/app:/tmp/p/gpufence:/x"),
        ("--config=/d/x.yaml", "--config=/x/x.yaml"),
        ("hold 1Gi; read /d", "hold 1Gi; read /x"),
        ("/gpufences /data /app/gpufence", "/gpufences /data /app/gpufence"),
    ],
)
def test_paths_of_mounts_come_true(text: str, expected: str) -> None:
    """
    A path at or below a mount is replaced wherever it stands as a path, and nothing else is.
    """
    places = {
        "/gpufence": "/tmp/p/gpufence",
        "/gpufence/sitecustomize.py": "/tmp/p/copy",
        "/d": "/x",
    }

    assert expected == relocate(text, places)
    assert text == relocate(text, {})


def hook(source: str) -> Any:
    """
    Build a pod with an annotation in a downwardAPI volume, and an empty volume.
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
    wanted = [{"name": name, "mountPath": path, "subPath": sub} for name, path, sub in entries]
    return pod(container(volumeMounts=wanted)).containers[0]


def test_a_mount_follows_its_volume_but_a_mounted_file_does_not(tmp_path: Path) -> None:
    """
    A new annotation shows in the mounted volume, while the file mounted by subPath stays; the
    folder around that file is known.
    """
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("old"), SOURCES)
    wanted = mounts(("hook", "/all", ""), ("hook", "/one/s.py", "sitecustomize.py"))
    places = volumes.mount(wanted, tmp_path / "root")
    volumes.fill(hook("new"), SOURCES)

    assert ("new", "old", "old") == (
        Path(places["/all"], "sitecustomize.py").read_text(),
        Path(places["/one/s.py"]).read_text(),
        Path(places["/one"], "s.py").read_text(),
    )


def test_what_a_container_wrote_stays(tmp_path: Path) -> None:
    """
    A volume keeps what was written to it when a container starts again.
    """
    volumes = Volumes(tmp_path / "volumes")
    for again in (False, True):
        volumes.fill(hook("x"), SOURCES)
        places = volumes.mount(mounts(("empty", "/scratch/", "deep")), tmp_path / "root")
        if not again:
            Path(places["/scratch"], "mine").write_text("kept")

    assert "kept" == Path(places["/scratch"], "mine").read_text()


def test_a_sub_path_cannot_leave_its_volume(tmp_path: Path) -> None:
    """
    A subPath that climbs out of the volume keeps the container waiting.
    """
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("x"), SOURCES)
    with pytest.raises(NotYetError, match="leaves volume empty"):
        volumes.mount(mounts(("empty", "/data", "../hook")), tmp_path / "root")
