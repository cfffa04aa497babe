"""
Signatures as cosign makes and checks them: ECDSA over P-256 with SHA-256, alone and as a bundle.

They follow from key and content alone (RFC 6979), so that two signed releases are equal, too.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
)
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from tools.release.archive import ReleaseError

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD_VARIABLE: Final = "COSIGN_PASSWORD"  # noqa: S105 (the name of a variable)
IN_TOTO: Final = "application/vnd.in-toto+json"
_BUNDLE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
_SIGSTORE: Final = (b"ENCRYPTED SIGSTORE PRIVATE KEY", b"ENCRYPTED COSIGN PRIVATE KEY")
_SCRYPT_BYTES: Final = 1 << 28


@dataclass(frozen=True)
class Signer:
    """A private key, which signs files and statements."""

    key: ec.EllipticCurvePrivateKey

    @property
    def public(self) -> bytes:
        """The key by which everybody can check, as `cosign verify-blob --key` reads it."""
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def signature(self, content: bytes) -> bytes:
        """Return the signature of a file in base64, as `cosign sign-blob` prints it."""
        return b64encode(self._sign(content))

    def bundle(self, content: bytes) -> bytes:
        """Return the signature of a file as the bundle that cosign >= 3 asks for."""
        digest = {"algorithm": "SHA2_256", "digest": _text(hashlib.sha256(content).digest())}
        signed = {"messageDigest": digest, "signature": _text(self._sign(content))}
        return self._bundled(messageSignature=signed)

    def attestation(self, statement: bytes) -> bytes:
        """Return an in-toto statement in a signed envelope (DSSE), in a bundle."""
        return self._bundled(dsseEnvelope=json.loads(self.envelope(statement)))

    def envelope(self, statement: bytes) -> bytes:
        """Return an in-toto statement in a signed envelope (DSSE)."""
        kind = IN_TOTO.encode()
        authenticated = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(statement), statement)
        signature = {"sig": _text(self._sign(authenticated))}
        return _document(payload=_text(statement), payloadType=IN_TOTO, signatures=[signature])

    def _bundled(self, **content: object) -> bytes:
        public = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        hint = {"publicKey": {"hint": _text(hashlib.sha256(public).digest())}}
        return _document(mediaType=_BUNDLE, verificationMaterial=hint, **content)

    def _sign(self, content: bytes) -> bytes:
        return self.key.sign(content, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))


def read_signer(path: Path, password: str) -> Signer:
    """
    Read a key pair of cosign's, or any PEM with a private key on P-256.

    Raises ReleaseError where it cannot be read, or is of another kind.
    """
    try:
        content = path.read_bytes()
        key = _key(content, password.encode())
    except (OSError, ValueError, LookupError, UnsupportedAlgorithm, CryptoError) as error:
        raise ReleaseError(
            f"KEY {str(path)!r} cannot be read ({error}); remedy: the file of "
            f"`cosign generate-key-pair` or a PEM, and its passphrase in {PASSWORD_VARIABLE}"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ReleaseError(
            f"KEY {str(path)!r} is no ECDSA key on P-256; remedy: cosign generate-key-pair, or "
            "openssl ecparam -name prime256v1 -genkey -noout"
        )
    return Signer(key)


def _key(content: bytes, password: bytes) -> object:
    label = content.partition(b"-----BEGIN ")[2].partition(b"-----")[0]
    if label in _SIGSTORE:
        return load_der_private_key(_unboxed(content, password), None)
    return load_pem_private_key(content, password if b"ENCRYPTED" in content else None)


def _unboxed(pem: bytes, password: bytes) -> bytes:
    """Return the PKCS #8 key inside cosign's own form: scrypt makes a key of NaCl's secretbox."""
    box: Any = json.loads(b64decode(b"".join(pem.strip().splitlines()[1:-1])))
    cost = box["kdf"]["params"]
    secret = hashlib.scrypt(
        password,
        salt=b64decode(box["kdf"]["salt"]),
        n=cost["N"],
        r=cost["r"],
        p=cost["p"],
        maxmem=_SCRYPT_BYTES,
        dklen=SecretBox.KEY_SIZE,
    )
    opened = SecretBox(secret).decrypt(
        b64decode(box["ciphertext"]), b64decode(box["cipher"]["nonce"])
    )
    return bytes(opened)


def _document(**content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode() + b"\n"


def _text(content: bytes) -> str:
    return b64encode(content).decode()
