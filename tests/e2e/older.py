"""An older release: its tree, and its own images on the node."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpufence import names
from simulator.cluster import SimulatedCluster
from simulator.cluster.images.archives import ImageArchives
from simulator.cluster.inside.containers import CTR
from simulator.controlplane.build import cache_folder
from simulator.progress import Progress
from tests.e2e.site import APP, Json, RealSite
from tools import ROOT
from tools.manifests import all_of

COMMIT = "453cf4d8"
"""The first with a chart; no release is older."""
PROGRAMS = ("webhook", "agent", "certs", "controller")
OURS = "gpufence"
PASSING = frozenset(
    {
        *("Pod", "ReplicaSet", "ControllerRevision", "Endpoints", "EndpointSlice", "Event", "Job"),
        *("APIService", "GPUMemoryProfile", "Lease", "Namespace", "Node", "Secret"),
    }
)
"""What comes and goes by itself, what people write, and what Helm notes of each revision."""
MANAGED_BY = "app.kubernetes.io/managed-by"
FOREIGN = frozenset({"status", "caBundle", "clusterIP", "clusterIPs", "creationTimestamp"})
"""What the API server, controllers and the programs themselves write."""


def unpack(folder: Path) -> Path:
    """Return the tree of that commit."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", COMMIT], check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def load_images(cluster: SimulatedCluster, tree: Path) -> None:
    """Build the images by the older tree's own script, once, and put them on the node."""
    kept = cache_folder(os.environ) / "older" / COMMIT
    missing = [each for each in PROGRAMS if not (kept / f"{each}.tar").exists()]
    if missing:
        archives = replace(ImageArchives.from_environment(os.environ), sources=tree)
        saved = ("--name", f"docker.io/{OURS}", "--save", str(kept))
        archives.build(Progress(sys.stderr), *saved, *missing)
    for each in PROGRAMS:
        done = cluster.inside(*CTR, "images", "import", str(kept / f"{each}.tar"))
        assert 0 == done.returncode, done.stderr


def installation(site: RealSite) -> dict[str, str]:
    """Return what gpufence's own objects say, but what others write into them."""
    resources = site.cluster.kubectl("api-resources", "--verbs=list", "--output=name").stdout
    found = site.get(",".join(resources.split()), "--all-namespaces", "--ignore-not-found")["items"]
    return described(found)


def described(items: list[Json]) -> dict[str, str]:
    ours = [one for one in items if OURS in one["metadata"]["name"] and not is_passing(one)]
    return {f"{one['kind']} {one['metadata']['name']}": essence(one) for one in ours}


def afresh(site: RealSite, rendered: str) -> dict[str, str]:
    """Return the same of what an API server would make of manifests, where none of it is."""
    namespace = ("namespace", names.SYSTEM_NAMESPACE)
    site.cluster.kubectl("create", *namespace)
    try:
        made = ("apply", "--dry-run=server", "--output=json", "-f", "-")
        items = [one for one in all_of(rendered) if one and one["kind"] != "Namespace"]
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        found = json.loads(site.cluster.kubectl(*made, stdin=json.dumps(listed)).stdout)["items"]
    finally:
        site.cluster.kubectl("delete", *namespace)
    return described(found)


def is_passing(item: Json) -> bool:
    """Return whether an object is what programs write while they run, or the install's."""
    labels = item["metadata"].get("labels", {})
    written = labels.get(APP) in {names.NEED_LABEL, names.WHY_LABEL}
    return written or item["kind"] in PASSING or item["metadata"]["name"] == names.CERTS_INSTALL


def essence(item: Json) -> str:
    labels = {**item["metadata"].get("labels", {}), MANAGED_BY: ""}  # Helm adds it as it installs
    said = {key: value for key, value in item.items() if key != "metadata"}
    return json.dumps(_without(said | {"labels": labels}), sort_keys=True)


def _without(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: _without(value) for key, value in item.items() if key not in FOREIGN}
    return [_without(one) for one in item] if isinstance(item, list) else item
