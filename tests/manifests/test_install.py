"""What is applied first: the whole, certificates and hooks."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from agent.program import SETTINGS as AGENT_SETTINGS
from certs.overlap import PORT_NAME
from certs.settings import CertsSettings
from controller.program import SETTINGS as CONTROLLER_SETTINGS
from gpufence import names
from gpufence.mode import Mode
from gpufence.settings import rows
from tests.support.tree import found, pod_spec
from tools import ROOT, conditions
from tools.manifests import (
    BASE,
    COMPONENTS,
    DEPLOY,
    REGISTRY,
    components,
    files,
    kustomization,
    objects,
)
from webhook.server import BINDING_PATH, POD_PATHS
from webhook.settings import ServerSettings, WebhookSettings

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
    """The namespace has the code's name, and the level that allows hostPID without warnings."""
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
    """Each runs without privileges, capabilities, a writable root and Services' variables."""
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


SERVERS = {
    "webhook": ("Deployment", BASE),
    "agent": ("DaemonSet", BASE),
    "controller": ("Deployment", COMPONENTS / "idle-release"),
}
ROW = re.compile(r"^\| ([^|]+) \| ([a-z, ]+) \| `(https|status)` (\d+)", re.MULTILINE)
OURS, HOSTED, OF_ITS_NODE = {"controller"}, "API server (pod proxy)", "kubelet of its node"
NAMESPACES = {"Prometheus": "monitoring", "KEDA": "keda", HOSTED: "kube-system"}


def talking(name: str) -> Iterator[tuple[str, str, int]]:
    """Read who calls a program on which port, as docs/network.md has it."""
    for source, to, port, number in ROW.findall((ROOT / "docs" / "network.md").read_text("utf-8")):
        if name in to.split(", "):
            yield source, port, int(number)


@pytest.mark.parametrize("name", list(SERVERS))
def test_a_server_is_called_as_the_page_says(name: str) -> None:
    """Each port of the container is in the table, and open to who is named there, no other."""
    kind, folder = SERVERS[name]
    (container,) = pod_spec(found(kind, f"gpufence-{name}", folder))["containers"]
    spec = found("NetworkPolicy", f"gpufence-{name}", folder)["spec"]
    opened = {rule["ports"][0]["port"]: rule.get("from") for rule in spec["ingress"]}
    sources = {source for source, port, _ in talking(name) if port == "status"}
    own, others = opened["status"]
    (expression,) = others["namespaceSelector"]["matchExpressions"]

    assert {(port["name"], port["containerPort"]) for port in container["ports"]} == {
        (port, number) for _, port, number in talking(name)
    }
    assert opened.keys() == {port["name"] for port in container["ports"]}
    assert opened.get("https") is None
    assert {"podSelector": {}} == own
    assert sources - OURS - {OF_ITS_NODE} <= NAMESPACES.keys()
    assert sorted(NAMESPACES.values()) == sorted(expression["values"])
    assert {"app.kubernetes.io/name": f"gpufence-{name}"} == spec["podSelector"]["matchLabels"]


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


PROGRAM, INSTALL = "gpufence-certs", names.CERTS_INSTALL


def test_both_secrets_come_without_data() -> None:
    """The Secrets have the code's names and say nothing of data, so that applying them keeps it."""
    secrets = [item for item in objects(BASE / "certs") if item["kind"] == "Secret"]

    assert {names.TLS_SECRET, names.CA_SECRET} == {item["metadata"]["name"] for item in secrets}
    assert not [item for item in secrets if {"data", "stringData"} & item.keys()]


def test_nobody_mounts_the_ca() -> None:
    """No workload of either folder names the CA's Secret."""
    workloads = [
        found("Job", INSTALL),
        found("CronJob", PROGRAM),
        found("Deployment", names.WEBHOOK_SERVICE),
    ]

    assert not [item for item in workloads if names.CA_SECRET in str(item)]


def test_the_daily_run_never_runs_twice() -> None:
    """The CronJob forbids a second run beside the first."""
    assert "Forbid" == found("CronJob", PROGRAM)["spec"]["concurrencyPolicy"]


def test_both_workloads_differ_in_account_and_command() -> None:
    """What runs at install is what runs daily, but for what each of them may and does."""
    specs = [pod_spec(found(*key)) for key in (("CronJob", PROGRAM), ("Job", INSTALL))]
    daily, install = (spec["containers"][0] for spec in specs)

    assert [PROGRAM, INSTALL] == [spec.pop("serviceAccountName") for spec in specs]
    assert [[PROGRAM, "renew"], [PROGRAM, "ensure"]] == [
        container.pop("command") for container in (daily, install)
    ]
    assert ["--remove-install-account"] == install.pop("args")
    assert specs[0] == specs[1]
    assert ["GPUFENCE_NAMESPACE"] == [entry["name"] for entry in daily["env"]]


