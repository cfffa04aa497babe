"""
Finding out what `doctor` looks at, in one go; what is hidden from the caller is told as hidden.
"""

from __future__ import annotations

import base64
import ssl
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.shape import Object, as_object, as_text, objects
from kube import ForbiddenError, KubeError, NotFoundError, as_is, core, group
from kubectl_gpufence.cluster import WEBHOOK_LABEL
from kubectl_gpufence.doctor.facts import Asked, Facts, read_namespace
from kubectl_gpufence.doctor.webhook import POLICIES
from kubectl_gpufence.scene import by_node

if TYPE_CHECKING:
    from collections.abc import Callable

    from kube import JsonObject
    from kubectl_gpufence.cluster import Cluster
    from kubectl_gpufence.doctor.facts import Namespace
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.scene import Agent, SeenNode

T = TypeVar("T")

_SYSTEM = ("namespaces", names.SYSTEM_NAMESPACE)
_ADMISSION = "admissionregistration.k8s.io/v1"
_EXPIRY = "gpufence_webhook_certificate_expiry_seconds"
_RIGHTS = (
    ("list pods in all namespaces", "list", "pods", "", ""),
    ("list nodes", "list", "nodes", "", ""),
    ("list namespaces", "list", "namespaces", "", ""),
    ("list events in all namespaces", "list", "events", "", ""),
    (
        f"get pods/proxy in {names.SYSTEM_NAMESPACE}",
        "get",
        "pods",
        "proxy",
        names.SYSTEM_NAMESPACE,
    ),
)


def look_around(cluster: Cluster) -> Facts:
    """
    Ask for everything; answers that do not depend on each other are asked for together.
    """
    nodes, agents, namespaces, pods = _inventory(cluster)
    questions: tuple[Callable[[], Asked[Object]], ...] = (
        partial(_one, cluster, "/version"),
        partial(_one, cluster, core(*_SYSTEM)),
        partial(
            _one,
            cluster,
            group("apps/v1", *_SYSTEM, "deployments", names.WEBHOOK_SERVICE),
        ),
        partial(
            _one,
            cluster,
            group(_ADMISSION, "mutatingwebhookconfigurations", names.WEBHOOK_CONFIGURATION),
        ),
        partial(_one, cluster, core(*_SYSTEM, "configmaps", names.POLICY_CONFIGMAP)),
        *(
            partial(_one, cluster, group(_ADMISSION, kind, name))
            for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
            for name in POLICIES
        ),
    )
    version, system, deployment, configuration, switch, *policies = cluster.together(
        lambda ask: ask(), questions
    )
    count = len(POLICIES)
    return Facts(
        now=time.time(),
        version=version,
        rights=_rights(cluster),
        system=system,
        deployment=deployment,
        slices=_slices(cluster),
        configuration=configuration,
        trusted=_trusted(configuration.value or {}),
        serving=_serving(cluster),
        policies=dict(zip(POLICIES, policies[:count], strict=True)),
        bindings=dict(zip(POLICIES, policies[count:], strict=True)),
        switch=switch,
        nodes=nodes,
        agents=agents,
        namespaces=namespaces,
        pods=pods,
    )


def valid_times(bundle: str) -> tuple[tuple[float, float], ...] | None:
    """
    Read from when to when each CA of a caBundle is valid; None where it cannot be read.

    Python's ssl decodes no certificate but a CA that it was told to trust, which a caBundle holds.
    """
    if not bundle:
        return ()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=base64.b64decode(bundle, validate=True).decode())
        return (
            tuple(
                (
                    ssl.cert_time_to_seconds(str(item["notBefore"])),
                    ssl.cert_time_to_seconds(str(item["notAfter"])),
                )
                for item in context.get_ca_certs()
            )
            or None
        )
    except (ssl.SSLError, ValueError, KeyError):
        return None


def metric(page: str, name: str) -> float | None:
    """
    Read a number from a page of metrics; None where it is not there.
    """
    for line in page.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            try:
                return float(value)
            except ValueError:
                return None
    return None


def _inventory(
    cluster: Cluster,
) -> tuple[
    Asked[dict[str, SeenNode]],
    Asked[tuple[Agent, ...]],
    Asked[list[Namespace]],
    Asked[list[SeenPod]],
]:
    found, hidden = cluster.nodes()
    agents, no_agents = cluster.agents()
    answers = () if no_agents else cluster.ask_agents(agents, None)
    namespaces = _asked(lambda: cluster.listed(core("namespaces"), read_namespace), "namespaces")
    pods = _asked(lambda: cluster.pods("", "", found), "pods of all namespaces")
    chosen = tuple(by_node(answers).values())
    return Asked(found, hidden), Asked(chosen, no_agents), namespaces, pods


def _asked(ask: Callable[[], T], what: str) -> Asked[T]:
    try:
        return Asked(ask())
    except NotFoundError:
        return Asked()
    except ForbiddenError:
        return Asked(hidden=f"you may not see {what}")


def _one(cluster: Cluster, path: str) -> Asked[Object]:
    what = "/".join(path.rsplit("/", 2)[-2:])
    return _asked(lambda: cluster.api.get(path), what)


def _slices(cluster: Cluster) -> Asked[list[Object]]:
    path = group("discovery.k8s.io/v1", *_SYSTEM, "endpointslices")
    chosen = {"labelSelector": f"kubernetes.io/service-name={names.WEBHOOK_SERVICE}"}
    return _asked(lambda: list(cluster.listed(path, as_is, dict(chosen))), "endpointslices")


def _trusted(configuration: Object) -> dict[str, tuple[tuple[float, float], ...] | None]:
    return {
        as_text(hook.get("name"), "webhooks[].name"): valid_times(
            as_text(as_object(hook.get("clientConfig"), "clientConfig").get("caBundle"), "caBundle")
        )
        for hook in objects(configuration.get("webhooks"), "webhooks")
    }


def _serving(cluster: Cluster) -> dict[str, float | None]:
    """
    Ask each webhook how long its certificate lasts; who may not ask is told nothing.
    """
    path = core(*_SYSTEM, "pods")
    try:
        pods = cluster.listed(path, as_is, {"labelSelector": WEBHOOK_LABEL})
        pages = cluster.together(partial(_page, cluster), pods)
    except ForbiddenError:
        return {}
    return {name: metric(page, _EXPIRY) for name, page in pages if page is not None}


def _page(cluster: Cluster, pod: JsonObject) -> tuple[str, str | None]:
    """
    Read a webhook's metrics; None where it does not answer, which its Deployment says too.
    """
    name = as_text(as_object(pod.get("metadata"), "metadata").get("name"), "metadata.name")
    try:
        return name, cluster.proxied(pod, "/metrics")
    except GpufenceError:
        return name, None


def _rights(cluster: Cluster) -> dict[str, bool]:
    """
    Ask the API server what it lets the caller do.
    """
    answers = cluster.together(lambda item: _may(cluster, *item[1:]), _RIGHTS)
    return {
        item[0]: answer for item, answer in zip(_RIGHTS, answers, strict=True) if answer is not None
    }


def _may(cluster: Cluster, verb: str, resource: str, part: str, namespace: str) -> bool | None:
    wanted = {"verb": verb, "resource": resource, "subresource": part, "namespace": namespace}
    review: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wanted},
    }
    path = group("authorization.k8s.io/v1", "selfsubjectaccessreviews")
    try:
        answer = cluster.api.post(path, review)
    except KubeError:
        return None
    return as_object(answer.get("status"), "status").get("allowed") is True
