"""The API server in memory, on which unit tests stand, behaves like the real one."""

import pytest

from certs.ports import Api
from gpufence.names import TLS_SECRET
from kube import ConflictError, JsonObject, NotFoundError, PatchType, core, group
from tests.integration.certs.site import CONFIGURATION, CertsSite
from tests.support.certs import NAMES, installed

SIDES = ("memory", "real")


class Side:
    """One of the two, with the manifests applied."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.secrets = core("namespaces", namespace, "secrets")
        self.secret = f"{self.secrets}/{TLS_SECRET}"
        self.slices = group("discovery.k8s.io/v1", "namespaces", namespace, "endpointslices")

    def version(self, path: str) -> str:
        return str(self.api.get(path)["metadata"]["resourceVersion"])

    def put(self, version: str, **data: str) -> JsonObject:
        patch = {"metadata": {"resourceVersion": version}, "data": data}
        return self.api.patch(self.secret, patch, PatchType.MERGE)

    def trust(self, version: str, text: str) -> JsonObject:
        guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        change = {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": text}
        return self.api.patch(CONFIGURATION, [guard, change], PatchType.JSON)

    def trusted(self) -> str:
        hook = self.api.get(CONFIGURATION)["webhooks"][0]
        return str(hook["clientConfig"].get("caBundle", ""))


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> Side:
    if request.param == "memory":
        return Side(installed(), NAMES.namespace)
    site: CertsSite = request.getfixturevalue("site")
    return Side(site.admin, site.system)


def test_an_absent_object_is_not_found(side: Side) -> None:
    """Reading what is not there is a NotFoundError."""
    with pytest.raises(NotFoundError):
        side.api.get(f"{side.secrets}/absent")


def test_a_second_create_conflicts(side: Side) -> None:
    """Creating what is there already is a ConflictError."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": TLS_SECRET}}

    with pytest.raises(ConflictError):
        side.api.post(side.secrets, body)


def test_a_created_object_has_a_version(side: Side) -> None:
    """The answer to a create carries the version that guards the next write."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fresh"}}
    made = side.api.post(side.secrets, body)

    assert made["metadata"]["resourceVersion"] == side.version(f"{side.secrets}/fresh")


def test_an_empty_secret_has_no_data(side: Side) -> None:
    """A Secret that the manifests bring says nothing of data."""
    assert not side.api.get(side.secret).get("data")


def test_a_merge_keeps_other_keys(side: Side) -> None:
    """Patching one key of a Secret keeps the others."""
    first = side.put(side.version(side.secret), one="MQ==")
    side.put(first["metadata"]["resourceVersion"], two="Mg==")

    assert {"one": "MQ==", "two": "Mg=="} == side.api.get(side.secret)["data"]


def test_every_change_has_a_new_version(side: Side) -> None:
    """A write changes the version."""
    before = side.version(side.secret)
    side.put(before, one="MQ==")

    assert before != side.version(side.secret)


def test_a_stale_merge_conflicts(side: Side) -> None:
    """A merge based on an older version is a ConflictError and changes nothing."""
    stale = side.version(side.secret)
    side.put(stale, one="MQ==")

    with pytest.raises(ConflictError):
        side.put(stale, one="Mg==")
    assert {"one": "MQ=="} == side.api.get(side.secret)["data"]


def test_a_bundle_is_added_and_replaced(side: Side) -> None:
    """Adding a bundle where there is one replaces it."""
    side.trust(side.version(CONFIGURATION), "MQ==")
    side.trust(side.version(CONFIGURATION), "Mg==")

    assert "Mg==" == side.trusted()


def test_a_stale_bundle_conflicts(side: Side) -> None:
    """A JSON patch that names an older version is a ConflictError and changes nothing."""
    stale = side.version(CONFIGURATION)
    side.trust(stale, "MQ==")

    with pytest.raises(ConflictError):
        side.trust(stale, "Mg==")
    assert "MQ==" == side.trusted()


def test_patching_what_is_absent_is_not_found(side: Side) -> None:
    """A patch creates nothing."""
    with pytest.raises(NotFoundError):
        side.api.patch(f"{side.secrets}/absent", {"data": {}}, PatchType.MERGE)


def test_lists_are_chosen_by_label(side: Side) -> None:
    """A list with a label selector holds the objects that carry the label."""
    for name, service in (("a", "hook"), ("b", "other")):
        body = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.0.7"]}],
            "ports": [{"name": "https", "port": 8443}],
        }
        side.api.post(side.slices, body)
    found = side.api.list(side.slices, {"labelSelector": "kubernetes.io/service-name=hook"})

    assert ["a"] == [item["metadata"]["name"] for item in found.items]
