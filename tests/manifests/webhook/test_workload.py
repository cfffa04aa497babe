"""Deployment, Service, rights and policies fit the program and each other."""

from typing import Any

import pytest

from gpufence import conditions, names
from gpufence.mode import MODES
from gpufence.settings import rows
from tests.support import manifests
from tests.support.manifests import found
from webhook.server import HEALTH_PATH, LAST_ANSWERS_SECONDS, READY_PATH
from webhook.settings import ServerSettings


def pod_spec() -> dict[str, Any]:
    return manifests.pod_spec(found("Deployment", names.WEBHOOK_SERVICE))


def container() -> dict[str, Any]:
    (only,) = pod_spec()["containers"]
    assert isinstance(only, dict)
    return only


def environment() -> dict[str, str]:
    return {each["name"]: each["value"] for each in container()["env"]}


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
    (volume,) = pod_spec()["volumes"]

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

    assert needed < pod_spec()["terminationGracePeriodSeconds"]


def test_the_webhook_may_read_and_nothing_else() -> None:
    """Its rights are exactly what its watches and its questions take."""
    rules = found("ClusterRole", names.WEBHOOK_SERVICE)["rules"]
    rights = {resource: set(rule["verbs"]) for rule in rules for resource in rule["resources"]}

    assert {
        "nodes": {"get", "list", "watch"},
        "namespaces": {"get", "list", "watch"},
        "pods": {"get"},
        "resourceclaims": {"get"},
        "resourceclaimtemplates": {"get"},
        "deviceclasses": {"get"},
        "resourceslices": {"list", "watch"},
    } == rights
    assert pod_spec()["serviceAccountName"] == names.WEBHOOK_SERVICE


def test_the_pod_satisfies_the_restricted_standard() -> None:
    """It runs as nobody, without privileges, on a file system it cannot write."""
    security = container()["securityContext"]

    assert pod_spec()["securityContext"]["runAsNonRoot"] is True
    assert "RuntimeDefault" == pod_spec()["securityContext"]["seccompProfile"]["type"]
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == security


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
        *("gpufence-mode", "gpufence-undeclared", "gpufence-frozen-annotations"),
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
    spec = manifests.pod_spec(found("Deployment", names.WEBHOOK_SERVICE))

    assert "system-cluster-critical" == spec["priorityClassName"]
