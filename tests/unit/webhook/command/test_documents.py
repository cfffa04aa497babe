"""Where `rewrite` finds pods: in anything that holds the template of one."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufence.errors import GpufenceError
from webhook.__main__ import parser
from webhook.command import show_rewrite

CARD = ("--card", "15360Mi", "--namespace-annotation", "gpufence.io/memory=6Gi")


def call(text: str, *arguments: str) -> str:
    out = io.StringIO()
    chosen = parser().parse_args(["rewrite", "-f", "-", *CARD, *arguments])
    show_rewrite(chosen, {}, io.StringIO(text), out)
    return out.getvalue()


def told(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what is said of each pod."""
    said = json.loads(call(json.dumps(manifest), "-o", "json"))
    found: list[dict[str, Any]] = said if isinstance(said, list) else [said]
    return found


def printed(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(call(json.dumps(manifest), "-o", "yaml"))
    return found


def template(name: str = "main", **item: Any) -> dict[str, Any]:
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    return {"spec": {"containers": [{"name": name, "image": "app:1", "resources": limits, **item}]}}


def of(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


RAY = {
    "headGroupSpec": {"template": template("head", image="vllm/vllm-openai:v0.21.0")},
    "workerGroupSpecs": [{"groupName": "g", "template": template("worker")}],
}
JOB = {"template": {"spec": {"template": template()}}}


@pytest.mark.parametrize(
    ("manifest", "paths"),
    [
        (
            of("RayCluster", **RAY),
            ["spec.headGroupSpec.template", "spec.workerGroupSpecs[0].template"],
        ),
        (
            of("RayJob", rayClusterSpec=RAY),
            [
                "spec.rayClusterSpec.headGroupSpec.template",
                "spec.rayClusterSpec.workerGroupSpecs[0].template",
            ],
        ),
        (
            of("PyTorchJob", pytorchReplicaSpecs={"Master": {"template": template()}}),
            ["spec.pytorchReplicaSpecs.Master.template"],
        ),
        (of("JobSet", replicatedJobs=[JOB]), ["spec.replicatedJobs[0].template.spec.template"]),
        (
            of("TrainingRuntime", template={"spec": {"replicatedJobs": [JOB]}}),
            ["spec.template.spec.replicatedJobs[0].template.spec.template"],
        ),
        (
            of(
                "LeaderWorkerSet",
                leaderWorkerTemplate={"leaderTemplate": template(), "workerTemplate": template()},
            ),
            [
                "spec.leaderWorkerTemplate.leaderTemplate",
                "spec.leaderWorkerTemplate.workerTemplate",
            ],
        ),
        (of("Notebook", template=template()), ["spec.template"]),
        (
            {"kind": "Workspace", "metadata": {"name": "x"}, "inference": {"template": template()}},
            ["inference.template"],
        ),
        (
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "x"},
                "spec": {"tasks": [{"template": template()}]},
            },
            ["spec.tasks[0].template"],
        ),
        (of("ServingRuntime", **template()["spec"]), ["spec"]),
        (of("InferenceService", predictor=template()["spec"]), ["spec.predictor"]),
        (
            of("LLMInferenceService", template=template()["spec"], worker=template()["spec"]),
            ["spec.template", "spec.worker"],
        ),
    ],
    ids=lambda item: item["kind"] if isinstance(item, dict) else "",
)
def test_every_template_of_an_object_is_found(manifest: dict[str, Any], paths: list[str]) -> None:
    """Each pod of an object is told about, by the path of its template."""
    said = told(manifest)

    assert paths == [item["path"] for item in said]
    assert ["6144Mi"] * len(paths) == [item["plan"]["limit"] for item in said]


def test_a_template_is_put_back_where_it_was_found() -> None:
    """As YAML the object comes back with its pods changed and all else as it was."""
    before = of("RayCluster", rayVersion="2.49.0", **RAY)
    after = printed(before)
    worker = after["spec"]["workerGroupSpecs"][0]["template"]

    assert "2.49.0" == after["spec"]["rayVersion"]
    assert "gpufence.io/plan" in worker["metadata"]["annotations"]
    assert "command" not in worker["spec"]["containers"][0]


def test_what_kuberay_starts_is_no_server() -> None:
    """A container of a RayCluster without a command runs Ray, whatever its image."""
    head, _ = told(of("RayCluster", **RAY))

    assert {"runs": "ray", "reads": []} == head["containers"]["head"]


def test_ranks_of_an_mpi_job_wait_for_ssh() -> None:
    """A worker of an MPIJob without a command runs sshd."""
    said = told(of("MPIJob", mpiReplicaSpecs={"Worker": {"template": template()}}))

    assert "sshd" == said[0]["containers"]["main"]["runs"]


