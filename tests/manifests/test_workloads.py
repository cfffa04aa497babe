"""The workloads in deploy/: their pods match what the programs are."""

from typing import Any

import pytest

from agent.model.policy import EvictionPolicy
from agent.program import SETTINGS as AGENT_SETTINGS
from agent.settings import NODE
from agent.settings import STATUS_LISTEN as AGENT_LISTEN
from controller.settings import IDENTITY, STATUS_LISTEN, ControllerSettings
from gpufence import names
from gpufence.mode import MODES
from gpufence.settings import rows
from tests.support import tree
from tests.support.tree import found, is_account, pod_spec
from tools import conditions
from tools.manifests import COMPONENTS
from webhook.server import HEALTH_PATH, LAST_ANSWERS_SECONDS, READY_PATH
from webhook.settings import ServerSettings

NAME = "gpufence-agent"
SETTINGS = {row.variable for row in rows(AGENT_SETTINGS)}
HOME = "GPUFENCE_NAMESPACE"
OF_OTHERS = {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "LD_LIBRARY_PATH"}


def spec() -> dict[str, Any]:
    return pod_spec(found("DaemonSet", NAME))


def agent_container() -> dict[str, Any]:
    (only,) = spec()["containers"]
    assert isinstance(only, dict)
    return only


def agent_environment() -> dict[str, Any]:
    return {
        entry["name"]: entry.get("value", entry.get("valueFrom"))
        for entry in agent_container()["env"]
    }


def test_every_variable_is_a_setting_or_the_runtimes() -> None:
    """Nothing is set that nobody reads."""
    assert {NODE, AGENT_LISTEN, HOME, *OF_OTHERS} == set(agent_environment())
    assert set(agent_environment()) - OF_OTHERS <= SETTINGS


def test_it_knows_its_node_by_the_api_servers_word() -> None:
    """The node's name comes from the pod, as a token's does."""
    assert {"fieldRef": {"fieldPath": "spec.nodeName"}} == agent_environment()[NODE]


def test_it_sees_every_card_and_takes_none() -> None:
    """It asks the runtime for the management library alone, and the scheduler for no GPU."""
    limits = agent_container()["resources"]["limits"]

    assert ("all", "utility") == (
        agent_environment()[names.VISIBLE_DEVICES],
        agent_environment()["NVIDIA_DRIVER_CAPABILITIES"],
    )
    assert {"memory"} == set(limits)
    assert "nvidia" == spec()["runtimeClassName"]


def test_it_listens_where_it_is_asked() -> None:
    """Port, setting, probe and Service agree."""
    (port,) = agent_container()["ports"]
    (service,) = found("Service", NAME)["spec"]["ports"]
    probe = agent_container()["livenessProbe"]["httpGet"]

    assert ("status", 8080) == (port["name"], port["containerPort"])
    assert f":{port['containerPort']}" == agent_environment()[AGENT_LISTEN]
    assert ("/healthz", "status") == (probe["path"], probe["port"])
    assert (8080, "status") == (service["port"], service["targetPort"])


def test_it_sees_the_hosts_processes_and_nothing_else_of_the_host() -> None:
    """One thing, hostPID, is what the restricted standard would refuse."""
    assert spec()["hostPID"] is True
    assert not {"hostNetwork", "hostIPC", "volumes"} & spec().keys()


def test_it_runs_wherever_a_tenant_may() -> None:
    """Every taint is tolerated, and a full node makes room for it first."""
    assert [{"operator": "Exists"}] == spec()["tolerations"]
    assert "system-node-critical" == spec()["priorityClassName"]


@pytest.mark.parametrize("operand", ["device-plugin", "dra-driver", "client"])
def test_it_leaves_for_a_new_driver(operand: str) -> None:
    """The labels by which GPU operator clears a node keep the agent away."""
    affinity = spec()["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    paused = {
        "key": f"nvidia.com/gpu.deploy.{operand}",
        "operator": "NotIn",
        "values": ["paused-for-driver-upgrade", "paused-for-mig-change", "false"],
    }

    assert [] == [term for term in terms if paused not in term["matchExpressions"]]


def test_a_component_ties_it_to_the_label_of_the_operators_clients() -> None:
    """Where GPU operator labels nodes for clients of the driver, that label alone may decide."""
    text = (COMPONENTS / "operator-client" / "agent.yaml").read_text(encoding="utf-8")

    assert 'nodeSelector:\n        nvidia.com/gpu.deploy.client: "true"' in text
    assert "nodeSelector" not in spec()


