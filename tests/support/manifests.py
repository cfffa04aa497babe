"""What tests ask of the manifests in deploy/, beside what the tools read."""

from pathlib import Path
from typing import Any

import yaml

from tools import ROOT
from tools.manifests import (
    BASE,
    COMPONENTS,
    DEPLOY,
    REGISTRY,
    all_of,
    components,
    files,
    kustomization,
    objects,
    own_overlay,
)

__all__ = [
    "BASE",
    "COMPONENTS",
    "DEPLOY",
    "REGISTRY",
    "ROOT",
    "all_of",
    "components",
    "files",
    "found",
    "kustomization",
    "moved",
    "objects",
    "own_overlay",
    "plain_rights",
    "pod_spec",
]


def found(kind: str, name: str, folder: Path = BASE) -> dict[str, Any]:
    """Return the one object of that kind and name."""
    (only,) = [
        item for item in objects(folder) if (item["kind"], item["metadata"]["name"]) == (kind, name)
    ]
    return only


def pod_spec(workload: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = workload["spec"]
    spec = spec.get("jobTemplate", {"spec": spec})["spec"]
    return dict(spec["template"]["spec"])


def plain_rights(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an agent's objects with the rights and policies of Kubernetes before 1.36."""
    folder = COMPONENTS / "kubernetes-1.30"
    (change,) = yaml.safe_load((folder / "rules.yaml").read_text(encoding="utf-8"))
    for item in items:
        if item["kind"] == "ClusterRole":
            item["rules"] = change["value"]
    return [*items, *objects(folder)]


def moved(item: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Put an object into another namespace, as kustomize does."""
    if not item["kind"].startswith("Cluster"):
        item["metadata"]["namespace"] = namespace
    for subject in item.get("subjects", []):
        subject["namespace"] = namespace
    return item
