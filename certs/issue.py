"""
Certificates that Go accepts, and strict Python (>= 3.13) too: every extension spelled out.

ECDSA P-256 only: one key type, so that a server that reloads never keeps an old certificate in the
slot of another (https://docs.openssl.org/master/man3/SSL_CTX_use_certificate/).
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.material import DAY, KeyPair, ServiceNames

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

CA_DAYS = 3650
LEAF_DAYS = 90
BACKDATED_SECONDS = 300
CA_NAME = "gpufence webhook CA"
"""The subject of our CAs, by which the bundle tells them from somebody else's."""


def issue_ca(now: float) -> KeyPair:
    """Issue a CA for ten years that may sign leaves and nothing below them."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(CA_NAME, key.public_key(), now, CA_DAYS).issuer_name(_name(CA_NAME))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(ca=True), critical=True)
    builder = builder.add_extension(_authority(key.public_key()), critical=False)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue_leaf(ca: KeyPair, names: ServiceNames, now: float) -> KeyPair:
    """Issue a serving certificate for 90 days, signed by a CA of ours, which it never outlives."""
    authority = x509.load_pem_x509_certificate(ca.certificate)
    signing = load_pem_private_key(ca.key, password=None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise TypeError("the key of the CA is no ECDSA key")
    key = ec.generate_private_key(ec.SECP256R1())
    last = authority.not_valid_after_utc.timestamp()
    days = min(float(LEAF_DAYS), (last - int(now) + BACKDATED_SECONDS) / DAY)
    builder = _builder(names.verified, key.public_key(), now, days)
    builder = builder.issuer_name(authority.subject)
    builder = builder.add_extension(
        x509.BasicConstraints(ca=False, path_length=None), critical=True
    )
    builder = builder.add_extension(_key_usage(ca=False), critical=True)
    builder = builder.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
    )
    builder = builder.add_extension(_alternatives(names), critical=False)
    builder = builder.add_extension(_authority(signing.public_key()), critical=False)
    return _pair(builder.sign(signing, hashes.SHA256()), key)


def _builder(
    subject: str, public: CertificatePublicKeyTypes, now: float, days: float
) -> x509.CertificateBuilder:
    start = dt.datetime.fromtimestamp(int(now) - BACKDATED_SECONDS, dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(seconds=days * DAY))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _name(common: str) -> x509.Name:
    # A common name holds 64 characters; nobody verifies it, the alternative names count.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _authority(public: CertificatePublicKeyTypes) -> x509.AuthorityKeyIdentifier:
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _alternatives(names: ServiceNames) -> x509.SubjectAlternativeName:
    addresses = [x509.IPAddress(ipaddress.ip_address(text)) for text in names.addresses]
    return x509.SubjectAlternativeName([*map(x509.DNSName, names.dns()), *addresses])


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(certificate.public_bytes(Encoding.PEM), pem)
