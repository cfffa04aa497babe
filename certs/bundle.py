"""
The CAs that the API server trusts for our webhook, the caBundle of each hook: which belong in it,
a gate for what stands there, and how it is read and written.

Stricter than the parser it feeds: whoever pastes a private key beside a certificate must not see us
publish it again in an object that everybody may read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from certs.issue import CA_NAME
from certs.ports import MissingObjectError
from gpufence.names import WEBHOOK_CONFIGURATION
from kube import NotFoundError, PatchType, group

if TYPE_CHECKING:
    from certs.ports import Api
    from kube import JsonObject

_KIND = "mutatingwebhookconfigurations"
_PATH = group("admissionregistration.k8s.io/v1", _KIND, WEBHOOK_CONFIGURATION)
_BLOCK = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]{1,64})-----\s*([A-Za-z0-9+/=\s]*)-----END \1-----", re.ASCII
)
_CERTIFICATE = b"CERTIFICATE"
UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""All that looking at a damaged certificate may raise, at once or when a field is asked for."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A list of CA certificates, each PEM in its normal form, and what else stood between them."""

    ours: tuple[bytes, ...] = ()
    foreign: tuple[bytes, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def pem(self) -> bytes:
        return b"".join((*self.ours, *self.foreign))

    def trusts_only(self, authority: bytes) -> bool:
        """Return whether this is the one CA of ours in it."""
        return self.ours == normal(authority)

    def trusts(self, authority: bytes) -> bool:
        certificates = normal(authority)
        return bool(certificates) and set(certificates) <= {*self.ours, *self.foreign}


def read_bundle(text: bytes) -> Bundle:
    """Sort out a bundle: CAs of ours, CAs of others, and what is no certificate at all."""
    ours: list[bytes] = []
    foreign: list[bytes] = []
    refused: list[str] = []
    if _BLOCK.sub(b"", text).strip():
        refused.append("text outside of any block")
    for match in _BLOCK.finditer(text):
        certificate = _certificate(match)
        if certificate is None:
            kind = match[1].decode("ascii")
            refused.append("a broken CERTIFICATE" if match[1] == _CERTIFICATE else f"a {kind}")
        else:
            (ours if _is_ours(certificate) else foreign).append(_pem(match))
    return Bundle(_once(ours), _once(foreign), tuple(refused))


def trusting(bundle: Bundle, *wanted: bytes) -> Bundle:
    """Return the bundle with exactly these CAs of ours, and somebody else's left alone."""
    ours = [block for text in wanted for block in normal(text)]
    return Bundle(_once(ours), bundle.foreign)


def normal(text: bytes) -> tuple[bytes, ...]:
    """Return every certificate of a text in the form in which bundles hold them."""
    return _once([_pem(match) for match in _BLOCK.finditer(text) if _certificate(match)])


def _once(blocks: list[bytes]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(blocks))


def _pem(match: re.Match[bytes]) -> bytes:
    body = b"".join(match[2].split())
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    pem = (b"-----BEGIN CERTIFICATE-----", *lines, b"-----END CERTIFICATE-----")
    return b"\n".join(pem) + b"\n"


def _certificate(match: re.Match[bytes]) -> x509.Certificate | None:
    if match[1] != _CERTIFICATE:
        return None
    try:
        certificate = x509.load_pem_x509_certificate(_pem(match))
        _ = certificate.subject  # parsed only when asked for
    except UNREADABLE:
        return None
    return certificate


def _is_ours(certificate: x509.Certificate) -> bool:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return [str(name.value) for name in names] == [CA_NAME]


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
        """Return whether no hook trusts any CA of ours yet: nothing can break that works."""
        return not any(bundle.ours for bundle in self.bundles)

    def only(self, authority: bytes) -> bool:
        """Return whether every hook trusts this CA of ours and no other of ours."""
        return all(bundle.trusts_only(authority) for bundle in self.bundles)


class Injector:
    """Reads and writes the bundles, and no other field."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def read(self) -> TrustedBundles:
        """Read every hook's bundle. Raises MissingObjectError where there is no configuration."""
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
        Add CAs of ours to every hook, keeping all that is there; return whether anything changed.
        """
        wanted = [trusting(item, *item.ours, *authorities) for item in before.bundles]
        return self._write(before, wanted)

    def trust_only(self, before: TrustedBundles, authority: bytes) -> bool:
        """Let one CA of ours remain in every hook; return whether anything changed."""
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
