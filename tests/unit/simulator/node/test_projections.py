"""
The files of volumes, and how a container's paths come true.
"""

from __future__ import annotations

from typing import Any

import pytest

from simulator.node.environment import CONFIG_MAP, SECRET, Reference, Sources
from simulator.node.errors import NotYetError, RefusedPodError
from simulator.node.projections import (
    check_volumes,
    places_of,
    relocate,
    volume_files,
    volume_references,
)
from tests.unit.simulator.node.builders import NODE, container, field, pod

SOURCES = Sources(NODE, {Reference(CONFIG_MAP, "conf"): {"a": "1", "b": "2"}})


def files(volume: dict[str, Any]) -> dict[str, str]:
    found = pod(
        container("main", resources={"limits": {"memory": "1Gi"}}),
        annotations={"gpufence.io/sitecustomize": "print('hi')"},
    )
    return volume_files({"name": "v", **volume}, found, SOURCES)


def test_an_annotation_becomes_a_file() -> None:
    """
    A downwardAPI volume shows an annotation as a file.
    """
    item = {
        "path": "sitecustomize.py",
        **field("metadata.annotations['gpufence.io/sitecustomize']"),
    }

    assert {"sitecustomize.py": "print('hi')"} == files({"downwardAPI": {"items": [item]}})


@pytest.mark.parametrize(("divisor", "expected"), [("1Mi", "1024"), ("", "1073741824")])
def test_a_resource_becomes_a_file(divisor: str, expected: str) -> None:
    """
    A downwardAPI volume shows a container's resource as a file.
    """
    wish = {"containerName": "main", "resource": "limits.memory", "divisor": divisor}
    item = {"path": "limit", "resourceFieldRef": wish}

    assert {"limit": expected} == files({"downwardAPI": {"items": [item]}})


def test_the_resource_of_an_unknown_container_keeps_waiting() -> None:
    """
    A file about a container that the pod has not cannot be made.
    """
    item = {"path": "x", "resourceFieldRef": {"containerName": "no", "resource": "limits.cpu"}}
    with pytest.raises(NotYetError, match="container no not found"):
        files({"downwardAPI": {"items": [item]}})


def test_a_whole_config_map_becomes_files() -> None:
    """
    Without items every key of a ConfigMap is a file.
    """
    assert {"a": "1", "b": "2"} == files({"configMap": {"name": "conf"}})


def test_items_choose_keys_and_paths() -> None:
    """
    Items choose which keys become files, and where.
    """
    items = [{"key": "b", "path": "deep/b.txt"}]

    assert {"deep/b.txt": "2"} == files({"configMap": {"name": "conf", "items": items}})


def test_a_missing_key_keeps_waiting() -> None:
    """
    An item whose key is not there is an error that names the key.
    """
    items = [{"key": "zz", "path": "z"}]
    with pytest.raises(NotYetError, match="non-existent configmap key: zz"):
        files({"configMap": {"name": "conf", "items": items}})


def test_an_optional_key_may_be_missing() -> None:
    """
    In an optional volume an item whose key is not there is left out.
    """
    items = [{"key": "zz", "path": "z"}, {"key": "a", "path": "a"}]
    volume = {"configMap": {"name": "conf", "items": items, "optional": True}}

    assert {"a": "1"} == files(volume)


def test_a_missing_secret_keeps_waiting() -> None:
    """
    A Secret that is not there is an error that names it.
    """
    with pytest.raises(NotYetError, match='secret "none" not found'):
        files({"secret": {"secretName": "none"}})


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
    found = pod(
        volumes=(
            {"name": "a", "configMap": {"name": "one"}},
            {"name": "b", "secret": {"secretName": "two"}},
            {"name": "c", "projected": {"sources": [{"secret": {"name": "three"}}]}},
            {"name": "d", "emptyDir": {}, "hostPath": None},
        )
    )

    assert {
        Reference(CONFIG_MAP, "one"),
        Reference(SECRET, "two"),
        Reference(SECRET, "three"),
    } == volume_references(found)


def test_volumes_of_words_are_fine() -> None:
    """
    Volumes made of the API's words are simulated.
    """
    check_volumes(
        pod(
            volumes=(
                {"name": "a", "emptyDir": {}},
                {"name": "b", "projected": {"sources": [{"serviceAccountToken": {}}]}},
                {"name": "c", "downwardAPI": {}},
            )
        )
    )


def test_other_volumes_are_refused() -> None:
    """
    A volume that would need a disk is refused with its name and kind.
    """
    with pytest.raises(RefusedPodError, match="volume data: hostPath is not simulated"):
        check_volumes(pod(volumes=({"name": "data", "hostPath": {"path": "/"}},)))


PLACES = {"/gpufence": "/tmp/p/gpufence", "/gpufence/sitecustomize.py": "/tmp/p/copy", "/d": "/x"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/gpufence", "/tmp/p/gpufence"),
        ("/gpufence/", "/tmp/p/gpufence/"),
        ("/gpufence/other.py", "/tmp/p/gpufence/other.py"),
        ("/gpufence/sitecustomize.py", "/tmp/p/copy"),
        ("/gpufence:/app", "/tmp/p/gpufence:/app"),
        ("/app:/gpufence:/d", "/app:/tmp/p/gpufence:/x"),
        ("--config=/d/x.yaml", "--config=/x/x.yaml"),
        ("hold 1Gi; read /d", "hold 1Gi; read /x"),
        ("/gpufences", "/gpufences"),
        ("/data", "/data"),
        ("/app/gpufence", "/app/gpufence"),
        ("", ""),
    ],
)
def test_paths_of_mounts_come_true(text: str, expected: str) -> None:
    """
    A path at or below a mount is replaced wherever it stands as a path, and nothing else is.
    """
    assert expected == relocate(text, PLACES)


def test_nothing_changes_without_mounts() -> None:
    """
    Without mounts every text stays as it is.
    """
    assert "/gpufence" == relocate("/gpufence", {})


def test_the_folder_of_a_single_file_comes_true_as_well() -> None:
    """
    A file mounted by subPath makes its folder known, unless that is the root.
    """
    mounts = {"/gpufence/sitecustomize.py": "/tmp/p/g/s.py", "/file": "/tmp/p/file", "/d": "/x"}
    found = places_of(mounts, frozenset({"/gpufence/sitecustomize.py", "/file"}))

    assert {**mounts, "/gpufence": "/tmp/p/g"} == found
