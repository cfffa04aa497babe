"""
Minimal stand-ins for the foreign kinds that some components speak of: names, and any content.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.controlplane import ControlPlane

KINDS = {
    "cert-manager.io": ("Certificate", "Issuer"),
    "monitoring.coreos.com": ("PodMonitor", "PrometheusRule"),
}


def admit(plane: ControlPlane) -> None:
    """
    Let the API server know the kinds; return once it does.
    """
    items = [definition(group, kind) for group, kinds in KINDS.items() for kind in kinds]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(listed))
    names = [f"crd/{item['metadata']['name']}" for item in items]
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)


def definition(group: str, kind: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
