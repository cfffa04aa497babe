"""The two Secrets: the serving pair that the webhook mounts, and the CA that nobody mounts."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from certs.material import KeyPair
from certs.ports import MissingObjectError
from gpufence.names import CA_SECRET, TLS_SECRET
from kube import ForbiddenError, NotFoundError, PatchType, core

if TYPE_CHECKING:
    from collections.abc import Mapping

    from certs.ports import Api
    from kube import JsonObject

CERTIFICATE = "tls.crt"
KEY = "tls.key"
AUTHORITY = "ca.crt"


@dataclass(frozen=True, slots=True)
class Secret:
    """
    One Secret as it was read; `version` guards the next write, empty where there is no Secret yet.
    """

    name: str
    data: Mapping[str, bytes]
    version: str

    @property
    def pair(self) -> KeyPair | None:
        certificate, key = self.data.get(CERTIFICATE, b""), self.data.get(KEY, b"")
        return KeyPair(certificate, key) if certificate or key else None

    @property
    def authority(self) -> bytes:
        """The CA that signed the pair, as whoever wrote the pair put it beside it."""
        return self.data.get(AUTHORITY, b"")


class SecretStore:
    """
    Reads and writes the Secrets of one namespace.

    A write that is not based on the newest version raises `ConflictError`: read again, decide
    again. Keys that somebody else put into a Secret stay.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    def read_ca(self) -> Secret:
        return self._read(CA_SECRET)

    def read_leaf(self) -> Secret:
        return self._read(TLS_SECRET)

    def write_ca(self, before: Secret, pair: KeyPair) -> Secret:
        return self._write(before, {CERTIFICATE: pair.certificate, KEY: pair.key})

    def write_leaf(self, before: Secret, pair: KeyPair, authority: bytes) -> Secret:
        return self._write(
            before, {CERTIFICATE: pair.certificate, KEY: pair.key, AUTHORITY: authority}
        )

    def _read(self, name: str) -> Secret:
        try:
            return _secret(self._api.get(self._path(name)), name)
        except NotFoundError:
            return Secret(name, {}, version="")

    def _write(self, before: Secret, data: Mapping[str, bytes]) -> Secret:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        if before.version:
            # A patch, not a replacement: keys, labels and owners of others are not ours to lose.
            patch = {"metadata": {"resourceVersion": before.version}, "data": encoded}
            path = self._path(before.name)
            return _secret(self._api.patch(path, patch, PatchType.MERGE), before.name)
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": before.name, "namespace": self._namespace},
            "type": "Opaque",  # as in the manifests, where both come empty: other types forbid that
            "data": encoded,
        }
        try:
            reply = self._api.post(core("namespaces", self._namespace, "secrets"), body)
        except (ForbiddenError, NotFoundError) as error:
            raise MissingObjectError(f"secret {self._namespace}/{before.name}") from error
        return _secret(reply, before.name)

    def _path(self, name: str) -> str:
        return core("namespaces", self._namespace, "secrets", name)


def _secret(said: JsonObject, name: str) -> Secret:
    data = said.get("data") or {}
    return Secret(
        name=name,
        data={str(key): _decoded(value) for key, value in data.items()},
        version=str(said["metadata"]["resourceVersion"]),
    )


def _decoded(value: object) -> bytes:
    """Decode a value; the API server has checked the encoding, so anything else reads as empty."""
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error:
        return b""
