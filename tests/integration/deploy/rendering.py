"""
What kustomize makes of a folder.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from simulator.controlplane import ControlPlane
from tests.support.manifests import all_of

Objects = dict[tuple[str, str], dict[str, Any]]
WORKLOADS = frozenset({"Deployment", "DaemonSet", "Job", "CronJob"})


def rendered(plane: ControlPlane, folder: Path) -> Objects:
    items = all_of(plane.kubectl("kustomize", str(folder)).stdout)
    return {(item["kind"], item["metadata"]["name"]): item for item in items}


def listed(items: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
