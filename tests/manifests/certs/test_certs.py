"""The manifests keep to the names of the code, and grant no more than it uses."""

from certs.dial import PORT_NAME
from gpufence import names
from tests.support.manifests import BASE, found, objects, pod_spec

PROGRAM = "gpufence-certs"


def test_both_secrets_come_without_data() -> None:
    """The Secrets have the code's names and say nothing of data, so that applying them keeps it."""
    secrets = [item for item in objects(BASE / "certs") if item["kind"] == "Secret"]

    assert {names.TLS_SECRET, names.CA_SECRET} == {item["metadata"]["name"] for item in secrets}
    assert not [item for item in secrets if {"data", "stringData"} & item.keys()]


def test_nobody_mounts_the_ca() -> None:
    """No workload of either folder names the CA's Secret."""
    workloads = [
        found("Job", "gpufence-certs-install"),
        found("CronJob", PROGRAM),
        found("Deployment", names.WEBHOOK_SERVICE),
    ]

    assert not [item for item in workloads if names.CA_SECRET in str(item)]


def test_the_daily_run_never_runs_twice() -> None:
    """The CronJob forbids a second run beside the first."""
    assert "Forbid" == found("CronJob", PROGRAM)["spec"]["concurrencyPolicy"]


def test_both_workloads_are_the_same() -> None:
    """
    What runs at install is what runs daily, and it runs `ensure`.
    """
    spec = pod_spec(found("CronJob", PROGRAM))
    (container,) = spec["containers"]

    assert spec == pod_spec(found("Job", "gpufence-certs-install"))
    assert [PROGRAM, "ensure"] == container["command"]
    assert ["GPUFENCE_NAMESPACE"] == [entry["name"] for entry in container["env"]]


def test_the_account_touches_three_objects_by_name() -> None:
    """
    It may read and patch the two Secrets and the one webhook configuration, and no other.
    """
    secrets, _ = found("Role", PROGRAM)["rules"]
    (configuration,) = found("ClusterRole", PROGRAM)["rules"]

    assert {names.TLS_SECRET, names.CA_SECRET} == set(secrets["resourceNames"])
    assert [names.WEBHOOK_CONFIGURATION] == configuration["resourceNames"]


def test_the_service_has_the_port_that_is_dialled() -> None:
    """The port by which replicas are asked is one of the webhook's Service."""
    ports = found("Service", names.WEBHOOK_SERVICE)["spec"]["ports"]

    assert PORT_NAME in {port["name"] for port in ports}
