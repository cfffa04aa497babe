"""
Where `rewrite` finds pods: in anything that holds the template of one, in containers that stand
alone in operators' kinds; and kinds that show none of their pods.
"""

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
SHORT = {
    "ONE": "resources: {limits: {nvidia.com/gpu: '1'}}",
    "APP": "name: main, image: app:1, resources: {limits: {nvidia.com/gpu: '1'}}",
    "SERVE": "image: lab/serving:1, command: [vllm, serve, m], ONE",
    "SPEC": "spec: {containers: [{APP}]}",
    "TEMPLATE": "template: {SPEC}",
    "RAY": (
        "headGroupSpec: {template: {spec: {containers: "
        "[{name: head, image: 'vllm/vllm-openai:v0.21.0', ONE}]}}}, "
        "workerGroupSpecs: [{groupName: g, TEMPLATE}]"
    ),
    "JOB": "template: {spec: {TEMPLATE}}",
}
"""What stands in many of the manifests below, by a word."""


def written(text: str) -> dict[str, Any]:
    """Read a manifest of one line, in which the words above stand for more."""
    for word in ("RAY", "JOB", "TEMPLATE", "SPEC", "SERVE", "APP", "ONE"):
        text = text.replace(word, SHORT[word])
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def of(kind: str, spec: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "x.example/v1",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": written(spec),
        **more,
    }


def call(*manifests: Any, form: str = "explain", more: tuple[str, ...] = ()) -> str:
    out = io.StringIO()
    chosen = parser().parse_args(["rewrite", "-f", "-", *CARD, "-o", form, *more])
    show_rewrite(chosen, {}, io.StringIO(yaml.safe_dump_all(manifests)), out)
    return out.getvalue()


