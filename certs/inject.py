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
from certs.errors import MissingObjectError
from gpufence.names import WEBHOOK_CONFIGURATION
from kube import NotFoundError, PatchType, group

if TYPE_CHECKING:
    from certs.ports import Api
    from kube import JsonObject

_KIND = "mutatingwebhookconfigurations"
_PATH = group("admissionregistration.k8s.io/v1", _KIND, WEBHOOK_CONFIGURATION)


@dataclass(frozen=True, slots=True)
class TrustedBundles:
    """
    The configuration's bundles as they were read, one for each hook, and what was odd about them.
    """

    version: str
    hooks: tuple[str, ...]
    bundles: tuple[Bundle, ...]
    texts: tuple[bytes, ...]
    notes: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """
        Tell whether no hook trusts any CA of ours yet: nothing can break that works.
        """
        return not any(bundle.ours for bundle in self.bundles)

    def only(self, authority: bytes) -> bool:
        """
        Tell whether every hook trusts this CA of ours and no other of ours.
        """
        return all(bundle.trusts_only(authority) for bundle in self.bundles)


class Injector:
    """
    Reads and writes the bundles, and no other field.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    def read(self) -> TrustedBundles:
        """
        Read every hook's bundle. Raises MissingObjectError where there is no configuration.
        """
        try:
            said = self._api.get(_PATH)
        except NotFoundError as error:
            raise MissingObjectError(
                f"mutatingwebhookconfiguration {WEBHOOK_CONFIGURATION}"
            ) from error
        hooks = said.get("webhooks") or []
        texts = tuple(_text(hook) for hook in hooks)
        names = tuple(str(hook.get("name", "")) for hook in hooks)
        bundles = tuple(read_bundle(text) for text in texts)
        notes = [
            note
            for name, bundle, text in zip(names, bundles, texts, strict=True)
            for note in _notes(name, bundle, text)
        ]
        version = str(said["metadata"]["resourceVersion"])
        return TrustedBundles(version, names, bundles, texts, tuple(notes))

    def trust_also(self, before: TrustedBundles, *authorities: bytes) -> bool:
        """
        Add CAs of ours to every hook, keeping all that is there; tell whether anything changed.
        """
        wanted = [trusting(item, *item.ours, *authorities) for item in before.bundles]
        return self._write(before, wanted)

    def trust_only(self, before: TrustedBundles, authority: bytes) -> bool:
        """
        Let one CA of ours remain in every hook; tell whether anything changed.
        """
        return self._write(before, [trusting(item, authority) for item in before.bundles])

    def _write(self, before: TrustedBundles, wanted: list[Bundle]) -> bool:
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
            self._api.patch(_PATH, [guard, *changes], PatchType.JSON)
        return bool(changes)


def _text(hook: JsonObject) -> bytes:
    encoded = (hook.get("clientConfig") or {}).get("caBundle") or ""
    try:
        return base64.b64decode(str(encoded), validate=True)
    except binascii.Error:
        return b"not base64"


def _notes(hook: str, bundle: Bundle, text: bytes) -> list[str]:
    notes = []
    if bundle.foreign:
        notes.append(f"{hook}: caBundle also trusts {len(bundle.foreign)} CA(s) not of gpufence")
    if bundle.refused:
        digest = hashlib.sha256(text).hexdigest()[:16]
        found = ", ".join(bundle.refused)
        notes.append(
            f"{hook}: caBundle holds {found}, where only certificates may stand; `ensure` keeps "
            f"the certificates and removes that (the whole had sha256 {digest}...)"
        )
    return notes
