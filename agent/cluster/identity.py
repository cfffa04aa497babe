"""
As whom the agent acts: its own node where the API server lets it, else its own account.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent.cluster.settings import Impersonation
from agent.model.state import Identity
from kube import ForbiddenError, core

if TYPE_CHECKING:
    from agent.cluster.settings import ClusterSettings
    from kube import Client

_log = logging.getLogger(__name__)

REMEDY = (
    "apply deploy/base on Kubernetes 1.36 and later, deploy/overlays/kubernetes-1.30 on an older "
    "one, and check GPUFENCE_NODE and GPUFENCE_IMPERSONATION"
)


def find_identity(client: Client, settings: ClusterSettings) -> tuple[Identity, Client]:
    """
    Find out who may list the pods of this node, and return a client that speaks so.

    Only a refusal of the node's identity leads to the plain one: that one reaches every node, and
    trouble on the way must not bring it about.

    Raises:
        ForbiddenError: nobody may.
        KubeError: the API server cannot be asked at the moment.
    """
    as_node = client.impersonating(f"system:node:{settings.node}")
    if settings.impersonation is Impersonation.ON:
        return Identity.IMPERSONATING, as_node
    if settings.impersonation is Impersonation.OFF:
        return Identity.PLAIN, client
    try:
        _list_pods(as_node, settings)
    except ForbiddenError as error:
        _log.info("not allowed to act as node %s: %s", settings.node, error)
        _list_pods(client, settings)
        return Identity.PLAIN, client
    return Identity.IMPERSONATING, as_node


def _list_pods(client: Client, settings: ClusterSettings) -> None:
    query: dict[str, str | int] = {"fieldSelector": f"spec.nodeName={settings.node}", "limit": 1}
    client.get(core("pods"), query, timeout_seconds=settings.request_seconds)
