"""Reading what `doctor` examines, in one go; what is hidden from the caller is noted as hidden."""

from __future__ import annotations

import base64
import ssl
import time
from typing import TYPE_CHECKING, TypeVar

from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.mode import MODES
from gpufence.shape import Object, as_object, as_text, objects
from gpufence.snapshot import CARD_ROWS, CARDS_AND_PODS
from kube import ForbiddenError, KubeError, NotFoundError, as_is, core, group
from kube.discovery import Kinds
from kubectl_gpufence.cluster_view import by_node
from kubectl_gpufence.pods import read_event, read_status_pod
from kubectl_gpufence.reader import CONFIGURATION, WEBHOOK_LABEL, home_of
from kubectl_gpufence.verbs.doctor.checks_driver import is_on
from kubectl_gpufence.verbs.doctor.installation import (
    POLICIES,
    Installation,
    MaybeHidden,
    Validity,
    asks_gpu,
    read_class,
    read_labelled,
    read_published,
    read_quota,
    read_scaler,
)
from kubectl_gpufence.verbs.doctor.starting import is_rolling, is_young
from kubectl_gpufence.verbs.doctor.trial_pod import try_pod

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from kube import JsonObject
    from kubectl_gpufence.pods import SeenEvent, StatusPod
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.verbs.doctor.installation import Scaler

T = TypeVar("T")

_ADMISSION = "admissionregistration.k8s.io/v1"
_EXPIRES = "gpufence_webhook_certificate_expiry_timestamp_seconds"
_LEFT = "gpufence_webhook_certificate_expiry_seconds"
"""What a webhook of another version has of its certificate."""

RIGHTS: Mapping[str, dict[str, str]] = {
    "list pods in all namespaces": {"verb": "list", "resource": "pods"},
    "list nodes": {"verb": "list", "resource": "nodes"},
    "list namespaces": {"verb": "list", "resource": "namespaces"},
    **{
        f"list {kind}": {
            "verb": "list",
            "group": names.RESOURCE_GROUP.partition("/")[0],
            "resource": kind,
        }
        for kind in ("resourceslices", "deviceclasses")
    },
    "list events in all namespaces": {"verb": "list", "resource": "events"},
}
"""What this plugin asks for, and how the API server is asked whether that is allowed."""
PROXY: Mapping[str, str] = {"verb": "get", "resource": "pods", "subresource": "proxy"}
"""The same of the namespace that gpufence is in."""


def read_installation(reader: ClusterReader) -> Installation:
    """Ask for everything; answers that do not depend on each other are asked for together."""
    nodes, no_nodes = reader.nodes()
    found = reader.agent_pods()
    configuration = _object(reader, CONFIGURATION)
    home = home_of(configuration.value or {})
    system = ("namespaces", home)
    deployment = _object(reader, group("apps/v1", *system, "deployments", names.WEBHOOK_SERVICE))
    cut = CARDS_AND_PODS if is_on(deployment.value or {}, nodes.values()) else CARD_ROWS
    agents = by_node(reader.agents(found.pods, cut))
    namespaces = _asked(lambda: reader.listed(core("namespaces"), read_labelled), "namespaces")
    pods = _asked(lambda: reader.pods("", "", nodes)[0], "pods of all namespaces")
    version, there, switch, *policies = reader.together(
        lambda path: _object(reader, path),
        (
            "/version",
            core(*system),
            core(*system, "configmaps", names.POLICY_CONFIGMAP),
            *(group(_ADMISSION, "validatingadmissionpolicies", name) for name in POLICIES),
            *(group(_ADMISSION, "validatingadmissionpolicybindings", name) for name in POLICIES),
        ),
    )
    count, now = len(POLICIES), time.time()
    fenced = {item.name for item in namespaces.value or [] if item.mode in MODES}
    return Installation(
        now=now,
        version=version,
        rights=_rights(reader, home),
        system=there,
        deployment=deployment,
        slices=_slices(reader, home),
        configuration=configuration,
        trusted=_trusted(configuration.value or {}),
        serving=_serving(reader, home),
        policies=dict(zip(POLICIES, policies[:count], strict=True)),
        bindings=dict(zip(POLICIES, policies[count:], strict=True)),
        switch=switch,
        nodes=MaybeHidden(nodes, no_nodes),
        agents=MaybeHidden(agents, found.note if found.hidden else ""),
        namespaces=namespaces,
        pods=pods,
        scalers=_scalers(reader, fenced),
        published=_claimed(reader, "resourceslices", read_published),
        classes=_claimed(reader, "deviceclasses", read_class),
        events=_evictions(reader),
        tried=try_pod(reader, fenced),
        quotas=_asked(lambda: reader.listed(core("resourcequotas"), read_quota), "quotas"),
        young=is_rolling(now, deployment.value or {}),
        young_nodes=frozenset(pod.node for pod in found.pods if is_young(now, pod.created)),
        home=home,
    )


