"""Small objects for a real API server."""

from pathlib import Path

from kube import Client, ClientSettings, JsonObject, connect, core


def client_of(kubeconfig: Path) -> Client:
    return connect(ClientSettings(kubeconfig=str(kubeconfig), user_agent="gpufence-tests"))


def config_maps(namespace: str) -> str:
    return core("namespaces", namespace, "configmaps")


def events(namespace: str) -> str:
    return core("namespaces", namespace, "events")


def config_map(name: str, **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def event(namespace: str, name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "Namespace", "namespace": namespace},
        "reason": "Testing",
        "message": name,
    }


def pod(name: str, **spec: object) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "none"}], **spec},
    }


def budget(name: str) -> JsonObject:
    """Make a disruption budget that allows nothing: nobody is healthy enough."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }


def eviction(name: str, uid: str) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }


def name_of(item: JsonObject) -> str:
    return str(item["metadata"]["name"])
