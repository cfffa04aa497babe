"""What kustomize makes of a folder, and what a cluster has."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from simulator.controlplane import ControlPlane
from tests.support.manifests import all_of
from tests.support.observing import eventually

Objects = dict[tuple[str, str], dict[str, Any]]
TRANSIENT = re.compile(r"^(event|lease|controllerrevision|endpoints|endpointslice)")
WORKLOADS = frozenset({"Deployment", "DaemonSet", "Job", "CronJob"})


def rendered(plane: ControlPlane, folder: Path) -> Objects:
    items = all_of(plane.kubectl("kustomize", str(folder)).stdout)
    return {(item["kind"], item["metadata"]["name"]): item for item in items}


def listed(items: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})


def inventory(plane: ControlPlane) -> set[str]:
    """
    Name every object of the cluster but those that come and go by themselves.

    A kind may go between the question which there are and the one for what there is of it.
    """
    answer = ["", ""]

    def all_is_listed() -> bool:
        kinds = plane.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
        done = plane.kubectl(
            *("get", ",".join(kinds), "--all-namespaces", "--ignore-not-found"),
            *("-o", "custom-columns=:.kind,:.metadata.namespace,:.metadata.name", "--no-headers"),
            check=False,
        )
        answer[:] = done.stdout, done.stderr
        return done.returncode == 0

    assert eventually(all_is_listed), answer
    lines = {" ".join(line.split()) for line in answer[0].lower().splitlines()}
    return {line for line in lines if line and not TRANSIENT.match(line)}
