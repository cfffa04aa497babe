"""Valid certificates, and an API server, time and replicas in memory."""

import base64
import copy
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from certs.bundle import read_bundle
from certs.facts import der_of, signers_of
from certs.issue import issue_ca, issue_leaf
from certs.material import DAY, Facts, KeyPair, ServiceNames
from certs.ports import Replica, Served, World
from gpufence.names import CA_SECRET, TLS_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_SERVICE
from kube import Failure, JsonObject, Listing, PatchType, core, group
from kube.errors import error_for

NOW = 1_790_000_000.0
NAMES = ServiceNames(WEBHOOK_SERVICE, "fencing")
HOOKS = ("observe.pods.gpufence.io", "cap.pods.gpufence.io")


def facts(**changes: Any) -> Facts:
    """A leaf as it is one day after it was issued."""
    given: dict[str, Any] = {
        "not_before": NOW - DAY,
        "not_after": NOW + 89 * DAY,
        "names": NAMES.all,
        "key_matches": True,
        "signed": True,
    }
    return Facts(**{**given, **changes})


def ca_and_leaf(now: float = NOW, names: ServiceNames = NAMES) -> tuple[KeyPair, KeyPair]:
    ca = issue_ca(now)
    return ca, issue_leaf(ca, names, now)


def configuration(*hooks: str) -> JsonObject:
    return {
        "metadata": {"name": WEBHOOK_CONFIGURATION},
        "webhooks": [
            {
                "name": name,
                "clientConfig": {"service": {"namespace": NAMES.namespace, "name": NAMES.service}},
                "failurePolicy": "Ignore",
            }
            for name in hooks or HOOKS
        ],
    }


CONFIGURATION = group(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", WEBHOOK_CONFIGURATION
)
LEAF = core("namespaces", NAMES.namespace, "secrets", TLS_SECRET)
CA = core("namespaces", NAMES.namespace, "secrets", CA_SECRET)


def refusal(status: int, reason: str) -> Exception:
    return error_for(Failure("a request", status, reason, "refused"))


class FakeApi:
    """Objects by path, with versions; counts writes."""

    def __init__(self, objects: Mapping[str, JsonObject]) -> None:
        self._versions = itertools.count(1)
        self.objects: dict[str, JsonObject] = {}
        self.writes: list[str] = []
        for path, item in objects.items():
            self._keep(path, copy.deepcopy(item))

    def get(self, path: str) -> JsonObject:
        if path not in self.objects:
            raise refusal(404, "NotFound")
        return copy.deepcopy(self.objects[path])

    def list(self, path: str, query: Mapping[str, str | int] | None = None) -> Listing[JsonObject]:
        key, _, value = str((query or {}).get("labelSelector", "")).partition("=")
        items = [item for at, item in self.objects.items() if at.startswith(f"{path}/")]
        chosen = [item for item in items if item["metadata"].get("labels", {}).get(key) == value]
        return Listing("1", copy.deepcopy(chosen))

    def post(self, path: str, body: JsonObject) -> JsonObject:
        at = f"{path}/{body['metadata']['name']}"
        if at in self.objects:
            raise refusal(409, "AlreadyExists")
        return self._write(at, copy.deepcopy(body))

    def patch(
        self, path: str, body: JsonObject | Sequence[JsonObject], patch_type: PatchType
    ) -> JsonObject:
        changed = self.get(path)
        if patch_type is PatchType.MERGE:
            assert isinstance(body, dict)
            _merge(changed, body)
        else:
            assert not isinstance(body, dict)
            for operation in body:
                _apply(changed, operation)
        if changed["metadata"]["resourceVersion"] != self.version(path):
            raise refusal(409, "Conflict")
        return self._write(path, changed)

    def delete(self, path: str, body: JsonObject | None = None) -> JsonObject:
        del body
        item = self.get(path)
        del self.objects[path]
        self.writes.append(path)
        return item

    def version(self, path: str) -> str:
        return str(self.objects[path]["metadata"]["resourceVersion"])

    def put_data(self, path: str, **data: bytes) -> None:
        """Let somebody else write keys of a Secret; underscores stand for dots."""
        item = self.get(path)
        named = {key.replace("_", "."): value for key, value in data.items()}
        item.setdefault("data", {}).update(
            {key: base64.b64encode(value).decode() for key, value in named.items()}
        )
        self._keep(path, item)

    def put_bundle(self, text: bytes, position: int = 0) -> None:
        item = self.get(CONFIGURATION)
        encoded = base64.b64encode(text).decode()
        item["webhooks"][position]["clientConfig"]["caBundle"] = encoded
        self._keep(CONFIGURATION, item)

    def data(self, path: str) -> dict[str, bytes]:
        stored = self.objects[path].get("data") or {}
        return {key: base64.b64decode(value) for key, value in stored.items()}

    def leaf(self) -> KeyPair:
        data = self.data(LEAF)
        return KeyPair(data.get("tls.crt", b""), data.get("tls.key", b""))

    def authority(self) -> KeyPair:
        data = self.data(CA)
        return KeyPair(data.get("tls.crt", b""), data.get("tls.key", b""))

    def bundles(self) -> tuple[bytes, ...]:
        hooks = self.objects[CONFIGURATION]["webhooks"]
        encoded = (hook["clientConfig"].get("caBundle", "") for hook in hooks)
        return tuple(map(base64.b64decode, encoded))

    def _write(self, path: str, item: JsonObject) -> JsonObject:
        self.writes.append(path)
        return self._keep(path, item)

    def _keep(self, path: str, item: JsonObject) -> JsonObject:
        item.setdefault("metadata", {})["resourceVersion"] = str(next(self._versions))
        self.objects[path] = item
        return copy.deepcopy(item)


