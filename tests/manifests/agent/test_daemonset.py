"""The DaemonSet fits the program, and asks of a node no more than the program needs."""

from typing import Any

import pytest

from agent.model.policy import EvictionPolicy
from agent.program import SETTINGS as AGENT_SETTINGS
from agent.settings import NODE, STATUS_LISTEN
from gpufence import names
from gpufence.settings import rows
from tests.support.manifests import COMPONENTS, found, pod_spec

NAME = "gpufence-agent"
SETTINGS = {row.variable for row in rows(AGENT_SETTINGS)}
OF_OTHERS = {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "LD_LIBRARY_PATH"}


def spec() -> dict[str, Any]:
    return pod_spec(found("DaemonSet", NAME))


def container() -> dict[str, Any]:
    (only,) = spec()["containers"]
    assert isinstance(only, dict)
    return only


def environment() -> dict[str, Any]:
    return {
        entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container()["env"]
    }


def test_every_variable_is_a_setting_or_the_runtimes() -> None:
    """Nothing is set that nobody reads."""
    assert {NODE, STATUS_LISTEN, *OF_OTHERS} == set(environment())
    assert set(environment()) - OF_OTHERS <= SETTINGS


def test_it_knows_its_node_by_the_api_servers_word() -> None:
    """The node's name comes from the pod, as a token's does."""
    assert {"fieldRef": {"fieldPath": "spec.nodeName"}} == environment()[NODE]


def test_it_sees_every_card_and_takes_none() -> None:
    """It asks the runtime for the management library alone, and the scheduler for no GPU."""
    limits = container()["resources"]["limits"]

    assert ("all", "utility") == (
        environment()[names.VISIBLE_DEVICES],
        environment()["NVIDIA_DRIVER_CAPABILITIES"],
    )
    assert {"memory"} == set(limits)
    assert "nvidia" == spec()["runtimeClassName"]


def test_it_listens_where_it_is_asked() -> None:
    """Port, setting, probe and Service agree."""
    (port,) = container()["ports"]
    (service,) = found("Service", NAME)["spec"]["ports"]
    probe = container()["livenessProbe"]["httpGet"]

    assert ("status", 8080) == (port["name"], port["containerPort"])
    assert f":{port['containerPort']}" == environment()[STATUS_LISTEN]
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
    """
    The labels by which GPU operator clears a node keep the agent away, whichever other brought it.
    """
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

    assert [NAME, "run"] == container()["command"]
    assert NAME == spec()["serviceAccountName"] == found("ServiceAccount", NAME)["metadata"]["name"]
    assert daemonset["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert found("Service", NAME)["spec"]["selector"].items() <= labels.items()


def test_the_kill_switch_is_the_one_that_agents_read() -> None:
    """
    Name, namespace and key of the ConfigMap are the code's, and nothing is held back at first. What
    people say has no key here: an upgrade would take it back.
    """
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
