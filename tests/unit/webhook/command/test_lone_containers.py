"""Containers that stand alone in operators' kinds, and kinds that show none of their pods."""

import io
import json
from typing import Any

import pytest
import yaml

from gpufence.errors import GpufenceError
from webhook.__main__ import parser
from webhook.command import show_rewrite

CARD = ("--card", "15360Mi", "--namespace-annotation", "gpufence.io/memory=6Gi")
ONE_GPU = {"limits": {"nvidia.com/gpu": "1"}}
SERVE = {"image": "lab/serving:1", "command": ["vllm", "serve", "m"], "resources": ONE_GPU}


def call(*manifests: dict[str, Any], form: str = "json") -> str:
    out = io.StringIO()
    chosen = parser().parse_args(["rewrite", "-f", "-", *CARD, "-o", form])
    show_rewrite(chosen, {}, io.StringIO(yaml.safe_dump_all(manifests)), out)
    return out.getvalue()


def told(*manifests: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what is said of each pod."""
    said = json.loads(call(*manifests))
    found: list[dict[str, Any]] = said if isinstance(said, list) else [said]
    return found


def of(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "lab.example/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "path", "container", "runs"),
    [
        pytest.param(
            {
                "image": {"repository": "nvcr.io/nim/meta/llama", "tag": "1.12.0"},
                "resources": ONE_GPU,
            },
            *("spec", "main", "nim"),
            id="NIMService",
        ),
        pytest.param(
            {
                "services": [
                    {
                        "name": "guard",
                        "spec": {
                            "image": {"repository": "nvcr.io/nim/m", "tag": "1.0.0"},
                            "resources": ONE_GPU,
                        },
                    }
                ]
            },
            *("spec.services[0].spec", "main", "nim"),
            id="NIMPipeline",
        ),
        pytest.param(
            {"engineConfig": {"runner": {"name": "engine", **SERVE}}},
            *("spec.engineConfig.runner", "engine", "vllm"),
            id="ClusterServingRuntime",
        ),
        pytest.param(
            {"templates": [{"name": "t", "container": SERVE}]},
            *("spec.templates[0].container", "container", "vllm"),
            id="Workflow",
        ),
        pytest.param(
            {
                "templates": [
                    {
                        "name": "t",
                        "script": {
                            "image": "python:3",
                            "command": ["python"],
                            "source": "import vllm",
                            "resources": ONE_GPU,
                        },
                    }
                ]
            },
            *("spec.templates[0].script", "script", None),
            id="Workflow with a script",
        ),
        pytest.param(
            {
                "deploymentConfig": {
                    "image": {"registry": "docker.io", "name": "lmcache/vllm-openai:v0.3.6"},
                    "resources": {"cpu": "8", "gpu": "1", "gpuType": "nvidia.com/gpu"},
                }
            },
            *("spec.deploymentConfig", "deploymentConfig", "vllm"),
            id="VLLMRuntime",
        ),
        pytest.param(
            {"backend": {"workers": [{"image": "vllm/vllm-openai:v0.13.0", "resources": ONE_GPU}]}},
            *("spec.backend.workers[0]", "workers", "vllm"),
            id="ModelBooster",
        ),
        pytest.param(
            {
                "services": {
                    "Worker": {
                        "resources": {"limits": {"gpu": "1"}},
                        "extraPodSpec": {
                            "mainContainer": {
                                "image": "lab/runtime:1",
                                "command": ["python3", "-m", "dynamo.vllm"],
                                "args": ["--model", "m"],
                            }
                        },
                    }
                }
            },
            *("spec.services.Worker.extraPodSpec.mainContainer", "mainContainer", "vllm"),
            id="DynamoGraphDeployment",
        ),
        pytest.param(
            {
                "values": {
                    "controllers": {
                        "main": {
                            "containers": {
                                "app": {
                                    "image": {"repository": "ollama/ollama", "tag": "0.12.0"},
                                    "env": {"OLLAMA_HOST": "0.0.0.0", "KEEP": 5},
                                    "resources": ONE_GPU,
                                }
                            }
                        }
                    }
                }
            },
            *("spec.values.controllers.main.containers.app", "app", "ollama"),
            id="HelmRelease",
        ),
        pytest.param(
            {
                "trainer": {
                    "image": "lab/train:1",
                    "command": ["torchrun", "t.py"],
                    "resourcesPerNode": ONE_GPU,
                }
            },
            *("spec.trainer", "trainer", None),
            id="TrainJob",
        ),
    ],
)
def test_a_container_under_any_key_is_one(
    spec: dict[str, Any], path: str, container: str, runs: str | None
) -> None:
    """What has an image and asks for a GPU, or is started, is told about like a pod's container."""
    (said,) = told(of("Whatever", spec))

    assert path == said["path"]
    assert "6144Mi" == said["plan"]["limit"]
    assert runs == said["containers"][container]["runs"]
    assert "kubectl get pods -n default" in said["warnings"][-1]


def test_annotations_and_helpers_around_a_container_count() -> None:
    """What stands around a lone container belongs to its pod: annotations and sidecars."""
    place = {
        "metadata": {"annotations": {"gpufence.io/memory": "2Gi"}},
        "container": SERVE,
        "sidecars": [{"name": "helper", "image": "lab/helper:1", "resources": ONE_GPU}],
    }
    (said,) = told(of("Workflow", {"templates": [place]}))

    assert ["container", "helper"] == list(said["plan"]["containers"])
    assert "2048Mi" == said["plan"]["limit"]


def test_variables_beside_a_container_are_its_own() -> None:
    """An operator's `envs` count as the container's, and those of the container win."""
    worker = {
        "envs": [{"name": "MORE", "value": "--gpu-memory-utilization 0.2"}],
        "main": {
            "image": "lab/serving:1",
            "command": ["vllm", "serve", "m"],
            "args": ["$(MORE)"],
            "env": [{"name": "MORE", "value": "--gpu-memory-utilization=0.1"}],
            "resources": ONE_GPU,
        },
    }
    (said,) = told(of("Whatever", {"worker": worker}))

    assert "--gpu-memory-utilization=0.1" == said["environment"]["main"]["MORE"]


def test_a_lone_container_is_printed_as_it_was() -> None:
    """As YAML an operator's kind stays as it is, since nothing tells whether it hands all on."""
    before = of("ClusterServingRuntime", {"engineConfig": {"runner": SERVE}})

    assert before == yaml.safe_load(call(before, form="yaml"))


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            {"image": "spark:4", "executor": {"gpu": {"name": "nvidia.com/gpu", "quantity": 1}}},
            id="SparkApplication",
        ),
        pytest.param({"engine": "VLLM", "resourceProfile": "nvidia-gpu-l4:1"}, id="Model"),
        pytest.param({"trainer": {"resourcesPerNode": ONE_GPU}}, id="TrainJob"),
        pytest.param({"sparkConf": {"spark.executor.resource.gpu.amount": "1"}}, id="sparkConf"),
    ],
)
def test_a_kind_without_containers_says_where_its_pods_are(spec: dict[str, Any]) -> None:
    """An object that names a GPU and shows no container is named, with the call that shows more."""
    pod = {"kind": "Pod", "spec": {"containers": [{"name": "main", "resources": ONE_GPU}]}}
    silent = of("Whatever", spec)
    pipe = "kubectl get pods -n default -l <a label of theirs> -o yaml | gpufence-webhook rewrite"

    with pytest.raises(GpufenceError) as alone:
        call(silent)

    assert pipe in str(alone.value)
    assert pipe in call(pod, silent, form="explain")
    assert pipe in told(pod, silent)[1]["warnings"][0]