class FakeClock:
    """Time that passes only while somebody sleeps; remembers how long."""

    def __init__(self, now: float) -> None:
        self.at = now
        self.slept: list[float] = []

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds

    def chance(self) -> float:
        return 0.5


class FakeFleet:
    """Replicas that take the stored pair when they are told to, or before each answer."""

    def __init__(self, api: FakeApi, size: int = 2, *, eager: bool = True) -> None:
        self._api = api
        self._eager = eager
        self.serving: list[KeyPair | None] = [None] * size

    @property
    def endpoints(self) -> tuple[Replica, ...]:
        return tuple(Replica("10.1.0.7", 8443 + number) for number in range(len(self.serving)))

    def pull(self, number: int) -> None:
        """Let one replica look at its folder: what cannot serve never goes live."""
        pair = self._api.leaf()
        if pair != self.serving[number] and is_whole(pair):
            self.serving[number] = pair

    def pull_all(self) -> None:
        for number in range(len(self.serving)):
            self.pull(number)

    def ask(self, endpoints: Sequence[Replica], _name: str) -> tuple[Served, ...]:
        if self._eager:
            self.pull_all()
        return tuple(
            Served(endpoint, der_of(pair) if pair else None, "" if pair else "refused")
            for endpoint, pair in zip(endpoints, self.serving, strict=False)
        )


def is_whole(pair: KeyPair) -> bool:
    try:
        public = x509.load_pem_x509_certificate(pair.certificate).public_key()
        return bool(load_pem_private_key(pair.key, password=None).public_key() == public)
    except ValueError:
        return False


def is_trusted(certificate: bytes, bundle: bytes) -> bool:
    """Tell whether a client that trusts the bundle accepts a certificate's signature."""
    read = read_bundle(bundle)
    return bool(signers_of(certificate, (*read.ours, *read.foreign)))


def installed(*hooks: str) -> FakeApi:
    """A cluster with the manifests applied: both Secrets empty, no bundle."""
    secrets: dict[str, JsonObject] = {LEAF: {"type": "Opaque"}, CA: {"type": "Opaque"}}
    return FakeApi({**secrets, CONFIGURATION: configuration(*hooks)})


def world(api: Any, clock: Any, fleet: FakeFleet) -> World:
    return World(api, clock, fleet.ask)


def _merge(target: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict):
            _merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


def _apply(target: Any, operation: JsonObject) -> None:
    *parents, last = operation["path"].strip("/").split("/")
    for step in parents:
        target = target[int(step)] if isinstance(target, list) else target[step]
    target[last] = operation["value"]


def unheard(_text: str) -> None:
    """Hear what a run says where a test does not care."""
