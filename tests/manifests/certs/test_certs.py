"""
The manifests keep to the names of the code, and grant no more than it uses.
"""

from __future__ import annotations

from typing import Any

import pytest

from certs.dial import PORT_NAME
from gpufence import names
from tests.support import manifests
from tests.support.manifests import BASE, found, objects

PROGRAM = "gpufence-certs"


def pod_spec(kind: str, name: str) -> dict[str, Any]:
    return manifests.pod_spec(found(kind, name))


def test_both_secrets_come_without_data() -> None:
    """
    The Secrets have the code's names and say nothing of data, so that applying them keeps it.
    """
    secrets = [item for item in objects(BASE / "certs") if item["kind"] == "Secret"]

    assert {names.TLS_SECRET, names.CA_SECRET} == {item["metadata"]["name"] for item in secrets}
    assert not [item for item in secrets if {"data", "stringData"} & item.keys()]


def test_the_account_touches_two_secrets_by_name() -> None:
    """
    The Role reads and patches the two Secrets and lists endpoint slices, and nothing more.
    """
    secrets, slices = found("Role", PROGRAM)["rules"]

    assert {names.TLS_SECRET, names.CA_SECRET} == set(secrets["resourceNames"])
    assert ["get", "patch"] == secrets["verbs"]
    assert (["endpointslices"], ["list"]) == (slices["resources"], slices["verbs"])


def test_the_account_touches_one_configuration_by_name() -> None:
    """
    The ClusterRole reads and patches the one webhook configuration.
    """
    (rule,) = found("ClusterRole", PROGRAM)["rules"]

    assert [names.WEBHOOK_CONFIGURATION] == rule["resourceNames"]
    assert ["mutatingwebhookconfigurations"] == rule["resources"]
    assert ["get", "patch"] == rule["verbs"]


def test_nobody_mounts_the_ca() -> None:
    """
    No workload of either folder names the CA's Secret.
    """
    workloads = [
        found("Job", "gpufence-certs-install"),
        found("CronJob", PROGRAM),
        found("Deployment", names.WEBHOOK_SERVICE),
    ]

    assert not [item for item in workloads if names.CA_SECRET in str(item)]


def test_the_webhook_mounts_what_is_renewed() -> None:
    """
    The webhook's volume is the Secret that the program fills.
    """
    spec = pod_spec("Deployment", names.WEBHOOK_SERVICE)

    assert names.TLS_SECRET in [
        volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume
    ]


def test_the_service_has_the_port_that_is_dialled() -> None:
    """
    The port by which replicas are asked is the one that the API server calls.
    """
    service = found("Service", names.WEBHOOK_SERVICE)
    configuration = found("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION)
    called = {hook["clientConfig"]["service"]["port"] for hook in configuration["webhooks"]}

    assert called == {
        port["port"] for port in service["spec"]["ports"] if port["name"] == PORT_NAME
    }


def test_the_daily_run_never_runs_twice() -> None:
    """
    The CronJob forbids a second run beside the first.
    """
    assert "Forbid" == found("CronJob", PROGRAM)["spec"]["concurrencyPolicy"]


@pytest.mark.parametrize(
    ("kind", "name"), [("Job", "gpufence-certs-install"), ("CronJob", PROGRAM)]
)
def test_the_workloads_run_ensure_without_privileges(kind: str, name: str) -> None:
    """
    Both run `ensure` under the program's account, as nobody, on a read-only root.
    """
    spec = pod_spec(kind, name)
    (container,) = spec["containers"]

    assert PROGRAM == spec["serviceAccountName"]
    assert [PROGRAM, "ensure"] == container["command"]
    assert ["GPUFENCE_NAMESPACE"] == [entry["name"] for entry in container["env"]]
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]


def test_both_workloads_are_the_same() -> None:
    """
    What runs at install is what runs daily.
    """
    assert pod_spec("Job", "gpufence-certs-install") == pod_spec("CronJob", PROGRAM)


def test_an_account_is_bound_to_each_role() -> None:
    """
    Both bindings name the account of the workloads.
    """
    bindings = [item for item in objects(BASE / "certs") if item["kind"].endswith("Binding")]
    subject = {
        "kind": "ServiceAccount",
        "name": PROGRAM,
        "namespace": names.SYSTEM_NAMESPACE,
    }

    assert [[subject]] * 2 == [item["subjects"] for item in bindings]
    assert [PROGRAM] * 2 == [item["roleRef"]["name"] for item in bindings]
