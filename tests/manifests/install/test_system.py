"""What all parts stand on: the namespace, who may call whom, versions and images."""

import re
import tomllib
from typing import Any

import pytest

from agent.program import SETTINGS as AGENT_SETTINGS
from certs.settings import CertsSettings
from controller.program import SETTINGS as CONTROLLER_SETTINGS
from gpufence import names
from gpufence.settings import rows
from tests.support.manifests import (
    BASE,
    COMPONENTS,
    DEPLOY,
    REGISTRY,
    ROOT,
    components,
    files,
    found,
    kustomization,
    objects,
    pod_spec,
)
from webhook.settings import WebhookSettings

PROGRAMS = ("webhook", "agent", "certs")
WORKLOADS = frozenset({"Deployment", "DaemonSet", "Job", "CronJob"})
OF_CLUSTERS = ("Cluster", "Mutating", "Namespace", "Validating")
LEVEL = "pod-security.kubernetes.io/"


def workloads() -> list[dict[str, Any]]:
    return [item for item in objects() if item["kind"] in WORKLOADS]


def policy(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = found("NetworkPolicy", name)["spec"]
    return spec


def texts() -> dict[str, str]:
    return {
        str(path.relative_to(DEPLOY)): path.read_text(encoding="utf-8")
        for path in sorted(DEPLOY.rglob("*.yaml"))
    }


def test_the_namespace_lets_the_agents_in() -> None:
    """
    The namespace has the code's name and, for hostPID, the level that allows it, without warnings.
    """
    labels = found("Namespace", names.SYSTEM_NAMESPACE)["metadata"]["labels"]

    assert {"enforce": "privileged", "audit": "privileged", "warn": "privileged"} == {
        key.removeprefix(LEVEL): value for key, value in labels.items() if key.startswith(LEVEL)
    }


def test_everything_with_a_namespace_is_in_ours() -> None:
    """No object of ours lives among the tenants', or wherever who applies it happens to be."""
    elsewhere = [
        item["metadata"]
        for item in objects()
        if not item["kind"].startswith(OF_CLUSTERS)
        and item["metadata"].get("namespace") != names.SYSTEM_NAMESPACE
    ]

    assert [] == elsewhere


@pytest.mark.parametrize("part", sorted(path.name for path in BASE.iterdir() if path.is_dir()))
def test_every_file_is_listed(part: str) -> None:
    """No manifest lies beside its kustomization unused: one that nobody lists is never applied."""
    listed = {BASE / part / "kustomization.yaml", *files(BASE / part)}

    assert listed == set((BASE / part).glob("*.yaml"))


def test_no_two_objects_are_one() -> None:
    """No object stands in two files."""
    keys = [(item["kind"], item["metadata"]["name"]) for item in objects()]

    assert sorted(set(keys)) == sorted(keys)


@pytest.mark.parametrize("program", PROGRAMS)
def test_images_have_the_projects_version(program: str) -> None:
    """What is deployed is what the wheel calls itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    images = {each["name"]: each for each in kustomization(BASE)["images"]}

    assert {
        "name": f"gpufence-{program}",
        "newName": f"{REGISTRY}/{program}",
        "newTag": project["version"],
    } == images[f"gpufence-{program}"]


@pytest.mark.parametrize("item", workloads(), ids=lambda item: item["metadata"]["name"])
def test_every_workload_runs_an_image_of_ours_by_its_own_program(item: dict[str, Any]) -> None:
    """Image, command and account are of one program, a script of the wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (container,) = pod_spec(item)["containers"]
    account = pod_spec(item)["serviceAccountName"].removesuffix("-install")

    assert container["image"] == container["command"][0] == account
    assert container["image"] in project["scripts"]


@pytest.mark.parametrize("item", workloads(), ids=lambda item: item["metadata"]["name"])
def test_no_workload_has_what_it_does_not_need(item: dict[str, Any]) -> None:
    """
    Each is nobody, without capabilities, on a root it cannot write, without Services' variables.
    """
    (container,) = pod_spec(item)["containers"]

    assert pod_spec(item)["enableServiceLinks"] is False
    assert {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }.items() <= pod_spec(item)["securityContext"].items()
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == container["securityContext"]


@pytest.mark.parametrize("name", ["gpufence-webhook", "gpufence-agent"])
def test_a_server_is_called_on_its_ports_alone(name: str) -> None:
    """The network policy names each port of the container and no other."""
    kind = "Deployment" if name == "gpufence-webhook" else "DaemonSet"
    (container,) = pod_spec(found(kind, name))["containers"]
    (rule,) = policy(name)["ingress"]

    assert {port["name"] for port in container["ports"]} == {port["port"] for port in rule["ports"]}
    assert {"app.kubernetes.io/name": name} == policy(name)["podSelector"]["matchLabels"]


def test_nobody_else_is_called() -> None:
    """Pods of no policy of their own take no connections."""
    assert {"podSelector": {}, "policyTypes": ["Ingress"]} == policy("gpufence-nobody-else")


@pytest.mark.parametrize("name", components())
def test_every_component_has_its_overlay(name: str) -> None:
    """An overlay is the base with one component, so that components can be combined."""
    assert {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../../base"],
        "components": [f"../../components/{name}"],
    } == kustomization(DEPLOY / "overlays" / name)


def test_no_overlay_is_left_over() -> None:
    """There is no overlay without a component."""
    assert components() == sorted(path.name for path in (DEPLOY / "overlays").iterdir())


@pytest.mark.parametrize("name", components())
def test_every_component_says_what_it_is_for(name: str) -> None:
    """The first line of a component is a sentence for the person who wonders whether to take it."""
    text = (COMPONENTS / name / "kustomization.yaml").read_text(encoding="utf-8")

    assert text.startswith("# ")


def test_every_name_of_ours_is_one_of_the_code() -> None:
    """No manifest spells a label or annotation that names.py does not know."""
    known = {value for value in vars(names).values() if isinstance(value, str)}
    hooks = re.compile(r"[a-z]+\.pods\.gpufence\.io|bindings\.gpufence\.io")
    said = {
        word
        for text in texts().values()
        for word in re.findall(r"[a-z.]*gpufence\.io/[a-z-]*", hooks.sub("", text))
    }

    assert set() == said - known


def test_every_setting_of_a_component_is_one_of_its_program() -> None:
    """What components set is what the programs read."""
    known = {names.SIMULATOR_STATE}
    for settings in (WebhookSettings, CertsSettings, AGENT_SETTINGS, CONTROLLER_SETTINGS):
        known |= {variable for row in rows(settings) for variable in row.variables}
    said = {word for text in texts().values() for word in re.findall(r"GPUFENCE_[A-Z_]+", text)}

    assert set() == said - known
