"""What somebody else scales: never released, and named."""

from pathlib import Path

import pytest

from gpufence import names
from kube import group
from tests.support.controller.gate import Gate
from tests.support.controller.site import ControllerSite
from tests.support.objects import SCALED_OBJECTS, define, undefine
from tests.support.observing import eventually, wait_until

PAUSED = {"autoscaling.keda.sh/paused": "true", "autoscaling.keda.sh/paused-replicas": "1"}
RBAC = "rbac.authorization.k8s.io/v1"


def test_what_an_autoscaler_scales_is_never_released(
    site: ControllerSite, full_namespace: str
) -> None:
    """It is named, and when it is taken away the owner goes as any other."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker")
    path = group("autoscaling/v2", "namespaces", full_namespace, "horizontalpodautoscalers")
    site.admin.post(
        path,
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "by-load"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"},
                "maxReplicas": 3,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {
                            "name": "cpu",
                            "target": {"type": "Utilization", "averageUtilization": 80},
                        },
                    }
                ],
            },
        },
    )
    with site.controller() as controller:
        said = controller.why_never(full_namespace, "worker")
        site.outlast(full_namespace)
        wanted = site.replicas(full_namespace, "worker")
        site.admin.delete(f"{path}/by-load")
        wait_until(lambda: site.phase(full_namespace, "worker") == "released", controller.lines)

    assert "HorizontalPodAutoscaler by-load scales it" == said
    assert 1 == wanted


def test_what_keda_scales_is_never_released_though_it_came_later(
    site: ControllerSite, full_namespace: str
) -> None:
    """A kind that is defined while the controller runs is found within its time."""
    site.fence(full_namespace)
    site.played.busy.add("worker")
    site.deploy(full_namespace, "worker")
    with site.controller() as controller:
        wait_until(lambda: controller.owner(full_namespace, "worker").get("state") == "busy")
        define(site.admin, SCALED_OBJECTS)
        try:
            item = {
                "apiVersion": "keda.sh/v1alpha1",
                "kind": "ScaledObject",
                "metadata": {"name": "by-queue"},
                "spec": {"scaleTargetRef": {"name": "worker"}},
            }
            path = group("keda.sh/v1alpha1", "namespaces", full_namespace, "scaledobjects")
            site.admin.post(path, item)
            said = controller.why_never(full_namespace, "worker")
            site.played.busy.clear()
            site.outlast(full_namespace)
            wanted = site.replicas(full_namespace, "worker")
        finally:
            undefine(site.admin, SCALED_OBJECTS)
        wait_until(lambda: site.phase(full_namespace, "worker") == "released", controller.lines)

    assert said.endswith("ScaledObject by-queue scales it")
    assert 1 == wanted


@pytest.mark.parametrize("known", [True, False])
def test_what_keda_scales_is_never_released_while_nobody_says_what_there_is_of_keda(
    site: ControllerSite, full_namespace: str, tmp_path: Path, *, known: bool
) -> None:
    """
    Discovery of its group alone fails, after it was known or from the first moment on; also where
    KEDA does nothing for now, since somebody has paused it.
    """
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker")
    define(site.admin, SCALED_OBJECTS)
    item = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "by-queue", "annotations": PAUSED},
        "spec": {"scaleTargetRef": {"name": "worker"}},
    }
    path = group("keda.sh/v1alpha1", "namespaces", full_namespace, "scaledobjects")
    site.admin.post(path, item)
    token = site.plane.service_account_token(site.system, names.CONTROLLER)
    try:
        with Gate(site.plane) as gate:
            through = str(gate.kubeconfig(tmp_path, token))
            if not known:
                gate.refuse(lambda _, path: path == "/apis/keda.sh/v1alpha1")
            with site.controller(KUBECONFIG=through) as controller:
                if known:
                    controller.why_never(full_namespace, "worker")
                    gate.refuse(lambda _, path: path == "/apis/keda.sh/v1alpha1")
                wait_until(gate.refused.is_set, controller.lines)
                kept = not eventually(lambda: site.replicas(full_namespace, "worker") == 0, 4.0)
                gate.let_in()
                said = controller.why_never(full_namespace, "worker")
    finally:
        undefine(site.admin, SCALED_OBJECTS)

    assert kept
    assert said.endswith("ScaledObject by-queue scales it")


def test_nobody_is_scaled_while_autoscalers_cannot_be_read(
    site: ControllerSite, full_namespace: str
) -> None:
    """Without the right to read HorizontalPodAutoscalers nobody knows whom they scale."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker")
    path = group(RBAC, "clusterroles", names.CONTROLLER)
    role = site.admin.get(path)
    less = [rule for rule in role["rules"] if rule["apiGroups"] != ["autoscaling"]]
    site.admin.put(path, {**role, "rules": less})
    try:
        with site.controller() as controller:
            said = controller.why_never(full_namespace, "worker")
            kept = not eventually(lambda: site.replicas(full_namespace, "worker") == 0, 2.0)
            now = site.admin.get(path)
            site.admin.put(path, {**now, "rules": role["rules"]})
            wait_until(lambda: site.phase(full_namespace, "worker") == "released")
    finally:
        now = site.admin.get(path)
        site.admin.put(path, {**now, "rules": role["rules"]})

    assert "horizontalpodautoscalers.autoscaling cannot be read" in said
    assert kept
