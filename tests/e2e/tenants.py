"""Tenants of the node's cards: ordinary pods that know nothing of gpufence."""

from gpufence import names
from simulator.cluster.setup import SIMULATED
from tests.e2e.site import APP, Json

IMAGE = "localhost/gpufence-workload:1"


def pod(namespace: str, name: str, *script: str, units: int = 3) -> Json:
    """
    Build a pod that asks for so many GiB and follows a script of `python -m simulator workload`.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {APP: name}},
        "spec": {
            "containers": [
                {
                    "name": "trainer",
                    "image": IMAGE,
                    "imagePullPolicy": "Never",
                    "args": list(script or ["hold 1Gi"]),
                    "env": [{"name": names.SIMULATOR_STATE, "value": "/simulator/state"}],
                    "resources": {"limits": {names.GPUSHARE_MEMORY: str(units)}},
                    "volumeMounts": [{"name": "simulator", "mountPath": "/simulator"}],
                }
            ],
            # What NVIDIA's runtime would bring by itself.
            "volumes": [
                {"name": "simulator", "hostPath": {"path": str(SIMULATED), "type": "Directory"}}
            ],
        },
    }


def deployment(namespace: str, name: str, *script: str, units: int = 3) -> Json:
    """Build a Deployment of one such pod."""
    template = pod(namespace, name, *script, units=units)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "selector": {"matchLabels": {APP: name}},
            "template": {"metadata": {"labels": {APP: name}}, "spec": template["spec"]},
        },
    }
