"""The example for KEDA says what the controller and the agents understand."""

from typing import Any

import yaml

from gpufence.names import CONTROLLER, SYSTEM_NAMESPACE
from tests.support.manifests import COMPONENTS, found
from tests.support.sources import ROOT

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
