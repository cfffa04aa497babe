"""
The caBundle of the webhook configuration: which CAs the API server trusts for our webhook.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from certs.bundle import Bundle, read_bundle, trusting
from gpufence.errors import InvalidError
from gpufence.names import WEBHOOK_CONFIGURATION
from kube import group

if TYPE_CHECKING:
    from kube import Client, JsonObject

_PATH = group(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", WEBHOOK_CONFIGURATION
)


@dataclass(frozen=True, slots=True)
class Trust:
    """
    The configuration's bundles as they were read, one for each hook, and what was odd about them.
    """

    version: str
    hooks: tuple[str, ...]
    bundles: tuple[Bundle, ...]
    texts: tuple[bytes, ...]
    notes: tuple[str, ...]

    def only(self, authority: bytes) -> bool:
        """
        Tell whether every hook trusts this CA of ours and no other of ours.
        """
        return all(bundle.ours == trusting(bundle, authority).ours for bundle in self.bundles)


class Injector:
    """
    Reads and writes the bundles, and no other field.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def read(self) -> Trust:
        said = self._client.get(_PATH)
        hooks = said.get("webhooks") or []
        texts = tuple(_text(hook) for hook in hooks)
        names = tuple(str(hook.get("name", "")) for hook in hooks)
        bundles: list[Bundle] = []
        notes: list[str] = []
        for name, text in zip(names, texts, strict=True):
            field = f"webhooks[{name}].clientConfig.caBundle"
            try:
                bundle = read_bundle(text, field)
            except InvalidError as error:
                bundle = Bundle()
                digest = hashlib.sha256(text).hexdigest()[:16]
                notes.append(f"{error}; replacing it (sha256 {digest}...)")
            if bundle.foreign:
                notes.append(f"{field}: keeps {len(bundle.foreign)} CA(s) that are not gpufence's")
            bundles.append(bundle)
        version = str(said["metadata"]["resourceVersion"])
        return Trust(version, names, tuple(bundles), texts, tuple(notes))

    def trust_also(self, before: Trust, *authorities: bytes) -> bool:
        """
        Add CAs of ours to every hook, keeping all that is there; tell whether anything changed.
        """
        wanted = [trusting(item, *item.ours, *authorities) for item in before.bundles]
        return self._write(before, wanted)

    def trust_only(self, before: Trust, authority: bytes) -> bool:
        """
        Let one CA of ours remain in every hook; tell whether anything changed.
        """
        return self._write(before, [trusting(item, authority) for item in before.bundles])

    def _write(self, before: Trust, wanted: list[Bundle]) -> bool:
        changes: list[dict[str, Any]] = [
            {
                "op": "add",
                "path": f"/webhooks/{position}/clientConfig/caBundle",
                "value": base64.b64encode(bundle.pem).decode(),
            }
            for position, bundle in enumerate(wanted)
            if bundle.pem != before.texts[position]
        ]
        if changes:
            # Writing the version that was read makes a stale write a conflict instead of a loss.
            guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": before.version}
            self._client.patch(_PATH, [guard, *changes])
        return bool(changes)


def _text(hook: JsonObject) -> bytes:
    encoded = (hook.get("clientConfig") or {}).get("caBundle") or ""
    try:
        return base64.b64decode(str(encoded), validate=True)
    except binascii.Error:
        return b"not base64"
