"""What a container is given: variables and volumes, resolved as a kubelet does."""

from pathlib import Path
from typing import Any

import pytest

from simulator.node.environment import (
    CONFIG_MAP,
    SECRET,
    Reference,
    ValueSources,
    command_line,
    expand,
    field_value,
    references,
    resolve,
)
from simulator.node.errors import NotYetError
from simulator.node.volumes import Volumes, relocate, volume_files, volume_references
from tests.unit.simulator.builders import ADDRESS, UID, container, env, field, pod

SOURCES = ValueSources(
    ADDRESS,
    {
        Reference(CONFIG_MAP, "settings"): {"a": "map a"},
        Reference(SECRET, "keys"): {"token": "t0p"},
    },
)
POD = pod(annotations={"env.gpufence.io/0.XLA": "0.25", "raw": "$(A)"})


def resolved(*entries: tuple[str, Any]) -> dict[str, str]:
    annotations = {"gpufence.io/x": "0.25", "raw": "$(A)"}
    read = pod(container(env=env(*entries)), annotations=annotations)
    return resolve(read.containers[0], read, SOURCES)


def key(kind: str, name: str, of: str, **fields: Any) -> dict[str, Any]:
    return {kind: {"name": name, "key": of, **fields}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("x$(A)y$(A)z", "xoneyonez"),
        ("$(WITH-DASH)", "dash"),
        ("$(EMPTY)", ""),
        ("$(B)", "$(A)"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$()", "$()"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$$$(A)", "$$(A)"),
        ("$A ${A} $", "$A ${A} $"),
        ("$($(A)", "$($(A)"),
        ("$(A)$(", "one$("),
        ("\n$(A)\n", "\none\n"),
    ],
)
def test_references_are_replaced_as_in_kubernetes(text: str, expected: str) -> None:
    """Known references give way to their values, everything else stays as it was written."""
    variables = {"A": "one", "B": "$(A)", "EMPTY": "", "WITH-DASH": "dash"}

    assert expected == expand(text, variables)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "trainer"),
        ("metadata.namespace", "team-a"),
        ("metadata.uid", UID),
        ("metadata.labels['app']", "training"),
        ("metadata.annotations['env.gpufence.io/0.XLA']", "0.25"),
        ("metadata.annotations['missing']", ""),
        ("spec.nodeName", "node-a"),
        ("spec.serviceAccountName", "robot"),
        ("status.podIP", ADDRESS),
        ("status.hostIP", ADDRESS),
    ],
)
def test_fields_have_their_values(path: str, expected: str) -> None:
    """A field has the pod's value, a missing key an empty one."""
    assert expected == field_value(POD, ADDRESS, path)


@pytest.mark.parametrize(
    "path", ["status.phase", "metadata.annotations['open", "metadata.name['k']"]
)
def test_other_fields_are_errors(path: str) -> None:
    """A field that is not offered keeps the container waiting, with the kubelet's words."""
    with pytest.raises(NotYetError) as caught:
        field_value(POD, ADDRESS, path)

    assert f"unsupported fieldPath: {path}" == str(caught.value)


def test_the_last_of_two_equal_names_counts() -> None:
    """A name that is given twice has its later value."""
    assert {"A": "2"} == resolved(("A", "1"), ("A", "2"))


def test_only_earlier_variables_are_expanded() -> None:
    """A value may refer to what stands before it, fields included, and to nothing behind it."""
    annotation = field("metadata.annotations['gpufence.io/x']")

    assert {"F": "0.25", "A": "use=0.25 $(B)", "B": "2"} == resolved(
        ("F", annotation), ("A", "use=$(F) $(B)"), ("B", "2")
    )


def test_values_from_a_source_are_not_expanded() -> None:
    """What an annotation holds is taken as it is, even if it looks like a reference."""
    assert "$(A)" == resolved(("A", "1"), ("B", field("metadata.annotations['raw']")))["B"]


def test_a_missing_annotation_is_an_empty_variable() -> None:
    """A field reference to an annotation that is not there sets an empty variable."""
    assert {"A": "", "B": ""} == resolved(("A", field("metadata.annotations['none']")), ("B", ""))


def test_keys_of_objects_are_read() -> None:
    """ConfigMaps and Secrets give single values."""
    variables = resolved(
        ("M", key("configMapKeyRef", "settings", "a")), ("S", key("secretKeyRef", "keys", "token"))
    )

    assert {"M": "map a", "S": "t0p"} == variables


