"""
What the node asks of the API server about its pods, with a kubelet's rights.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kube import Client, NotFoundError, PatchType, core
from simulator.node.environment import CONFIG_MAP, SECRET, Reference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kube import JsonObject
    from simulator.node.pod import NodePod

REQUEST_SECONDS = 5.0
_RESOURCES = {CONFIG_MAP: "configmaps", SECRET: "secrets"}


def timestamp(form: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    return datetime.now(UTC).strftime(form)


class NodeApi:
    def __init__(self, client: Client) -> None:
        self._client = client

    def report(self, pod: NodePod, status: dict[str, object]) -> None:
        """
        Write a pod's status; a successor of the same name is refused by its uid.
        """
        path = core("namespaces", pod.namespace, "pods", pod.name, "status")
        body: JsonObject = {"metadata": {"uid": pod.uid}, "status": status}
        self._client.patch(path, body, PatchType.STRATEGIC, timeout_seconds=REQUEST_SECONDS)

    def remove(self, pod: NodePod) -> None:
        """
        Take a deleted pod, all of whose processes have ended, out of the API.
        """
        options: JsonObject = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        path = core("namespaces", pod.namespace, "pods", pod.name)
        self._client.delete(path, options, timeout_seconds=REQUEST_SECONDS)

    def read(
        self, namespace: str, references: Iterable[Reference]
    ) -> dict[Reference, dict[str, str]]:
        """
        Read ConfigMaps and Secrets; those that do not exist are left out.
        """
        objects: dict[Reference, dict[str, str]] = {}
        for reference in references:
            path = core("namespaces", namespace, _RESOURCES[reference.kind], reference.name)
            try:
                answer = self._client.get(path, timeout_seconds=REQUEST_SECONDS)
            except NotFoundError:
                continue
            data: dict[str, str] = answer.get("data") or {}
            if reference.kind == SECRET:
                data = {key: base64.b64decode(value).decode() for key, value in data.items()}
            objects[reference] = data
        return objects
