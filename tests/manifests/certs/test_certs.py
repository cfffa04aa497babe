"""The manifests keep to the names of the code, and grant no more than it uses."""

from certs.dial import PORT_NAME
from gpufence import names
from tests.support.manifests import BASE, found, objects, pod_spec

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