@pytest.mark.parametrize(("name", "of"), [("none", "a"), ("settings", "none")])
def test_what_is_optional_may_be_missing(name: str, of: str) -> None:
    """An optional key that is not there leaves the variable as it was before."""
    source = key("configMapKeyRef", name, of, optional=True)

    assert {"A": "before"} == resolved(("A", "before"), ("A", source))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (key("configMapKeyRef", "none", "a"), 'configmap "none" not found in namespace team-a'),
        (key("secretKeyRef", "keys", "no"), "couldn't find key no in Secret team-a/keys"),
        ({"resourceFieldRef": {}}, "resourceFieldRef is not simulated; use a fieldRef"),
    ],
)
def test_what_is_missing_keeps_the_container_waiting(source: dict[str, Any], message: str) -> None:
    """A source that is needed and not there is an error that names it."""
    with pytest.raises(NotYetError) as caught:
        resolved(("A", source))

    assert message == str(caught.value)


def test_all_references_are_found() -> None:
    """Every ConfigMap and Secret that `env` names is to be read, once."""
    entries = env(
        ("A", key("configMapKeyRef", "one", "a")),
        ("B", key("configMapKeyRef", "one", "b")),
        ("C", key("secretKeyRef", "two", "c")),
        ("D", "literal"),
    )
    (main,) = pod(container(env=entries)).containers

    assert {Reference(CONFIG_MAP, "one"), Reference(SECRET, "two")} == references(main)


def test_command_and_arguments_are_expanded() -> None:
    """Command and arguments see all variables, the device plugin's included."""
    (main,) = pod(container(command=["run", "$(A)"], args=["--card=$(CARD)", "$$(A)"])).containers

    assert ("run", "1", "--card=GPU-0", "$(A)") == command_line(main, {"A": "1", "CARD": "GPU-0"})


VOLUME_SOURCES = ValueSources(ADDRESS, {Reference(CONFIG_MAP, "conf"): {"a": "1", "b": "2"}})
KEY = "gpufence.io/sitecustomize"


def files(volume: dict[str, Any]) -> dict[str, str]:
    return volume_files(
        {"name": "v", **volume}, pod(annotations={KEY: "print('hi')"}), VOLUME_SOURCES
    )


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
    """Without items every key of a ConfigMap is a file; items choose which, and where."""
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
    """A source that is not there is an error that names it."""
    with pytest.raises(NotYetError, match=message):
        files(volume)


def test_an_optional_secret_may_be_missing() -> None:
    """An optional Secret that is not there gives an empty volume."""
    assert {} == files({"secret": {"secretName": "none", "optional": True}})


def test_projected_sources_are_merged_without_tokens() -> None:
    """A projected volume, such as every pod has, shows all its sources but the token."""
    sources = [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "conf", "items": [{"key": "a", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", **field("metadata.namespace")}]}},
    ]

    assert {"ca.crt": "1", "namespace": "team-a"} == files({"projected": {"sources": sources}})


def test_the_objects_of_volumes_are_found() -> None:
    """Every ConfigMap and Secret that a volume shows is to be read."""
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
    """A path at or below a mount is replaced wherever it stands as a path, and nothing else is."""
    places = {
        "/gpufence": "/tmp/p/gpufence",
        "/gpufence/sitecustomize.py": "/tmp/p/copy",
        "/d": "/x",
    }

    assert expected == relocate(text, places)
    assert text == relocate(text, {})


def hook(source: str) -> Any:
    """Build a pod with an annotation in a downwardAPI volume, and an empty volume."""
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
    """A new annotation shows in the mounted volume, while the file mounted by subPath stays."""
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("old"), VOLUME_SOURCES)
    wanted = mounts(("hook", "/all", ""), ("hook", "/one/s.py", "sitecustomize.py"))
    places = volumes.mount(wanted, tmp_path / "root")
    volumes.fill(hook("new"), VOLUME_SOURCES)

    assert ("new", "old", "old") == (
        Path(places["/all"], "sitecustomize.py").read_text(),
        Path(places["/one/s.py"]).read_text(),
        Path(places["/one"], "s.py").read_text(),
    )


def test_what_a_container_wrote_stays(tmp_path: Path) -> None:
    """A volume keeps what was written to it when a container starts again."""
    volumes = Volumes(tmp_path / "volumes")
    for again in (False, True):
        volumes.fill(hook("x"), VOLUME_SOURCES)
        places = volumes.mount(mounts(("empty", "/scratch/", "deep")), tmp_path / "root")
        if not again:
            Path(places["/scratch"], "mine").write_text("kept")

    assert "kept" == Path(places["/scratch"], "mine").read_text()


def test_a_sub_path_cannot_leave_its_volume(tmp_path: Path) -> None:
    """A subPath that climbs out of the volume keeps the container waiting."""
    volumes = Volumes(tmp_path / "volumes")
    volumes.fill(hook("x"), VOLUME_SOURCES)
    with pytest.raises(NotYetError, match="leaves volume empty"):
        volumes.mount(mounts(("empty", "/data", "../hook")), tmp_path / "root")
