"""The `rewrite` command, as a person and as a pipeline call it."""

import io
import json
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from gpufence.errors import GpufenceError
from tests.support.builders import container, gpushare, pod
from webhook.__main__ import parser
from webhook.command import show_rewrite

T4 = ("--card", "15360Mi", "--compute-capability", "7.5")


def call(text: str, *arguments: str, environ: dict[str, str] | None = None) -> tuple[int, str]:
    out = io.StringIO()
    chosen = parser().parse_args(["rewrite", "-f", "-", *arguments])
    code = show_rewrite(chosen, environ or {}, io.StringIO(text), out)
    return code, out.getvalue()


def manifest(kind: str, *path: str, api: str = "apps/v1") -> dict[str, Any]:
    """Build a controller whose pod template stands at a path."""
    found: dict[str, Any] = {"apiVersion": api, "kind": kind, "metadata": {"name": "trainer"}}
    inner = found
    for key in path:
        inner = inner.setdefault(key, {})
    inner |= {"metadata": {"labels": {"app": "t"}}, "spec": pod(gpushare("main", 3))["spec"]}
    return found


def alone() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", **pod(gpushare("main", 3))}


def test_a_person_reads_what_would_happen() -> None:
    """Without further wishes the command explains the limit and every value in words."""
    code, text = call(json.dumps(alone()), *T4)

    assert 0 == code
    assert "limit 3072Mi, its variables say 2150Mi" in text
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION  0.140000" in text


def test_a_pipeline_reads_everything_as_json() -> None:
    """As JSON the plan, the operations, the warnings and each container's values are there."""
    code, text = call(json.dumps(alone()), *T4, "-o", "json")
    said = json.loads(text)

    assert 0 == code
    assert "3072Mi" == said["plan"]["limit"]
    assert "0.140000" == said["environment"]["main"]["XLA_PYTHON_CLIENT_MEM_FRACTION"]
    assert ([], None) == (said["warnings"], said["refusal"])
    assert said["operations"]


def test_the_patch_leads_to_the_printed_manifest() -> None:
    """What -o patch prints, applied to the pod, is what -o yaml prints."""
    _, patch = call(json.dumps(alone()), *T4, "-o", "patch")
    _, text = call(json.dumps(alone()), *T4, "-o", "yaml")

    assert yaml.safe_load(text) == jsonpatch.apply_patch(alone(), json.loads(patch))


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Deployment", ("spec", "template")),
        ("StatefulSet", ("spec", "template")),
        ("DaemonSet", ("spec", "template")),
        ("ReplicaSet", ("spec", "template")),
        ("Job", ("spec", "template")),
        ("CronJob", ("spec", "jobTemplate", "spec", "template")),
    ],
)
def test_pods_are_found_where_controllers_keep_them(kind: str, path: tuple[str, ...]) -> None:
    """The pod inside of a controller is rewritten in its place."""
    code, text = call(json.dumps(manifest(kind, *path)), *T4, "-o", "yaml")
    found = yaml.safe_load(text)
    for key in path:
        found = found[key]

    assert 0 == code
    assert "gpufence.io/plan" in found["metadata"]["annotations"]
    assert {"app": "t"} == found["metadata"]["labels"]


def test_lists_and_several_documents_hold_several_pods() -> None:
    """Every pod of a List and of every document is told about, other objects are passed over."""
    listed = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [alone(), manifest("Job", "spec", "template")],
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    text = yaml.safe_dump_all([listed, service, None, alone()])
    _, out = call(text, *T4, "-o", "json")

    assert ["Pod", "Job", "Pod"] == [said["kind"] for said in json.loads(out)]


def test_what_stands_once_and_counts_twice_is_changed_twice() -> None:
    """Containers that share a list by YAML's aliases are told each for itself."""
    pod = alone()
    first = pod["spec"]["containers"][0] | {"env": [{"name": "MINE", "value": "x"}]}
    pod["spec"]["containers"] = [first, first | {"name": "second"}]
    _, text = call(yaml.safe_dump(pod), *T4, "-o", "yaml")
    containers = yaml.safe_load(text)["spec"]["containers"]

    assert "*" in yaml.safe_dump(pod)
    assert [1, 1] == [
        [entry["name"] for entry in item["env"]].count("PYTORCH_ALLOC_CONF") for item in containers
    ]


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--strict",), 1)])
def test_a_pipeline_may_be_strict(arguments: tuple[str, ...], code: int) -> None:
    """In mode cap an amount that cannot be read is a warning, and with --strict a failure."""
    warned = alone()
    warned["metadata"] = {**warned["metadata"], "annotations": {"gpufence.io/memory": "6GB"}}

    assert code == call(json.dumps(warned), *T4, *arguments)[0]
    assert 0 == call(json.dumps(alone()), *T4, *arguments)[0]


