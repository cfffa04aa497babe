"""
What is signed verifies by the public key alone, in the forms that cosign reads; a changed byte does
not.
"""

import hashlib
import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_public_key,
)
from nacl.secret import SecretBox

from tools.release.archive import ReleaseError
from tools.release.signing import Signer, read_signer

KEY = ec.derive_private_key(7, ec.SECP256R1())
SIGNER = Signer(KEY)
STATEMENT = b'{"_type":"https://in-toto.io/Statement/v1"}\n'
# What cosign >= 2 writes; it makes keys of 2 ** 16, which take a tenth of a second.
COST = {"N": 1 << 12, "r": 8, "p": 1}


def _verify(signature: bytes, content: bytes) -> None:
    public = load_pem_public_key(SIGNER.public)
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(signature, content, ec.ECDSA(hashes.SHA256()))


def _pem(encryption: KeySerializationEncryption) -> bytes:
    return KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def _cosigns(password: bytes, label: str) -> bytes:
    """Write the key as cosign does: PKCS #8 in a box of NaCl's, in JSON, in a PEM."""
    salt, nonce = b"s" * 32, b"n" * SecretBox.NONCE_SIZE
    secret = hashlib.scrypt(password, salt=salt, n=COST["N"], r=8, p=1, maxmem=1 << 26, dklen=32)
    der = KEY.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    box = {
        "kdf": {"name": "scrypt", "params": COST, "salt": b64encode(salt).decode()},
        "cipher": {"name": "nacl/secretbox", "nonce": b64encode(nonce).decode()},
        "ciphertext": b64encode(SecretBox(secret).encrypt(der, nonce).ciphertext).decode(),
    }
    body = b64encode(json.dumps(box).encode()).decode()
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]).encode()


def test_a_signature_verifies() -> None:
    """The public key takes the signature of a file."""
    _verify(b64decode(SIGNER.signature(b"content")), b"content")


def test_a_changed_byte_fails() -> None:
    """The public key refuses the signature for anything else."""
    with pytest.raises(InvalidSignature):
        _verify(b64decode(SIGNER.signature(b"content")), b"consent")


def test_the_same_file_has_the_same_signature() -> None:
    """Two signed releases of the same sources are equal byte for byte."""
    assert SIGNER.signature(b"content") == SIGNER.signature(b"content")


def test_a_bundle_names_what_it_signs() -> None:
    """A bundle has digest, signature and a hint at the key."""
    bundle: Any = json.loads(SIGNER.bundle(b"content"))
    signed = bundle["messageSignature"]
    _verify(b64decode(signed["signature"]), b"content")

    assert hashlib.sha256(b"content").digest() == b64decode(signed["messageDigest"]["digest"])
    assert 32 == len(b64decode(bundle["verificationMaterial"]["publicKey"]["hint"]))


def test_an_attestation_is_signed_with_its_type() -> None:
    """
    The signature in an envelope is over type and statement, so that neither is taken for another's.
    """
    envelope: Any = json.loads(SIGNER.attestation(STATEMENT))["dsseEnvelope"]
    kind = b"application/vnd.in-toto+json"
    said = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(STATEMENT), STATEMENT)
    _verify(b64decode(envelope["signatures"][0]["sig"]), said)

    assert envelope == json.loads(SIGNER.envelope(STATEMENT))
    assert STATEMENT == b64decode(envelope["payload"])


@pytest.mark.parametrize(
    ("content", "password"),
    [
        (_pem(NoEncryption()), ""),
        (_pem(NoEncryption()), "needless"),
        (_pem(BestAvailableEncryption(b"secret")), "secret"),
        (_cosigns(b"secret", "ENCRYPTED SIGSTORE PRIVATE KEY"), "secret"),
        (_cosigns(b"", "ENCRYPTED COSIGN PRIVATE KEY"), ""),
    ],
    ids=["PEM", "PEM with a password", "encrypted PEM", "cosign's", "cosign's of old"],
)
def test_keys_are_read(tmp_path: Path, content: bytes, password: str) -> None:
    """Plain and encrypted PEM are taken, and the file of `cosign generate-key-pair`."""
    path = tmp_path / "key"
    path.write_bytes(content)

    assert SIGNER.public == read_signer(path, password).public


@pytest.mark.parametrize(
    ("content", "objection"),
    [
        (b"no key", "cannot be read"),
        (_pem(BestAvailableEncryption(b"secret")), "COSIGN_PASSWORD"),
        (_cosigns(b"secret", "ENCRYPTED SIGSTORE PRIVATE KEY"), "COSIGN_PASSWORD"),
        (b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\ne30=\n-----END", "cannot be read"),
        (
            ed25519.Ed25519PrivateKey.generate().private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
            ),
            "no ECDSA key on P-256; remedy: cosign generate-key-pair",
        ),
    ],
    ids=["text", "encrypted PEM", "cosign's", "cosign's cut off", "another kind"],
)
def test_other_keys_are_refused(tmp_path: Path, content: bytes, objection: str) -> None:
    """
    What is no key of the right kind, or asks for another passphrase, is named with the remedy.
    """
    path = tmp_path / "key"
    path.write_bytes(content)

    with pytest.raises(ReleaseError, match=objection):
        read_signer(path, "wrong")


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    """A file that is not there is an error of the field KEY."""
    with pytest.raises(ReleaseError, match=r"KEY '.*/none' cannot be read"):
        read_signer(tmp_path / "none", "")
