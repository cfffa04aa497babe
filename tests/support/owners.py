"""Kinds of owners that a bare API server lacks, and objects of them."""

import time
from typing import Final

from kube import Client, ConflictError, JsonObject, NotFoundError, ThrottledError, group

CRDS: Final = "apiextensions.k8s.io/v1"
_PATIENCE_SECONDS = 60.0


def crd(api_version: str, kind: str, plural: str, *, scale: str = "") -> JsonObject:
    """Make the definition of a kind that takes any spec; `scale` is the path of its replicas."""
    named, _, version = api_version.partition("/")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    subresources: JsonObject = {"status": {}}
    if scale:
        subresources["scale"] = {
            "specReplicasPath": scale,
            "statusReplicasPath": ".status.replicas",
        }
    return {
        "apiVersion": CRDS,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{named}"},
        "spec": {
            "group": named,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": subresources,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": anything, "status": anything},
                        }
                    },
                }
            ],
        },
    }


NOTEBOOKS: Final = crd("kubeflow.org/v1", "Notebook", "notebooks")
WORKLOADS: Final = crd("kueue.x-k8s.io/v1beta1", "Workload", "workloads")
FARMS: Final = crd("example.com/v1", "Farm", "farms", scale=".spec.replicas")
SCALED_OBJECTS: Final = crd("keda.sh/v1alpha1", "ScaledObject", "scaledobjects")
ROLLOUTS: Final = crd("argoproj.io/v1alpha1", "Rollout", "rollouts", scale=".spec.replicas")
HERDS: Final = crd("example.com/v1", "Herd", "herds", scale=".spec.size")


def unconvertible(definition: JsonObject, version: str) -> JsonObject:
    """
    Return a kind that is preferred in another version than it is kept in, where nobody converts it:
    what was made cannot be listed.
    """
    spec = definition["spec"]
    (kept,) = spec["versions"]
    nowhere = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]}
    shown = {**kept, "name": version, "storage": False}
    conversion = {"strategy": "Webhook", "webhook": nowhere}
    changed = {"versions": [kept, shown], "conversion": conversion}
    return {**definition, "spec": {**spec, **changed}}


def define(client: Client, *definitions: JsonObject) -> None:
    """Make kinds, once those of their names are gone, and wait until they are served."""
    for definition in definitions:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not _made(client, definition):
            assert time.monotonic() < deadline, "it is still being deleted"
            time.sleep(0.1)
    for definition in definitions:
        spec = definition["spec"]
        version = spec["versions"][0]["name"]
        path = group(f"{spec['group']}/{version}", spec["names"]["plural"])
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                client.get(path)
                break
            except (NotFoundError, ThrottledError):
                assert time.monotonic() < deadline, f"{path} is not served"
                time.sleep(0.1)


def _made(client: Client, definition: JsonObject) -> bool:
    try:
        client.post(group(CRDS, "customresourcedefinitions"), definition)
    except ConflictError:
        return False
    return True


def undefine(client: Client, *definitions: JsonObject) -> None:
    for definition in definitions:
        name = definition["metadata"]["name"]
        client.delete(group(CRDS, "customresourcedefinitions", name))


def deployment(name: str, replicas: int = 1, **pod_spec: object) -> JsonObject:
    """Make a Deployment whose pods never need an image."""
    labels = {"app": name}
    container = {"name": "main", "image": "none"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], **pod_spec},
            },
        },
    }


def controlled(item: JsonObject, by: JsonObject) -> JsonObject:
    """Return an object that says who controls it."""
    reference = {
        "apiVersion": by["apiVersion"],
        "kind": by["kind"],
        "name": by["metadata"]["name"],
        "uid": by["metadata"]["uid"],
        "controller": True,
    }
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [reference]}}