@pytest.mark.parametrize(
    "manifest",
    [
        {"apiVersion": "kueue.x-k8s.io/v1beta1", "spec": {"resources": ["nvidia.com/gpu"]}},
        {"apiVersion": "karpenter.sh/v1", "spec": {"limits": {"nvidia.com/gpu": 8}}},
        {"apiVersion": "v1", "spec": {"hard": {"requests.nvidia.com/gpu": 4}}},
        {"apiVersion": "lab.example/v1", "spec": {"size": 3}},
    ],
    ids=["queue", "nodes", "core", "no GPU"],
)
def test_what_has_no_pods_is_passed_over(manifest: dict[str, Any]) -> None:
    """Queues, kinds of nodes and whatever names no GPU are not named."""
    pod = {"kind": "Pod", "spec": {"containers": [{"name": "main", "resources": ONE_GPU}]}}

    assert ["Pod"] == [item["kind"] for item in told(pod, {"kind": "Whatever", **manifest})]


def test_a_model_of_kserve_is_told_about_once() -> None:
    """A model with an image of its own is the runtime's container, and no other beside it."""
    model = {"modelFormat": {"name": "vLLM"}, "image": "lab/vllm:1", "resources": ONE_GPU}
    said = told(of("InferenceService", {"predictor": {"model": model}}))

    assert ["spec.predictor.model"] == [item["path"] for item in said]


@pytest.mark.parametrize("main", [{}, {"image": "lab/own:1"}], ids=["all", "with an image"])
def test_what_kserve_starts_a_language_model_with_is_known(main: dict[str, Any]) -> None:
    """The main container of an LLMInferenceService starts vLLM where it says nothing itself."""
    helper = {"name": "helper", "image": "busybox"}
    spec = {"containers": [helper, {"name": "main", **main, "resources": ONE_GPU}]}
    before = of("LLMInferenceService", {"template": spec})
    (said,) = told(before)
    after = yaml.safe_load(call(before, form="yaml"))["spec"]["template"]

    assert "vllm" == said["containers"]["main"]["runs"]
    assert "PYTORCH_ALLOC_CONF" not in said["environment"]["main"]
    assert {"command", "args"}.isdisjoint(after["containers"][1])
    assert main.get("image") == after["containers"][1].get("image")
