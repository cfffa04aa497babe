"""Components and examples can be added to the whole."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.cluster.settings import COMPONENT
from certs.issue import CA_DAYS, CA_NAME, LEAF_DAYS
from certs.material import ServiceNames
from gpufence import names
from gpufence.names import CONTROLLER, SYSTEM_NAMESPACE
from tests.support.tree import found, is_account, pod_spec
from tools import ROOT
from tools.manifests import BASE, COMPONENTS, objects

CERT_MANAGER = (COMPONENTS / "cert-manager" / "kustomization.yaml").read_text(encoding="utf-8")


def certificate(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = found("Certificate", name, COMPONENTS / "cert-manager")["spec"]
    return spec


def test_cert_manager_issues_the_names_that_our_own_program_would() -> None:
    """The leaf has every name of the Service, lives as long, and is what the webhook mounts."""
    leaf = certificate(names.WEBHOOK_SERVICE)

    assert (
        list(ServiceNames(names.WEBHOOK_SERVICE, names.SYSTEM_NAMESPACE).dns()) == leaf["dnsNames"]
    )
    assert f"secretName: {leaf['secretName']}\n" in CERT_MANAGER
    assert f"{LEAF_DAYS * 24}h" == leaf["duration"]
    assert f"{LEAF_DAYS * 24 // 3}h" == leaf["renewBefore"]


def test_cert_managers_ca_is_ours() -> None:
    """The CA is mounted nowhere, lives as long, and has the name by which our own is known."""
    authority = certificate(names.CA_SECRET)

    assert authority["secretName"] not in CERT_MANAGER
    assert (CA_NAME, f"{CA_DAYS * 24}h") == (authority["commonName"], authority["duration"])
    assert authority["isCA"] is True


def test_kill_switches_are_left_to_people() -> None:
    """No manifest has the keys that people set by hand, so that no upgrade resets them."""
    said = re.compile(
        rf"^ +(path: /data/)?({names.POLICY_MAX_MODE}|{names.POLICY_MAX_IDLE})(:|$)", re.MULTILINE
    )
    pages = [path for folder in (BASE, COMPONENTS) for path in folder.rglob("*.yaml")]

    assert [] == [path for path in pages if said.search(path.read_text(encoding="utf-8"))]


def test_no_file_deletes_two_objects() -> None:
    """One patch that deletes more than one ends kubectl 1.32 and older in a panic."""
    texts = [path.read_text(encoding="utf-8") for path in COMPONENTS.rglob("*.yaml")]

    assert [] == [text for text in texts if text.count("$patch: delete") > 1]


def test_cert_manager_replaces_all_of_our_own_program() -> None:
    """Whatever the base brings for the certificates is left out."""
    files = sorted((COMPONENTS / "cert-manager" / "without-ours").iterdir())
    texts = [path.read_text(encoding="utf-8") for path in files]
    dropped = {(each["kind"], each["metadata"]["name"]) for each in map(yaml.safe_load, texts)}

    assert dropped == {(item["kind"], item["metadata"]["name"]) for item in objects(BASE / "certs")}


def test_cert_manager_injects_into_our_configuration() -> None:
    """The annotation names the leaf's Certificate."""
    annotation = f"inject-ca-from: {names.SYSTEM_NAMESPACE}/{names.WEBHOOK_SERVICE}\n"

    assert annotation in CERT_MANAGER
    assert f"name: {names.WEBHOOK_CONFIGURATION}\n" in CERT_MANAGER


@pytest.mark.parametrize("kind", ["pods", "events", "conditions"])
def test_policies_of_older_clusters_are_about_the_agents_account(kind: str) -> None:
    """The policies that tie an agent to its node apply to the account it runs under, and deny."""
    folder, name = COMPONENTS / "kubernetes-1.30", f"gpufence-agent-{kind}"
    spec = found("ValidatingAdmissionPolicy", name, folder)["spec"]
    binding = found("ValidatingAdmissionPolicyBinding", name, folder)["spec"]

    assert is_account(names.AGENT) == spec["matchConditions"][0]["expression"]
    assert "Fail" == spec["failurePolicy"]
    assert {"policyName": name, "validationActions": ["Deny"]} == binding


