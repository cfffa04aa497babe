"""
What stored PEM text really is, as the facts that renewal decides on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.material import DAY, Facts, Pair, Stored, Unreadable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_LONGEST_LEAF_SECONDS = 400 * DAY


def look_at(ca: Pair | None, leaf: Pair | None) -> Stored:
    """
    Look at both stored pairs; the leaf is held against the CA beside it.
    """
    authority = _load(ca)
    found = _load(leaf)
    signer = authority[0] if isinstance(authority, tuple) else None
    return Stored(
        ca=_facts(*authority, signer, ca=True) if isinstance(authority, tuple) else authority,
        leaf=_facts(*found, signer, ca=False) if isinstance(found, tuple) else found,
    )


def _load(pair: Pair | None) -> tuple[x509.Certificate, PrivateKeyTypes] | Unreadable | None:
    if pair is None or not (pair.certificate.strip() or pair.key.strip()):
        return None
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        return certificate, load_pem_private_key(pair.key, password=None)
    except (ValueError, TypeError) as error:
        return Unreadable(type(error).__name__)


def _facts(
    certificate: x509.Certificate,
    key: PrivateKeyTypes,
    signer: x509.Certificate | None,
    *,
    ca: bool,
) -> Facts | Unreadable:
    try:
        return Facts(
            not_before=certificate.not_valid_before_utc.timestamp(),
            not_after=certificate.not_valid_after_utc.timestamp(),
            names=_names(certificate),
            key_matches=key.public_key() == certificate.public_key(),
            signed=_signed(certificate, signer),
            fit=_fit(certificate, ca=ca),
        )
    except ValueError as error:
        return Unreadable(type(error).__name__)


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in found.get_values_for_type(x509.IPAddress))
    return frozenset((*found.get_values_for_type(x509.DNSName), *addresses))


def _signed(certificate: x509.Certificate, signer: x509.Certificate | None) -> bool:
    if signer is None:
        return False
    try:
        certificate.verify_directly_issued_by(signer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _fit(certificate: x509.Certificate, *, ca: bool) -> bool:
    """
    Tell whether a certificate has the key type, the extensions and the life we give ours.
    """
    extensions = certificate.extensions
    try:
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
        extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
        if not isinstance(certificate.public_key(), ec.EllipticCurvePublicKey):
            return False
        if ca:
            return constraints.ca and usage.key_cert_sign
        extended = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
        return (
            ExtendedKeyUsageOID.SERVER_AUTH in extended
            and not constraints.ca
            and life.total_seconds() <= _LONGEST_LEAF_SECONDS
        )
    except x509.ExtensionNotFound:
        return False
