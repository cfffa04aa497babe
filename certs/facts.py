"""What stored PEM text really is, as the facts that renewal decides on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.bundle import UNREADABLE, normal
from certs.issue import CA_NAME
from certs.material import DAY, BadMaterial, Facts, KeyPair, Stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_LONGEST_LEAF_SECONDS = 400 * DAY


@dataclass(frozen=True, slots=True)
class _LoadedPair:
    chain: list[x509.Certificate]
    key: PrivateKeyTypes

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]


def look_at(ca: KeyPair | None, leaf: KeyPair | None, beside: bytes) -> Stored:
    """
    Look at both stored pairs; the leaf is held against the CA, and so is the CA text beside it.
    """
    authority, found = _load(ca), _load(leaf)
    signer = authority.certificate if isinstance(authority, _LoadedPair) else None
    complete = ca is not None and normal(ca.certificate) == normal(beside)
    return Stored(
        ca=_facts(authority, signer, complete=True, fit=_fit_ca),
        leaf=_facts(found, signer, complete=complete, fit=_fit_leaf),
    )


def signers_of(certificate: bytes, candidates: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return those of the CAs that really signed a certificate; none for what is no certificate."""
    try:
        found = x509.load_pem_x509_certificate(certificate)
    except UNREADABLE:
        return ()
    return tuple(pem for pem in candidates if _signed(found, x509.load_pem_x509_certificate(pem)))


def der_of(pair: KeyPair) -> bytes:
    """Return a pair's own certificate as it goes over the wire."""
    return x509.load_pem_x509_certificate(pair.certificate).public_bytes(Encoding.DER)


def _load(pair: KeyPair | None) -> _LoadedPair | BadMaterial | None:
    if pair is None or not (pair.certificate.strip() or pair.key.strip()):
        return None
    try:
        chain = x509.load_pem_x509_certificates(pair.certificate)
    except UNREADABLE:
        return BadMaterial("tls.crt is no certificate")
    try:
        return _LoadedPair(chain, load_pem_private_key(pair.key, password=None))
    except UNREADABLE:
        return BadMaterial("tls.key is no key, or needs a password")


def _facts(
    found: _LoadedPair | BadMaterial | None,
    signer: x509.Certificate | None,
    *,
    complete: bool,
    fit: Callable[[_LoadedPair], bool],
) -> Facts | BadMaterial | None:
    if not isinstance(found, _LoadedPair):
        return found
    certificate = found.certificate
    try:
        return Facts(
            not_before=certificate.not_valid_before_utc.timestamp(),
            not_after=certificate.not_valid_after_utc.timestamp(),
            names=_names(certificate),
            key_matches=found.key.public_key() == certificate.public_key(),
            signed=signer is not None and _signed(certificate, signer),
            complete=complete,
            fit=_is_p256(certificate) and _has_identifiers(certificate) and fit(found),
        )
    except UNREADABLE:
        return BadMaterial("tls.crt holds what no certificate of gpufence holds")


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in found.get_values_for_type(x509.IPAddress))
    return frozenset((*found.get_values_for_type(x509.DNSName), *addresses))


def _signed(certificate: x509.Certificate, signer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(signer)
    except (InvalidSignature, *UNREADABLE):
        return False
    return True


def _is_p256(certificate: x509.Certificate) -> bool:
    public = certificate.public_key()
    return isinstance(public, ec.EllipticCurvePublicKey) and public.curve.name == "secp256r1"


def _has_identifiers(certificate: x509.Certificate) -> bool:
    present = {type(extension.value) for extension in certificate.extensions}
    return {x509.SubjectKeyIdentifier, x509.AuthorityKeyIdentifier} <= present


def _fit_ca(found: _LoadedPair) -> bool:
    """Return whether this is one CA by our name: by the name, bundles tell ours from others'."""
    names = found.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    try:
        extensions = found.certificate.extensions
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return False
    ours = [str(name.value) for name in names] == [CA_NAME] and not found.chain[1:]
    return ours and constraints.ca and usage.key_cert_sign


def _fit_leaf(found: _LoadedPair) -> bool:
    certificate = found.certificate
    try:
        extensions = certificate.extensions
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
        extended = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return False
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return (
        not constraints.ca
        and usage.digital_signature
        and ExtendedKeyUsageOID.SERVER_AUTH in extended
        and life.total_seconds() <= _LONGEST_LEAF_SECONDS
    )