def test_a_model_of_kserve_runs_what_its_format_says() -> None:
    """A predictor that only names a model is the container that its runtime would make of it."""
    model = {
        "modelFormat": {"name": "huggingface"},
        "args": ["--model_name=m"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    before = of("InferenceService", predictor={"model": model})
    said = told(before)
    after = printed(before)["spec"]["predictor"]

    assert ["spec.predictor.model"] == [item["path"] for item in said]
    assert "vllm" == said[0]["containers"]["kserve-container"]["runs"]
    assert {"name", "image"}.isdisjoint(after["model"])
    assert "gpufence.io/plan" in after["annotations"]


def test_a_models_runtime_says_what_it_runs() -> None:
    """
    A model that names its runtime runs what that is called after, and one that runs nothing known
    says so.
    """
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    named = {"modelFormat": {"name": "vLLM"}, "runtime": "vllm-cuda-runtime", "resources": limits}
    old = {"resources": limits}
    said = [
        told(of("InferenceService", predictor={key: model}))[0]["containers"]
        for key, model in (("model", named), ("triton", old))
    ]

    assert ["vllm", "triton"] == [item["kserve-container"]["runs"] for item in said]


def test_a_container_without_a_name_gets_one_for_the_while() -> None:
    """A template whose controller names its container comes back without that name."""
    spec = template()["spec"]
    del spec["containers"][0]["name"]
    before = of("ServingRuntime", **spec)
    after = printed(before)

    assert "6144Mi" == told(before)[0]["plan"]["limit"]
    assert "name" not in after["spec"]["containers"][0]
    assert "gpufence.io/plan" in after["spec"]["annotations"]


def test_a_template_without_gpu_comes_back_as_it_was() -> None:
    """What needs nothing is printed as it was read."""
    before = of("ServingRuntime", containers=[{"name": "main", "image": "app:1"}])

    assert before == printed(before)


def test_annotations_of_an_inference_service_reach_its_pods() -> None:
    """What stands on an InferenceService counts for the pods that KServe makes of it."""
    before = of("InferenceService", predictor=template()["spec"])
    before["metadata"]["annotations"] = {"gpufence.io/memory": "2Gi"}

    assert "2048Mi" == told(before)[0]["plan"]["limit"]


def test_a_folder_is_read_as_kubectl_reads_it(tmp_path: Path) -> None:
    """Every manifest of a folder is read, and what is no object of Kubernetes is passed over."""
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(of("Notebook", template=template())))
    (tmp_path / "b.json").write_text(json.dumps({"kind": "Pod", **template()}))
    (tmp_path / "values.yaml").write_text("replicas: 2\n")
    (tmp_path / "README.md").write_text("words")
    out = io.StringIO()
    chosen = parser().parse_args(["rewrite", "-f", str(tmp_path), *CARD, "-o", "json"])

    assert 0 == show_rewrite(chosen, {}, io.StringIO(), out)
    assert ["Notebook", "Pod"] == [item["kind"] for item in json.loads(out.getvalue())]


def test_the_driver_holds_where_it_is_asked_to() -> None:
    """With --driver-limits a container is shown the limit that the driver holds it to."""
    asked: dict[str, Any] = {"resources": {"limits": {"aliyun.com/gpu-mem": "3"}}}
    pod = {"kind": "Pod", **template(**asked)}
    said = json.loads(call(json.dumps(pod), "-o", "json", "--driver-limits", "on"))

    assert "the driver is asked to hold main to 3072Mi" in said["summary"]


def test_the_unit_of_gpushare_can_be_named() -> None:
    """With --gpushare-unit units count as on nodes of that unit."""
    asked: dict[str, Any] = {"resources": {"limits": {"aliyun.com/gpu-mem": "3000"}}}
    pod = {"kind": "Pod", **template(**asked)}
    said = json.loads(call(json.dumps(pod), "-o", "json", "--gpushare-unit", "MiB"))

    assert "3000Mi" == said["plan"]["limit"]


def test_too_many_units_are_told_of_the_other_unit() -> None:
    """An amount that only fits as MiB names the setting that says so."""
    asked: dict[str, Any] = {"resources": {"limits": {"aliyun.com/gpu-mem": "16276"}}}

    assert "GPUFENCE_GPUSHARE_UNIT=MiB" in call(json.dumps({"kind": "Pod", **template(**asked)}))


def test_gpus_in_requests_alone_are_told_apart() -> None:
    """
    A GPU that only stands among the requests is no limit, and the word says where to write it.
    """
    asked: dict[str, Any] = {"resources": {"requests": {"nvidia.com/gpu": "1"}}}
    text = " ".join(call(json.dumps({"kind": "Pod", **template(**asked)})).split())

    assert "main asks for nvidia.com/gpu in its requests only" in text


def test_what_runs_is_said_of_every_container() -> None:
    """
    As JSON each container has what it runs and what that reads, null where it is nothing known.
    """
    pod = {"kind": "Pod", **template(image="ollama/ollama:0.12.6")}
    pod["spec"]["containers"].append({"name": "proxy", "image": "envoy"})
    said = told(pod)[0]

    assert {"runs": "ollama", "reads": ["OLLAMA_GPU_OVERHEAD"]} == said["containers"]["main"]
    assert {"runs": None, "reads": []} == said["containers"]["proxy"]
    assert "ollama" == said["plan"]["containers"]["main"]["runs"]


def test_an_object_nested_without_end_is_named() -> None:
    """An object that is nested too deeply is refused before anybody runs out of memory for it."""
    nested: dict[str, Any] = {}
    manifest = of("Deep", inner=nested)
    for _ in range(40):
        nested["inner"] = {}
        nested = nested["inner"]
    with pytest.raises(GpufenceError, match="nested too deeply"):
        call(json.dumps(manifest))
