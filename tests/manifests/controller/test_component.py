"""Component idle-release says again what the code says."""

from typing import Any

from controller.settings import IDENTITY, STATUS_LISTEN, ControllerSettings
from gpufence import names
from tests.support.manifests import COMPONENTS, found, pod_spec

FOLDER = COMPONENTS / "idle-release"
ACCOUNT = f"system:serviceaccount:{names.SYSTEM_NAMESPACE}:{names.CONTROLLER}"


def container() -> dict[str, Any]:
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
    } == container()["securityContext"]


def test_the_lease_is_held_by_the_pods_name() -> None:
    """Two replicas must not take each other for themselves."""
    environment = {entry["name"]: entry for entry in container()["env"]}

    assert "metadata.name" == environment[IDENTITY]["valueFrom"]["fieldRef"]["fieldPath"]
    assert ControllerSettings().status_listen[1] == int(environment[STATUS_LISTEN]["value"][1:])


def test_service_and_network_policy_know_the_port() -> None:
    """The one that the container has."""
    (port,) = container()["ports"]
    (served,) = found("Service", names.CONTROLLER, FOLDER)["spec"]["ports"]
    (rule,) = found("NetworkPolicy", names.CONTROLLER, FOLDER)["spec"]["ingress"]

    assert [{"port": port["name"]}] == rule["ports"]
    assert (port["containerPort"], port["name"]) == (served["port"], served["targetPort"])


def test_probes_ask_pages_that_exist() -> None:
    """Whether it lives, and whether it has seen the cluster."""
    paths = [container()[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]

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

    assert f"request.userInfo.username == '{ACCOUNT}'" == spec["matchConditions"][0]["expression"]
    assert "Fail" == spec["failurePolicy"]
    assert {"policyName": names.CONTROLLER, "validationActions": ["Deny"]} == binding
    assert all(f"'{word}'" in text for word in (names.IDLE, names.RELEASED, names.STOPPED))