def test_agents_of_older_clusters_write_their_own_conditions_only() -> None:
    """The policy lets through the two that the agent writes, and compares all others."""
    spec = found(
        "ValidatingAdmissionPolicy", "gpufence-agent-conditions", COMPONENTS / "kubernetes-1.30"
    )["spec"]
    left_out = f"!(c.type in ['{names.GPU_IDLE}', '{names.GPU_MEMORY}'])"
    compared = {item["name"]: " ".join(item["expression"].split()) for item in spec["variables"]}

    assert all(left_out in compared[name] for name in ("before", "after"))


def test_the_agents_account_is_held_to_its_cards_everywhere() -> None:
    """The one thing that an agent may change on its Node is what the code writes there."""
    spec = found("ValidatingAdmissionPolicy", "gpufence-agent-cards", BASE / "agent")["spec"]

    assert is_account(names.AGENT) == spec["matchConditions"][0]["expression"]
    assert f"k == '{names.CARDS}'" in str(spec["validations"])
    assert COMPONENT == "gpufence-agent"


def driver_limits(name: str) -> Any:
    return yaml.safe_load((COMPONENTS / "driver-limits" / name).read_text(encoding="utf-8"))


def test_an_agent_may_take_one_label_away_where_the_driver_limits() -> None:
    """Component driver-limits replaces what the base says of labels, and that alone."""
    spec = found("ValidatingAdmissionPolicy", "gpufence-agent-cards", BASE / "agent")["spec"]
    (patch,) = driver_limits("policy.yaml")
    replaced = spec["validations"][int(patch["path"].rpartition("/")[2])]

    assert "variables.labels == variables.labelled" == replaced["expression"]
    assert f"|| k == '{names.DRIVER_LIMITS}')" in patch["value"]["expression"]


def test_a_canary_lets_the_agent_set_that_label_and_say_why() -> None:
    """Component driver-limits-canary replaces what the others say of labels and annotations."""
    text = (COMPONENTS / "driver-limits-canary" / "policy.yaml").read_text(encoding="utf-8")
    notes, labels = (patch["value"]["expression"] for patch in yaml.safe_load(text))

    assert f"k in ['{names.CARDS}', '{names.DRIVER_CANARY}']" in notes
    assert f"k == '{names.DRIVER_LIMITS}' && !(k in variables.labelled)" in labels


def test_the_canary_asks_for_a_limit_and_for_no_gpu() -> None:
    """Both variables are literals, it sees every card, and it has no token."""
    spec = pod_spec(found("DaemonSet", names.CANARY, COMPONENTS / "driver-limits-canary"))
    (container,) = spec["containers"]
    env = {entry["name"]: entry["value"] for entry in container["env"]}

    assert ("0", "64") == (env[names.DRIVER_REQUEST], env[names.DRIVER_LIMIT])
    assert "all" == env[names.VISIBLE_DEVICES]
    assert {"memory"} == set(container["resources"]["limits"])
    assert spec["automountServiceAccountToken"] is False


def test_the_agent_sees_the_hosts_cgroups_and_writes_none() -> None:
    """Component driver-limits mounts one folder of the host, read-only, where NVML needs it."""
    spec = pod_spec(driver_limits("agent.yaml"))
    (container,), (volume,) = spec["containers"], spec["volumes"]

    assert {"path": "/sys/fs/cgroup", "type": "Directory"} == volume["hostPath"]
    assert [{"name": volume["name"], "mountPath": "/sys/fs/cgroup", "readOnly": True}] == container[
        "volumeMounts"
    ]


def test_the_guard_knows_the_prefix_and_its_role() -> None:
    """Every key of ours on a namespace is guarded, and the role grants what the policy asks for."""
    folder = COMPONENTS / "guard-namespaces"
    spec = found("ValidatingAdmissionPolicy", "gpufence-guard-namespaces", folder)["spec"]
    (rule,) = found("ClusterRole", "gpufence-modes", folder)["rules"]
    (group,), (resource,), (verb,) = rule["apiGroups"], rule["resources"], rule["verbs"]

    assert f"k.startsWith('{names.PREFIX}')" in str(spec["variables"])
    assert (
        f"authorizer.group('{group}').resource('{resource}').check('{verb}')"
        in (spec["validations"][0]["expression"])
    )