def test_it_has_one_name() -> None:
    """The command, the account and every selector agree on one name."""
    daemonset = found("DaemonSet", NAME)
    labels = daemonset["spec"]["template"]["metadata"]["labels"]

    assert [NAME, "run"] == agent_container()["command"]
    assert NAME == spec()["serviceAccountName"] == found("ServiceAccount", NAME)["metadata"]["name"]
    assert daemonset["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert found("Service", NAME)["spec"]["selector"].items() <= labels.items()


def test_the_kill_switch_is_the_one_that_agents_read() -> None:
    """The ConfigMap is the code's, holds nothing back at first, and has no key that people set."""
    switch = found("ConfigMap", names.POLICY_CONFIGMAP)

    assert names.SYSTEM_NAMESPACE == switch["metadata"]["namespace"]
    assert {names.POLICY_DEFAULT_MAX_MODE: "evict"} == switch["data"]


def test_killing_takes_a_component() -> None:
    """By default the agent has neither the setting nor the capability to kill."""
    text = (COMPONENTS / "last-resort-kill" / "kustomization.yaml").read_text(encoding="utf-8")

    assert EvictionPolicy().last_resort_kill is False
    assert "GPUFENCE_LAST_RESORT_KILL" in SETTINGS
    assert 'name: GPUFENCE_LAST_RESORT_KILL, value: "true"' in text
    assert "value: [KILL]" in text


def webhook_spec() -> dict[str, Any]:
    return tree.pod_spec(found("Deployment", names.WEBHOOK_SERVICE))


def container() -> dict[str, Any]:
    (only,) = webhook_spec()["containers"]
    assert isinstance(only, dict)
    return only


def environment() -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container()["env"]}


def test_the_api_server_finds_the_service() -> None:
    """Name, namespace and port of the Service are what every hook calls."""
    service = found("Service", names.WEBHOOK_SERVICE)
    ports = {port["name"]: port for port in service["spec"]["ports"]}
    configuration = found("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION)
    called = [hook["clientConfig"]["service"] for hook in configuration["webhooks"]]

    assert {(names.SYSTEM_NAMESPACE, names.WEBHOOK_SERVICE, ports["https"]["port"])} == {
        (each["namespace"], each["name"], each["port"]) for each in called
    }
    assert "https" == ports["https"]["targetPort"]


def test_ports_are_those_the_program_listens_on() -> None:
    """Container ports and settings agree."""
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}

    assert {"https": 8443, "status": 8080} == ports
    assert {":8443", ":8080"} == {
        environment()["GPUFENCE_LISTEN"],
        environment()["GPUFENCE_STATUS_LISTEN"],
    }


def test_every_variable_is_a_setting() -> None:
    """The Deployment sets nothing that the program does not read."""
    assert set(environment()) <= {row.variable for row in rows(ServerSettings)}


def test_the_certificate_is_where_the_program_looks() -> None:
    """The Secret's folder is mounted whole at the folder of the settings."""
    (mount,) = container()["volumeMounts"]
    (volume,) = webhook_spec()["volumes"]

    assert environment()["GPUFENCE_TLS_DIR"] == mount["mountPath"]
    assert "subPath" not in mount
    assert names.TLS_SECRET == volume["secret"]["secretName"]


