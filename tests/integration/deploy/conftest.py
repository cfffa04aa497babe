"""A control plane for this folder alone: whole installations would disturb other tests."""

from collections.abc import Iterator
from typing import Any

import pytest

from simulator.controlplane import Assets, ControlPlane, PlaneOptions
from tests.integration.deploy.rendering import Kustomize, listed

FOREIGN_KINDS = (
    ("cert-manager.io", "Certificate"),
    ("cert-manager.io", "Issuer"),
    ("monitoring.coreos.com", "PodMonitor"),
    ("monitoring.coreos.com", "PrometheusRule"),
    ("security.openshift.io", "SecurityContextConstraints"),
)
OF_CLUSTERS = {"SecurityContextConstraints"}


@pytest.fixture(scope="package")
def plane(assets: Assets) -> Iterator[ControlPlane]:
    """Run an API server with controllers, which know the foreign kinds that components speak of."""
    # No kube-proxy turns Services into pods, so that the API server does.
    routing = ("--enable-aggregator-routing=true",)
    options = PlaneOptions(controller_manager=True, api_options=routing)
    with ControlPlane.start(assets, options) as running:
        items = [definition(group, kind) for group, kind in FOREIGN_KINDS]
        running.kubectl("apply", "-f", "-", stdin=listed(items))
        names = [f"crd/{item['metadata']['name']}" for item in items]
        running.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
        yield running


@pytest.fixture(scope="session")
def by_kustomize(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Kustomize:
    kubectl = assets.find("kubectl")
    assert kubectl is not None
    return Kustomize(kubectl, tmp_path_factory.mktemp("kustomize"))


def definition(group: str, kind: str) -> dict[str, Any]:
    """Define a foreign kind by its names alone; any content will do."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster" if kind in OF_CLUSTERS else "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": "v1", **version}],
        },
    }
