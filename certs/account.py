"""
The install's account, which may write whom the API server trusts: with its token every object of
the cluster can be had, sent to a hook of one's own. So it is removed when the install is done.

The right to delete just these four objects stays with the certificates' accounts: the daily run
removes what a stopped install left, or one whose Job stood finished when manifests were applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.names import CERTS_INSTALL
from kube import NotFoundError, core, group

if TYPE_CHECKING:
    from collections.abc import Callable

    from certs.ports import Api
    from kube import JsonObject

_RBAC = "rbac.authorization.k8s.io/v1"
_WITH_PODS: JsonObject = {"propagationPolicy": "Background"}
_ENDED = {"Complete", "Failed"}


def remove(api: Api, namespace: str) -> tuple[str, ...]:
    """Delete the rights, the Job and the account, in this order; return what there was of them."""
    steps: tuple[tuple[str, Callable[[], JsonObject]], ...] = (
        (
            "ClusterRoleBinding",
            lambda: api.delete(group(_RBAC, "clusterrolebindings", CERTS_INSTALL)),
        ),
        ("ClusterRole", lambda: api.delete(group(_RBAC, "clusterroles", CERTS_INSTALL))),
        (
            "Job",
            lambda: api.delete(
                group("batch/v1", "namespaces", namespace, "jobs", CERTS_INSTALL), _WITH_PODS
            ),
        ),
        # Last: without it, its token opens nothing any more.
        (
            "ServiceAccount",
            lambda: api.delete(
                core("namespaces", namespace, "serviceaccounts", CERTS_INSTALL),
            ),
        ),
    )
    return tuple(what for what, delete in steps if _was_there(delete))


def is_at_work(api: Api, namespace: str) -> bool:
    """Return whether an install's Job has not ended yet."""
    try:
        job = api.get(group("batch/v1", "namespaces", namespace, "jobs", CERTS_INSTALL))
    except NotFoundError:
        return False
    conditions = (job.get("status") or {}).get("conditions") or []
    return not any(
        item.get("type") in _ENDED and item.get("status") == "True" for item in conditions
    )


def _was_there(delete: Callable[[], JsonObject]) -> bool:
    try:
        delete()
    except NotFoundError:
        return False
    return True