@pytest.mark.parametrize(
    ("kind", "name", "folder"),
    [
        ("DaemonSet", "gpufence-agent", BASE),
        ("Deployment", "gpufence-webhook", BASE),
        ("Deployment", "gpufence-controller", COMPONENTS / "idle-release"),
    ],
)
def test_monitors_scrape_a_port_that_exists(kind: str, name: str, folder: Path) -> None:
    """A monitor selects the pods of one program and asks a port that they have."""
    workload = found(kind, name, folder)
    monitor = found("PodMonitor", name, COMPONENTS / "prometheus-operator")["spec"]
    (container,) = pod_spec(workload)["containers"]
    (endpoint,) = monitor["podMetricsEndpoints"]

    assert workload["spec"]["selector"] == monitor["selector"]
    assert endpoint["port"] in {port["name"] for port in container["ports"]}


def test_simulated_nodes_are_those_of_the_code() -> None:
    """The simulated agent runs on labelled nodes, and reads the state of the mounted folder."""
    text = (COMPONENTS / "simulated" / "agent.yaml").read_text(encoding="utf-8")
    spec = pod_spec(yaml.safe_load(text))
    (container,) = spec["containers"]
    environment = {entry["name"]: entry["value"] for entry in container["env"]}
    (mount,) = container["volumeMounts"]

    assert {names.SIMULATED: "true"} == spec["nodeSelector"]
    assert mount["mountPath"] == environment["LD_LIBRARY_PATH"]
    assert f"{mount['mountPath']}/state" == environment[names.SIMULATOR_STATE]


FOLDER = ROOT / "deploy" / "examples" / "keda"
OBJECTS: dict[str, Any] = {
    f"{item['kind']} {item['metadata']['name']}": item
    for item in yaml.safe_load_all((FOLDER / "scaled-object.yaml").read_text())
}
BACKLOG, BUSY = OBJECTS["ScaledObject quality"]["spec"]["triggers"]


def test_the_controller_is_asked_where_its_service_is() -> None:
    """Host, port and path are the controller's."""
    service = found("Service", CONTROLLER, COMPONENTS / "idle-release")
    host = f"{CONTROLLER}.{SYSTEM_NAMESPACE}:{service['spec']['ports'][0]['port']}"

    assert f"http://{host}/v1/activity/vision/deployments/quality" == BUSY["metadata"]["url"]


def test_its_token_allows_what_the_controller_asks_for() -> None:
    """The account may get the scale of that owner, and nothing else."""
    (rule,) = OBJECTS["Role gpufence-activity-quality"]["rules"]

    assert (["apps"], ["deployments/scale"], ["quality"], ["get"]) == (
        rule["apiGroups"],
        rule["resources"],
        rule["resourceNames"],
        rule["verbs"],
    )


def test_every_trigger_has_where_its_secret_is() -> None:
    """Each TriggerAuthentication that is named is there."""
    named = {trigger["authenticationRef"]["name"] for trigger in (BACKLOG, BUSY)}

    assert named == {
        item["metadata"]["name"]
        for item in OBJECTS.values()
        if item["kind"] == "TriggerAuthentication"
    }


def test_prometheus_measures_by_a_metric_of_the_agents() -> None:
    """The other trigger takes the first one's place, and goes by what agents count."""
    trigger = yaml.safe_load((FOLDER / "prometheus-trigger.yaml").read_text())

    assert (BACKLOG["name"], BACKLOG["metricType"]) == (trigger["name"], trigger["metricType"])
    assert "rate(gpufence_pod_gpu_busy_seconds_total{" in trigger["metadata"]["query"]


def test_the_check_sees_what_the_cdi_annotation_asks_for() -> None:
    """Component driver-cdi hands the pod's own annotation into the container under our name."""
    patch = yaml.safe_load((COMPONENTS / "driver-cdi" / "agent.yaml").read_text(encoding="utf-8"))
    template = patch["spec"]["template"]
    (key,) = template["metadata"]["annotations"]
    (entry,) = template["spec"]["containers"][0]["env"]

    assert key.startswith("cdi.k8s.io/")
    assert names.CDI_ANNOTATION == entry["name"]
    assert f"metadata.annotations['{key}']" == entry["valueFrom"]["fieldRef"]["fieldPath"]