def validity(bundle: str) -> Validity | None:
    """
    Read from when to when each CA of a caBundle is valid; None where it cannot be read.

    Python's ssl decodes no certificate but a CA that it was told to trust, which a caBundle holds.
    """
    if not bundle:
        return ()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=base64.b64decode(bundle, validate=True).decode())
        times = tuple(
            (
                ssl.cert_time_to_seconds(str(item["notBefore"])),
                ssl.cert_time_to_seconds(str(item["notAfter"])),
            )
            for item in context.get_ca_certs()
        )
    except (ssl.SSLError, ValueError, KeyError):
        return None
    return times or None


def metric(page: str, name: str) -> float | None:
    """Read a number from a page of metrics; None where it is not there."""
    for line in page.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            try:
                return float(value)
            except ValueError:
                return None
    return None


def _asked(ask: Callable[[], T], what: str) -> MaybeHidden[T]:
    try:
        return MaybeHidden(ask())
    except NotFoundError:
        return MaybeHidden()
    except ForbiddenError:
        return MaybeHidden(hidden=f"you may not see {what}")


def _evictions(reader: ClusterReader) -> MaybeHidden[list[SeenEvent]]:
    path, only = core("events"), f"reason={names.EVICTED}"
    return _asked(
        lambda: list(reader.listed(path, read_event, {"fieldSelector": only})),
        "events of all namespaces",
    )


def _claimed(
    reader: ClusterReader, kind: str, keep: Callable[[JsonObject], T]
) -> MaybeHidden[list[T]]:
    path = group(names.RESOURCE_GROUP, kind)
    return _asked(lambda: list(reader.listed(path, keep)), f"{kind}, for claims of cards")


def _scalers(reader: ClusterReader, fenced: Collection[str]) -> MaybeHidden[list[Scaler]]:
    """Find the ScaledObjects of these namespaces whose targets ask for GPUs."""
    path = group("keda.sh/v1alpha1", "scaledobjects")
    found = _asked(lambda: reader.listed(path, read_scaler), "scaledobjects of all namespaces")
    if found.value is None:
        return found
    kinds = Kinds(reader.client)

    def concerns_us(scaler: Scaler) -> bool:
        try:
            kind = kinds.find(scaler.version, scaler.kind)
            path = None if kind is None else kind.path(scaler.namespace, scaler.target)
            return path is not None and asks_gpu(reader.client.get(path))
        except (GpufenceError, ValueError):
            return False  # the target is gone, hidden or odd

    ours = [scaler for scaler in found.value if scaler.namespace in fenced]
    concerning = reader.together(concerns_us, ours)
    chosen = zip(ours, concerning, strict=True)
    return MaybeHidden([scaler for scaler, concerned in chosen if concerned])


def _object(reader: ClusterReader, path: str) -> MaybeHidden[Object]:
    return _asked(lambda: reader.client.get(path), "/".join(path.rsplit("/", 2)[-2:]))


def _slices(reader: ClusterReader, home: str) -> MaybeHidden[list[Object]]:
    path = group("discovery.k8s.io/v1", "namespaces", home, "endpointslices")
    label = f"kubernetes.io/service-name={names.WEBHOOK_SERVICE}"
    return _asked(
        lambda: list(reader.listed(path, as_is, {"labelSelector": label})), "endpointslices"
    )


def _trusted(configuration: Object) -> dict[str, Validity | None]:
    return {
        as_text(hook.get("name"), "webhooks[].name"): validity(
            as_text(as_object(hook.get("clientConfig"), "clientConfig").get("caBundle"), "caBundle")
        )
        for hook in objects(configuration.get("webhooks"), "webhooks")
    }


def _serving(reader: ClusterReader, home: str) -> dict[str, float | None]:
    """Ask each webhook how long its certificate lasts; who may not ask is told nothing."""

    def page(pod: StatusPod) -> str | None:
        try:
            return reader.proxied(pod, "/metrics")
        except GpufenceError:
            return None  # its Deployment says so, too

    try:
        path = core("namespaces", home, "pods")
        pods = reader.listed(path, read_status_pod, {"labelSelector": WEBHOOK_LABEL})
    except ForbiddenError:
        return {}
    pages = zip(pods, reader.together(page, pods), strict=True)
    return {pod.name: _lasts(text) for pod, text in pages if text is not None}


def _lasts(page: str) -> float | None:
    """Return for how long a webhook's certificate lasts."""
    ends = metric(page, _EXPIRES)
    return metric(page, _LEFT) if ends is None else ends - time.time()


def _rights(reader: ClusterReader, home: str) -> dict[str, bool]:
    """Ask the API server what it lets the caller do, as far as it answers that."""

    def allowed(attributes: dict[str, str]) -> bool | None:
        review: JsonObject = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = group("authorization.k8s.io/v1", "selfsubjectaccessreviews")
        try:
            answer = reader.client.post(path, review)
        except KubeError:
            return None
        return as_object(answer.get("status"), "status").get("allowed") is True

    asked = {**RIGHTS, f"get pods/proxy in {home}": {**PROXY, "namespace": home}}
    answers = zip(asked, reader.together(allowed, asked.values()), strict=True)
    return {question: answer for question, answer in answers if answer is not None}