def told(*manifests: Any, more: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return what is said of each pod."""
    said = json.loads(call(*manifests, form="json", more=more))
    found: list[dict[str, Any]] = said if isinstance(said, list) else [said]
    return found


def printed(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(call(manifest, form="yaml"))
    return found


@pytest.mark.parametrize(
    ("kind", "spec", "paths"),
    [
        ("RayCluster", "{RAY}", "headGroupSpec.template workerGroupSpecs[0].template"),
        (
            "RayJob",
            "{rayClusterSpec: {RAY}}",
            "rayClusterSpec.headGroupSpec.template rayClusterSpec.workerGroupSpecs[0].template",
        ),
        (
            "PyTorchJob",
            "{pytorchReplicaSpecs: {Master: {TEMPLATE}}}",
            "pytorchReplicaSpecs.Master.template",
        ),
        ("JobSet", "{replicatedJobs: [{JOB}]}", "replicatedJobs[0].template.spec.template"),
        (
            "TrainingRuntime",
            "{template: {spec: {replicatedJobs: [{JOB}]}}}",
            "template.spec.replicatedJobs[0].template.spec.template",
        ),
        (
            "LeaderWorkerSet",
            "{leaderWorkerTemplate: {leaderTemplate: {SPEC}, workerTemplate: {SPEC}}}",
            "leaderWorkerTemplate.leaderTemplate leaderWorkerTemplate.workerTemplate",
        ),
        ("Notebook", "{TEMPLATE}", "template"),
        ("Job", "{tasks: [{TEMPLATE}]}", "tasks[0].template"),
        ("InferenceService", "{predictor: {containers: [{APP}]}}", "predictor"),
        (
            "LLMInferenceService",
            "{template: {containers: [{APP}]}, worker: {containers: [{APP}]}}",
            "template worker",
        ),
    ],
)
def test_every_template_of_an_object_is_found(kind: str, spec: str, paths: str) -> None:
    """Each pod of an object is told about, by the path of its template."""
    more = {"apiVersion": "batch.volcano.sh/v1alpha1"} if kind == "Job" else {}
    said = told(of(kind, spec, **more))

    assert [f"spec.{path}" for path in paths.split()] == [item["path"] for item in said]
    assert {"6144Mi"} == {item["plan"]["limit"] for item in said}


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        ("{kind: Workspace, metadata: {name: x}, inference: {TEMPLATE}}", "inference.template"),
        ("{kind: ServingRuntime, metadata: {name: x}, spec: {containers: [{APP}]}}", "spec"),
    ],
)
def test_a_template_stands_anywhere(manifest: str, path: str) -> None:
    """Beside the spec, or as the spec itself."""
    assert [path] == [item["path"] for item in told(written(manifest))]


def test_a_template_is_put_back_where_it_was_found() -> None:
    """As YAML the object comes back with its pods changed and all else as it was."""
    after = printed(of("RayCluster", "{rayVersion: '2.49.0', RAY}"))
    worker = after["spec"]["workerGroupSpecs"][0]["template"]

    assert "2.49.0" == after["spec"]["rayVersion"]
    assert "gpufence.io/plan" in worker["metadata"]["annotations"]
    assert "command" not in worker["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("kind", "spec", "container", "runs"),
    [
        ("RayCluster", "{RAY}", "head", "ray"),
        ("MPIJob", "{mpiReplicaSpecs: {Worker: {TEMPLATE}}}", "main", "sshd"),
        (
            "InferenceService",
            "{predictor: {model: {modelFormat: {name: vLLM}, runtime: vllm-cuda-runtime, ONE}}}",
            *("kserve-container", "vllm"),
        ),
        ("InferenceService", "{predictor: {triton: {ONE}}}", "kserve-container", "triton"),
    ],
)
def test_what_a_controller_starts_is_known(kind: str, spec: str, container: str, runs: str) -> None:
    """A container without a command runs what its controller starts, whatever its image."""
    assert runs == told(of(kind, spec))[0]["containers"][container]["runs"]


def test_a_model_of_kserve_runs_what_its_format_says() -> None:
    """A predictor that only names a model is the container that its runtime would make of it."""
    model = "modelFormat: {name: huggingface}, args: ['--model_name=m'], ONE"
    before = of("InferenceService", f"{{predictor: {{model: {{{model}}}}}}}")
    said = told(before)
    after = printed(before)["spec"]["predictor"]

    own = of("InferenceService", "{predictor: {model: {image: lab/vllm:1, ONE}}}")
    assert ["spec.predictor.model"] * 2 == [item["path"] for item in (*said, *told(own))]
    assert "vllm" == said[0]["containers"]["kserve-container"]["runs"]
    assert {"name", "image"}.isdisjoint(after["model"])
    assert "gpufence.io/plan" in after["annotations"]


def test_a_container_without_a_name_gets_one_for_the_while() -> None:
    """A template whose controller names its container comes back without that name."""
    before = of("ServingRuntime", "{containers: [{image: app:1, ONE}]}")
    after = printed(before)

    assert "6144Mi" == told(before)[0]["plan"]["limit"]
    assert "name" not in after["spec"]["containers"][0]
    assert "gpufence.io/plan" in after["spec"]["annotations"]


def test_annotations_of_an_inference_service_reach_its_pods() -> None:
    """What stands on an InferenceService counts for the pods that KServe makes of it."""
    said = {"name": "x", "annotations": {"gpufence.io/memory": "2Gi"}}
    before = of("InferenceService", "{predictor: {containers: [{APP}]}}", metadata=said)

    assert "2048Mi" == told(before)[0]["plan"]["limit"]


def test_a_folder_is_read_as_kubectl_reads_it(tmp_path: Path) -> None:
    """Every manifest of a folder is read, and what is no object of Kubernetes is passed over."""
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(of("Notebook", "{TEMPLATE}")))
    (tmp_path / "b.json").write_text(json.dumps(lone_pod("{APP}")))
    (tmp_path / "values.yaml").write_text("replicas: 2\n")
    (tmp_path / "README.md").write_text("words")
    out = io.StringIO()
    chosen = parser().parse_args(["rewrite", "-f", str(tmp_path), *CARD, "-o", "json"])

    assert 0 == show_rewrite(chosen, {}, io.StringIO(), out)
    assert ["Notebook", "Pod"] == [item["kind"] for item in json.loads(out.getvalue())]


def lone_pod(*containers: str) -> dict[str, Any]:
    return {"kind": "Pod", "spec": {"containers": [written(each) for each in containers]}}


def asking(**resources: Any) -> dict[str, Any]:
    item = {"name": "main", "image": "app:1", "resources": resources}
    return {"kind": "Pod", "spec": {"containers": [item]}}


def test_options_say_what_no_node_says() -> None:
    """The driver's limits, and the unit of gpushare, as on the nodes of the cluster."""
    (held,) = told(asking(limits={"aliyun.com/gpu-mem": "3"}), more=("--driver-limits", "on"))
    (small,) = told(asking(limits={"aliyun.com/gpu-mem": "3000"}), more=("--gpushare-unit", "MiB"))

    assert "the driver is asked to hold main to 3072Mi" in held["summary"]
    assert "3000Mi" == small["plan"]["limit"]


def test_what_is_asked_for_by_mistake_is_named() -> None:
    """An amount that only fits as MiB, a GPU among the requests alone, levels without end."""
    with pytest.raises(GpufenceError, match="nested too deeply"):
        call(of("Deep", "{inner: " * 41 + "0" + "}" * 41))
    many = call(asking(limits={"aliyun.com/gpu-mem": "16276"}))
    requests = call(asking(requests={"nvidia.com/gpu": "1"}))

    assert "GPUFENCE_GPUSHARE_UNIT=MiB" in many
    assert "main asks for nvidia.com/gpu in its requests only" in " ".join(requests.split())


def test_what_runs_is_said_of_every_container() -> None:
    """As JSON each container has what it runs and what that reads, null where nothing is known."""
    main = "{name: main, image: 'ollama/ollama:0.12.6', ONE}"
    (said,) = told(lone_pod(main, "{name: proxy, image: envoy}"))

    assert {"runs": "ollama", "reads": ["OLLAMA_GPU_OVERHEAD"]} == said["containers"]["main"]
    assert {"runs": None, "reads": []} == said["containers"]["proxy"]
    assert "ollama" == said["plan"]["containers"]["main"]["runs"]


@pytest.mark.parametrize(
    ("spec", "path", "container", "runs"),
    [
        pytest.param(
            "{image: {repository: nvcr.io/nim/meta/llama, tag: 1.12.0}, ONE}",
            *("spec", "main", "nim"),
            id="NIMService",
        ),
        pytest.param(
            "{services: [{name: guard, spec: {image: {repository: nvcr.io/nim/m, tag: 1.0.0},"
            " ONE}}]}",
            *("spec.services[0].spec", "main", "nim"),
            id="NIMPipeline",
        ),
        pytest.param(
            "{engineConfig: {runner: {name: engine, SERVE}}}",
            *("spec.engineConfig.runner", "engine", "vllm"),
            id="ClusterServingRuntime",
        ),
        pytest.param(
            "{templates: [{name: t, container: {SERVE}}]}",
            *("spec.templates[0].container", "container", "vllm"),
            id="Workflow",
        ),
        pytest.param(
            "{templates: [{name: t, script: {image: python:3, command: [python],"
            " source: import vllm, ONE}}]}",
            *("spec.templates[0].script", "script", None),
            id="Workflow with a script",
        ),
        pytest.param(
            "{deploymentConfig: {image: {registry: docker.io, name: 'lmcache/vllm-openai:v0.3.6'},"
            " resources: {cpu: '8', gpu: '1', gpuType: nvidia.com/gpu}}}",
            *("spec.deploymentConfig", "deploymentConfig", "vllm"),
            id="VLLMRuntime",
        ),
        pytest.param(
            "{backend: {workers: [{image: 'vllm/vllm-openai:v0.13.0', ONE}]}}",
            *("spec.backend.workers[0]", "workers", "vllm"),
            id="ModelBooster",
        ),
        pytest.param(
            "{services: {Worker: {resources: {limits: {gpu: '1'}}, extraPodSpec: {mainContainer:"
            " {image: lab/runtime:1, command: [python3, -m, dynamo.vllm], args: [--model, m]}}}}}",
            *("spec.services.Worker.extraPodSpec.mainContainer", "mainContainer", "vllm"),
            id="DynamoGraphDeployment",
        ),
        pytest.param(
            "{values: {controllers: {main: {containers: {app: {image: {repository: ollama/ollama,"
            " tag: 0.12.0}, env: {OLLAMA_HOST: 0.0.0.0, KEEP: 5}, ONE}}}}}}",
            *("spec.values.controllers.main.containers.app", "app", "ollama"),
            id="HelmRelease",
        ),
        pytest.param(
            "{trainer: {image: lab/train:1, command: [torchrun, t.py],"
            " resourcesPerNode: {limits: {nvidia.com/gpu: '1'}}}}",
            *("spec.trainer", "trainer", None),
            id="TrainJob",
        ),
    ],
)
def test_a_container_under_any_key_is_one(
    spec: str, path: str, container: str, runs: str | None
) -> None:
    """What has an image and asks for a GPU, or is started, is told about like a pod's container."""
    (said,) = told(of("Whatever", spec))

    assert path == said["path"]
    assert "6144Mi" == said["plan"]["limit"]
    assert runs == said["containers"][container]["runs"]
    assert "kubectl get pods -n default" in said["warnings"][-1]


def test_annotations_and_helpers_around_a_container_count() -> None:
    """What stands around a lone container belongs to its pod: annotations and sidecars."""
    around = "metadata: {annotations: {gpufence.io/memory: 2Gi}}"
    beside = "sidecars: [{name: helper, image: lab/helper:1, ONE}]"
    place = f"{{templates: [{{{around}, container: {{SERVE}}, {beside}}}]}}"
    (said,) = told(of("Workflow", place))

    assert ["container", "helper"] == list(said["plan"]["containers"])
    assert "2048Mi" == said["plan"]["limit"]


def test_variables_beside_a_container_are_its_own() -> None:
    """An operator's `envs` count as the container's, and those of the container win."""
    envs = "envs: [{name: MORE, value: --gpu-memory-utilization 0.2}]"
    own = "args: [$(MORE)], env: [{name: MORE, value: --gpu-memory-utilization=0.1}]"
    (said,) = told(of("Whatever", f"{{worker: {{{envs}, main: {{SERVE, {own}}}}}}}"))

    assert "--gpu-memory-utilization=0.1" == said["environment"]["main"]["MORE"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ClusterServingRuntime", "{engineConfig: {runner: {SERVE}}}"),
        ("ServingRuntime", "{containers: [{name: main, image: app:1}]}"),
    ],
)
def test_what_is_not_changed_is_printed_as_it_was(kind: str, spec: str) -> None:
    """What needs nothing, and a kind of which nothing tells whether it hands all on."""
    before = of(kind, spec)

    assert before == printed(before)


