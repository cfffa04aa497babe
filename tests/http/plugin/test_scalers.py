"""Which autoscalers the doctor finds, and what he knows of their targets."""

from typing import Any

import pytest

from gpufence import names
from kubectl_gpufence.arguments import parse
from kubectl_gpufence.ask import reading
from kubectl_gpufence.doctor.checks_scaling import check_scaling
from kubectl_gpufence.doctor.installation import Installation
from kubectl_gpufence.doctor.read_scaling import read_scalers
from tests.http.plugin.desk import ABSENT, DENIED, Desk, listed
from tests.http.plugin.test_scale import deployment
from tests.support.api_server import reply

OBJECTS = "/apis/keda.sh/v1alpha1/scaledobjects"
AUTOSCALERS = "/apis/autoscaling/v2/horizontalpodautoscalers"
TARGET = "/apis/apps/v1/namespaces/team-a/deployments/quality"


def scaler(namespace: str = "team-a", **metadata: Any) -> Any:
    spec = {"scaleTargetRef": {"name": "quality"}, "triggers": [], "cooldownPeriod": 30}
    return {"metadata": {"name": "quality", "namespace": namespace, **metadata}, "spec": spec}


def worker(ready: str = "2026-01-01T00:01:30Z", **status: Any) -> dict[str, Any]:
    """Build a pod of the target that was ready after a minute and a half."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": ready}
    return {
        "metadata": {"name": "q-1", "namespace": "team-a", "labels": {"app": "quality"}},
        "spec": {"nodeName": "gpu-1", "containers": []},
        "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": [condition], **status},
    }


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A fenced namespace with a Deployment that asks for a card."""
    group = {"name": "apps", "preferredVersion": {"groupVersion": "apps/v1"}}
    resource = {"name": "deployments", "kind": "Deployment", "namespaced": True}
    owner = deployment(**{names.GPUSHARE_MEMORY: "3"})
    owner["spec"]["selector"] = {"matchLabels": {"app": "quality"}}
    desk.get("/apis", reply({"groups": [group]}))
    desk.get("/apis/apps/v1", reply({"resources": [resource]}))
    desk.get(TARGET, reply(owner))
    desk.get("/api/v1/pods", listed(worker()))
    desk.get(OBJECTS, listed(scaler()))
    return desk


def said(desk: Desk) -> list[str]:
    with reading(parse(["doctor"]), desk.environ, lambda _: None) as reader:
        scalers = read_scalers(reader, {"team-a"})
    return [item.text for item in check_scaling(Installation(0.0, scalers=scalers))]


def test_what_is_known_of_a_target_is_compared(desk: Desk) -> None:
    """How long its pods took to start, and how many replicas there are or fit."""
    text = " ".join(said(desk))

    assert "ScaledObject team-a/quality of Deployment/quality" in text
    assert "a cooldownPeriod of 30s, and a worker takes 1m30s to start" in text
    assert "maxReplicaCount 100, and there are or fit 7" in text


@pytest.mark.parametrize(
    "pod",
    [
        worker(containerStatuses=[{"restartCount": 1}]),
        worker(ready="odd"),
        worker(conditions=[]),
        {"metadata": {"namespace": "team-a"}, "spec": {"containers": "odd"}},
    ],
)
def test_a_start_that_cannot_be_seen_is_unknown(desk: Desk, pod: dict[str, Any]) -> None:
    """Of a pod that has started again, or is not ready, nobody knows how long its start takes."""
    desk.get("/api/v1/pods", listed(pod))

    assert not any("to start" in text for text in said(desk))


def test_autoscalers_of_others_are_left_alone(desk: Desk) -> None:
    """
    Neither those of namespaces that are not fenced, nor those that KEDA makes, nor those whose
    target is gone or asks for no GPU.
    """
    desk.get(OBJECTS, listed(scaler("team-b")))
    desk.get(AUTOSCALERS, listed(scaler(ownerReferences=[{"kind": "ScaledObject"}])))
    foreign = said(desk)
    desk.get(OBJECTS, listed(scaler()))
    desk.get(TARGET, ABSENT)
    gone = said(desk)
    desk.get(TARGET, reply(deployment(cpu="1")))

    assert [[], [], []] == [foreign, gone, said(desk)]


def test_an_autoscaler_without_keda_is_found(desk: Desk) -> None:
    """A cluster without KEDA may have autoscalers all the same."""
    desk.get(OBJECTS, ABSENT)
    desk.get(AUTOSCALERS, listed(scaler()))

    assert ["1 autoscaler of GPU owners: what waits counts, and what works"] == said(desk)


@pytest.mark.parametrize("path", [OBJECTS, "/api/v1/nodes"])
def test_who_may_not_list_is_told(desk: Desk, path: str) -> None:
    """What cannot be seen is said, and nothing is claimed."""
    desk.get(path, DENIED)

    assert all(text.startswith("you may not list") for text in said(desk))
    assert said(desk)