def test_every_object_is_touched_by_name() -> None:
    """Secrets, webhook configuration and what an install brings: each right names its objects."""
    keys = (("Role", PROGRAM), ("ClusterRole", PROGRAM), ("ClusterRole", INSTALL))
    named = {
        resource: set(rule.get("resourceNames", ()))
        for key in keys
        for rule in found(*key)["rules"]
        for resource in rule["resources"]
    }
    brought = ("jobs", "serviceaccounts", "clusterroles", "clusterrolebindings")

    assert {
        "secrets": {names.TLS_SECRET, names.CA_SECRET},
        "mutatingwebhookconfigurations": {names.WEBHOOK_CONFIGURATION},
        "endpointslices": set(),
        **{resource: {INSTALL} for resource in brought},
    } == named


def test_the_service_has_the_port_that_is_dialled() -> None:
    """The port by which replicas are asked is one of the webhook's Service."""
    ports = found("Service", names.WEBHOOK_SERVICE)["spec"]["ports"]

    assert PORT_NAME in {port["name"] for port in ports}


BINDINGS = "bindings.gpufence.io"


def hooks() -> dict[str, dict[str, Any]]:
    item = found("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION)
    return {hook["name"]: hook for hook in item["webhooks"]}


def pod_hook(mode: Mode) -> dict[str, Any]:
    return hooks()[f"{mode}.pods.gpufence.io"]


def selector(hook: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    expressions = hook["namespaceSelector"]["matchExpressions"]
    return {(each["key"], each["operator"]): each["values"] for each in expressions}


def test_there_is_a_hook_for_each_mode_and_one_for_bindings() -> None:
    """Nothing is missing and nothing is left over."""
    assert [*(f"{mode}.pods.gpufence.io" for mode in Mode), BINDINGS] == list(hooks())


@pytest.mark.parametrize("mode", Mode, ids=str)
def test_each_mode_is_called_at_its_own_path(mode: Mode) -> None:
    """The API server tells the mode by the path it calls."""
    service = pod_hook(mode)["clientConfig"]["service"]

    assert POD_PATHS[mode] == service["path"]
    assert [str(mode)] == selector(pod_hook(mode))[names.MODE, "In"]


@pytest.mark.parametrize("mode", Mode, ids=str)
def test_match_conditions_are_those_of_the_code(mode: Mode) -> None:
    """The text that decides who is called is the generated one, to the letter."""
    written = {each["name"]: each["expression"] for each in pod_hook(mode)["matchConditions"]}

    assert {"uses-gpu": conditions.uses_gpu(), "no-mirror": conditions.no_mirror()} == written


def test_bindings_have_no_conditions_and_the_upper_modes() -> None:
    """A Binding shows nothing of its pod, so only the namespace decides."""
    hook = hooks()[BINDINGS]

    assert BINDING_PATH == hook["clientConfig"]["service"]["path"]
    assert "matchConditions" not in hook
    assert ["cap", "evict"] == selector(hook)[names.MODE, "In"]
    assert {"pods/binding", "bindings"} == set(hook["rules"][0]["resources"])


@pytest.mark.parametrize("name", hooks())
def test_no_hook_can_stop_a_pod_from_being_made(name: str) -> None:
    """A dead webhook, and the namespaces without which a cluster cannot heal, are left in peace."""
    hook = hooks()[name]

    assert "Ignore" == hook["failurePolicy"]
    assert "None" == hook["sideEffects"]
    assert ["v1"] == hook["admissionReviewVersions"]
    assert ["CREATE"] == hook["rules"][0]["operations"]
    assert [*names.EXEMPT_NAMESPACES] == selector(hook)[names.NAMESPACE_NAME, "NotIn"]


def test_timeouts_are_those_of_the_design() -> None:
    """Three seconds for a pod, one for a binding, and our own deadline ends before either."""
    timeouts = {name: hook["timeoutSeconds"] for name, hook in hooks().items()}

    assert 1 == timeouts.pop(BINDINGS)
    assert {3} == set(timeouts.values())
    assert ServerSettings().api_deadline_seconds < 1


@pytest.mark.parametrize("mode", Mode, ids=str)
def test_pods_are_looked_at_again_when_others_change_them(mode: Mode) -> None:
    """A container that another webhook adds after us is not missed."""
    assert "IfNeeded" == pod_hook(mode)["reinvocationPolicy"]