@pytest.mark.parametrize(
    "spec",
    [
        "{image: 'spark:4', executor: {gpu: {name: nvidia.com/gpu, quantity: 1}}}",
        "{engine: VLLM, resourceProfile: 'nvidia-gpu-l4:1'}",
        "{trainer: {resourcesPerNode: {limits: {nvidia.com/gpu: '1'}}}}",
        "{sparkConf: {spark.executor.resource.gpu.amount: '1'}}",
    ],
)
def test_a_kind_without_containers_says_where_its_pods_are(spec: str) -> None:
    """An object that names a GPU and shows no container is named, with the call that shows more."""
    pod, silent = lone_pod("{name: main, ONE}"), of("Whatever", spec)
    pipe = "kubectl get pods -n default -l <a label of theirs> -o yaml | gpufence-webhook rewrite"

    with pytest.raises(GpufenceError) as alone:
        call(silent)

    assert pipe in str(alone.value)
    assert pipe in call(pod, silent)
    assert pipe in told(pod, silent)[1]["warnings"][0]


@pytest.mark.parametrize(
    "manifest",
    [
        "{apiVersion: kueue.x-k8s.io/v1beta1, spec: {resources: [nvidia.com/gpu]}}",
        "{apiVersion: karpenter.sh/v1, spec: {limits: {nvidia.com/gpu: 8}}}",
        "{apiVersion: v1, spec: {hard: {requests.nvidia.com/gpu: 4}}}",
        "{apiVersion: lab.example/v1, spec: {size: 3}}",
    ],
)
def test_what_has_no_pods_is_passed_over(manifest: str) -> None:
    """Queues, kinds of nodes and whatever names no GPU are not named."""
    said = told(lone_pod("{name: main, ONE}"), {"kind": "Whatever", **written(manifest)})

    assert ["Pod"] == [item["kind"] for item in said]


@pytest.mark.parametrize("image", ["", "image: lab/own:1,"], ids=["all", "with an image"])
def test_what_kserve_starts_a_language_model_with_is_known(image: str) -> None:
    """The main container of an LLMInferenceService starts vLLM where it says nothing itself."""
    both = f"[{{name: helper, image: busybox}}, {{name: main, {image} ONE}}]"
    before = of("LLMInferenceService", f"{{template: {{containers: {both}}}}}")
    (said,) = told(before)
    after = printed(before)["spec"]["template"]["containers"][1]

    assert "vllm" == said["containers"]["main"]["runs"]
    assert "PYTORCH_ALLOC_CONF" not in said["environment"]["main"]
    assert {"command", "args"}.isdisjoint(after)
    assert bool(image) == ("image" in after)
