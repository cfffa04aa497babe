"""
Whether the API server reaches the webhook: a pod that is only tried, by dry run, must come back
changed. A firewall between the two is seen in no object; without an answer pods go on unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpufence.errors import Finding, ok, unknown, wrong
from gpufence.names import INJECTED, MEMORY, WEBHOOK_SERVICE
from kube import ForbiddenError, KubeError, core
from kubectl_gpufence.verbs.doctor.installation import MaybeHidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.verbs.doctor.installation import Installation

_SUBJECT: Final = "webhook"
_BY_WEBHOOK: Final = "gpufence.io"  # its hooks' names, in what the API server says of a refusal
_NO_RIGHT: Final = "cannot create resource"
_CONFINED: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_LITTLE: Final = {"cpu": "1m", "memory": "1Mi"}
_FIREWALL: Final = (
    f"let the API server reach port 8443 of the pods behind Service {WEBHOOK_SERVICE}: in private "
    "clusters of GKE and EKS by a firewall rule or security group, else look at network policies"
)


def try_pod(reader: ClusterReader, fenced: Iterable[str]) -> MaybeHidden[bool]:
    """Try a pod in the first fenced namespace; without the right to do so there is no answer."""
    namespace = min(fenced, default="")
    if not namespace:
        return MaybeHidden()
    path = core("namespaces", namespace, "pods")
    try:
        made = reader.client.post(path, _pod(), {"dryRun": "All"})
    except ForbiddenError as error:
        if _NO_RIGHT in str(error):
            return MaybeHidden()
        if _BY_WEBHOOK in str(error):
            return MaybeHidden(value=True)
        return MaybeHidden(hidden=f"a pod could not be tried in {namespace}: {error}")
    except KubeError as error:
        return MaybeHidden(hidden=f"a pod could not be tried in {namespace}: {error}")
    return MaybeHidden(INJECTED in made["metadata"].get("annotations", {}))


def _pod() -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "gpufence.invalid/none",
        "resources": {"requests": _LITTLE, "limits": _LITTLE},
        "securityContext": _CONFINED,
    }
    return {
        "metadata": {"generateName": "gpufence-doctor-", "annotations": {MEMORY: "1Gi"}},
        "spec": {"automountServiceAccountToken": False, "containers": [container]},
    }


def check_called(installation: Installation) -> Iterator[Finding]:
    """Say whether a pod that was tried came back changed."""
    tried = installation.tried
    if tried.hidden:
        yield unknown(
            _SUBJECT, tried.hidden, "`kubectl -n NAMESPACE get events` and policies say more"
        )
    elif tried.value:
        yield ok(_SUBJECT, "the API server reaches it: a pod that was only tried was changed")
    elif tried.value is not None and installation.away:
        reach = f"whether the API server reaches it was not asked, since {installation.away}"
        yield unknown(_SUBJECT, reach, "see to that first")
    elif tried.value is not None:
        yield wrong(_SUBJECT, "a pod that was only tried came back as it was", _FIREWALL)