def test_a_refusal_is_an_exit_code() -> None:
    """A pod that evict mode would refuse ends the command with 1 and the reason."""
    wrong = {"kind": "Pod", **pod(container("main", **{"nvidia.com/gpu": "1"}))}
    wrong["metadata"]["annotations"] = {"gpufence.io/memory": "3GB"}
    code, text = call(json.dumps(wrong), *T4, "--mode", "evict")

    assert 1 == code
    assert "REFUSED" in text
    assert "gpufence.io/memory" in text


def test_the_namespaces_words_count() -> None:
    """Annotations of the namespace are the defaults of its pods."""
    plain = {"kind": "Pod", **pod(container("main", **{"nvidia.com/gpu": "1"}))}
    words = ("--namespace-annotation", "gpufence.io/memory=6Gi")
    _, text = call(json.dumps(plain), *T4, *words, "-o", "json")

    assert "6144Mi" == json.loads(text)["plan"]["limit"]


def test_a_pod_without_gpu_stays_as_it_is() -> None:
    """A pod that needs nothing of gpufence is said to stay as it is."""
    code, text = call(json.dumps({"kind": "Pod", **pod(container("main"))}), *T4)

    assert 0 == code
    assert "stays as it is" in text


def test_settings_come_from_the_environment() -> None:
    """The server's settings count for the command too."""
    environ = {"GPUFENCE_DEFAULT_CARD": "15360Mi", "GPUFENCE_GPUSHARE_UNIT": "MiB"}
    _, text = call(json.dumps(alone()), "-o", "json", environ=environ)

    assert "3Mi" == json.loads(text)["plan"]["limit"]


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("a: [", (), "is not YAML"),
        ("", (), "holds no object"),
        ("just text", (), "is no Kubernetes object"),
        ("{kind: List, items: [7]}", (), "items[0]"),
        ("{kind: Service}", (), "holds no pod"),
        ("{kind: Deployment, metadata: {name: x}}", (), "has no spec.template"),
        ("{kind: Pod, spec: {containers: 7}}", (), "spec.containers"),
        ("{kind: Pod}", ("--card", "big"), "--card"),
        ("{kind: Pod}", ("--card", "0"), "--card"),
        ("{kind: Pod}", ("--compute-capability", "seven"), "--compute-capability"),
        ("{kind: Pod}", ("--namespace-annotation", "x"), "--namespace-annotation"),
        ("{kind: Pod}", ("-f", "/nowhere/pod.yaml"), "/nowhere/pod.yaml"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, arguments: tuple[str, ...], expected: str) -> None:
    """A call or a manifest that cannot be read raises an error that names the place."""
    with pytest.raises(GpufenceError) as raised:
        call(text, *arguments)

    assert expected in str(raised.value)


def test_manifests_are_read_from_files(tmp_path: Path) -> None:
    """A file works like standard input."""
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(alone()), encoding="utf-8")
    out = io.StringIO()

    chosen = parser().parse_args(["rewrite", "-f", str(path), *T4])

    assert 0 == show_rewrite(chosen, {}, io.StringIO(), out)
    assert "pod/p" in out.getvalue() or "pod/" in out.getvalue()


@pytest.mark.parametrize(
    ("pod_spec", "field"),
    [
        ({"containers": "x"}, "deployment/d spec.containers"),
        ({"containers": [{"name": 5}]}, "deployment/d spec.containers[0].name"),
        (
            {
                "containers": [
                    gpushare("main", 3) | {"env": [{"name": "CUPY_GPU_MEMORY_LIMIT", "value": 5}]}
                ]
            },
            "deployment/d containers[main].env[CUPY_GPU_MEMORY_LIMIT].value",
        ),
    ],
)
def test_a_mistake_is_named_by_file_document_and_field(
    pod_spec: dict[str, Any], field: str
) -> None:
    """An error says in which file and document, in whose pod and at which field it is."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": {"spec": pod_spec}},
    }
    with pytest.raises(GpufenceError) as caught:
        call(yaml.safe_dump_all([service, deployment]))

    assert str(caught.value).startswith(f"-, document 2: {field}: ")


def test_values_from_elsewhere_are_not_guessed() -> None:
    """A value that only the cluster knows is not among the environment, and its warning says so."""
    manifest = alone()
    source = {"configMapKeyRef": {"name": "c", "key": "k"}}
    manifest["spec"]["containers"][0]["env"] = [
        {"name": "CUPY_GPU_MEMORY_LIMIT", "valueFrom": source},
        {"name": "MINE", "value": "x"},
    ]
    _, text = call(json.dumps(manifest), *T4, "-o", "json")
    _, told = call(json.dumps(manifest), *T4)
    seen = json.loads(text)["environment"]["main"]

    assert "CUPY_GPU_MEMORY_LIMIT" not in seen
    assert "x" == seen["MINE"]
    assert "warning: main: CUPY_GPU_MEMORY_LIMIT comes from elsewhere" in told