def test_probes_ask_the_paths_of_the_program() -> None:
    """Liveness and readiness are asked where they are answered."""
    assert [HEALTH_PATH, READY_PATH] == [
        container()[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")
    ]


def test_the_grace_covers_the_draining() -> None:
    """The kubelet does not kill what is still serving on."""
    needed = ServerSettings().drain_seconds + LAST_ANSWERS_SECONDS

    assert needed < webhook_spec()["terminationGracePeriodSeconds"]


def test_one_of_two_stays_through_a_drain() -> None:
    """There are two replicas, and a disruption takes one at a time."""
    deployment = found("Deployment", names.WEBHOOK_SERVICE)
    budget = found("PodDisruptionBudget", names.WEBHOOK_SERVICE)

    assert 2 == deployment["spec"]["replicas"]
    assert 1 == budget["spec"]["maxUnavailable"]
    assert deployment["spec"]["selector"] == budget["spec"]["selector"]


def test_the_mode_policy_knows_the_modes_of_the_code() -> None:
    """The policy's list is the code's list."""
    policy = found("ValidatingAdmissionPolicy", "gpufence-mode")["spec"]
    listed = ", ".join(f"'{mode}'" for mode in MODES)

    assert (
        f"object.metadata.labels['{names.MODE}'] in [{listed}]"
        == policy["validations"][0]["expression"]
    )


def test_the_freezing_policy_knows_the_keys_of_the_code() -> None:
    """Both prefixes and every dialect's annotations are frozen."""
    policy = found("ValidatingAdmissionPolicy", "gpufence-frozen-annotations")["spec"]
    variables = {each["name"]: each["expression"] for each in policy["variables"]}

    assert conditions.frozen() == variables["frozen"]
    assert conditions.given() == variables["given"]


@pytest.mark.parametrize(
    "policy",
    [
        *("gpufence-mode", "gpufence-idle", "gpufence-undeclared", "gpufence-frozen-annotations"),
        *("gpufence-bindings", "gpufence-pod-growth"),
    ],
)
def test_every_policy_is_bound(policy: str) -> None:
    """A policy without a binding does nothing."""
    binding = found("ValidatingAdmissionPolicyBinding", policy)["spec"]

    assert (policy, ["Deny"]) == (binding["policyName"], binding["validationActions"])


def test_the_freezing_policy_looks_at_changed_annotations_of_fenced_namespaces_only() -> None:
    """What walks through annotations runs for nobody else."""
    policy = found("ValidatingAdmissionPolicy", "gpufence-frozen-annotations")["spec"]
    binding = found("ValidatingAdmissionPolicyBinding", "gpufence-frozen-annotations")["spec"]
    (fenced,) = binding["matchResources"]["namespaceSelector"]["matchExpressions"]
    (condition,) = policy["matchConditions"]

    assert {"key": names.MODE, "operator": "Exists"} == fenced
    assert "object.metadata.?annotations.orValue({}) != oldObject" in condition["expression"]


def test_the_webhook_is_not_the_first_to_go() -> None:
    """On a full cluster it is made room for, and killed after the tenants."""
    spec = tree.pod_spec(found("Deployment", names.WEBHOOK_SERVICE))

    assert "system-cluster-critical" == spec["priorityClassName"]


FOLDER = COMPONENTS / "idle-release"


def controller_container() -> dict[str, Any]:
    (only,) = pod_spec(found("Deployment", names.CONTROLLER, FOLDER))["containers"]
    return dict(only)


def test_two_replicas_run_apart_as_nobody() -> None:
    """On different nodes where there are several, without a single capability."""
    deployment = found("Deployment", names.CONTROLLER, FOLDER)
    spec = pod_spec(deployment)
    (apart,) = spec["affinity"]["podAntiAffinity"].popitem()[1]

    assert 2 == deployment["spec"]["replicas"]
    assert "kubernetes.io/hostname" == apart["podAffinityTerm"]["topologyKey"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == controller_container()["securityContext"]


def test_the_lease_is_held_by_the_pods_name() -> None:
    """Two replicas must not take each other for themselves."""
    environment = {entry["name"]: entry for entry in controller_container()["env"]}

    assert "metadata.name" == environment[IDENTITY]["valueFrom"]["fieldRef"]["fieldPath"]
    assert ControllerSettings().status_listen[1] == int(environment[STATUS_LISTEN]["value"][1:])


def test_service_and_network_policy_know_the_port() -> None:
    """The one that the container has."""
    (port,) = controller_container()["ports"]
    (served,) = found("Service", names.CONTROLLER, FOLDER)["spec"]["ports"]
    (rule,) = found("NetworkPolicy", names.CONTROLLER, FOLDER)["spec"]["ingress"]

    assert [{"port": port["name"]}] == rule["ports"]
    assert (port["containerPort"], port["name"]) == (served["port"], served["targetPort"])


def test_probes_ask_pages_that_exist() -> None:
    """Whether it lives, and whether it has seen the cluster."""
    paths = [
        controller_container()[probe]["httpGet"]["path"]
        for probe in ("livenessProbe", "readinessProbe")
    ]

    assert ["/healthz", "/readyz"] == paths


def test_the_lease_is_there_before_anybody_wants_it() -> None:
    """Under the name that the code asks for, in our namespace."""
    metadata = found("Lease", names.CONTROLLER, FOLDER)["metadata"]

    assert names.SYSTEM_NAMESPACE == metadata["namespace"]


def test_the_policy_is_about_the_controllers_account_and_its_words() -> None:
    """It denies, and knows the annotations and the label as the code spells them."""
    spec = found("ValidatingAdmissionPolicy", names.CONTROLLER, FOLDER)["spec"]
    binding = found("ValidatingAdmissionPolicyBinding", names.CONTROLLER, FOLDER)["spec"]
    text = str(spec)

    assert is_account(names.CONTROLLER) == spec["matchConditions"][0]["expression"]
    assert "Fail" == spec["failurePolicy"]
    assert {"policyName": names.CONTROLLER, "validationActions": ["Deny"]} == binding
    assert all(f"'{word}'" in text for word in (names.IDLE, names.RELEASED, names.STOPPED))
