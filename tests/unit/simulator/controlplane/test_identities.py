"""
Identities, and the files that carry them.
"""

import base64
import json
import stat
from pathlib import Path

from simulator.controlplane import identities
from simulator.controlplane.identities import (
    PemPair,
    write_secret,
)

SERVER = identities.ServerIdentity("https://127.0.0.1:6443", b"authority")


def test_secret_is_for_its_owner_only(tmp_path: Path) -> None:
    """
    A file with a key can be read by nobody else.
    """
    path = write_secret(tmp_path / "key", b"secret")

    assert (0o600, b"secret") == (stat.S_IMODE(path.stat().st_mode), path.read_bytes())


def test_certificate_file_is_complete() -> None:
    """
    A kubeconfig for a certificate holds server, authority, certificate and key.
    """
    document = json.loads(identities.with_certificate(SERVER, PemPair(b"certificate", b"key")))
    encoded = {
        name: base64.b64encode(name.encode()).decode()
        for name in ("authority", "certificate", "key")
    }

    assert {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "simulator",
                "cluster": {
                    "server": "https://127.0.0.1:6443",
                    "certificate-authority-data": encoded["authority"],
                },
            }
        ],
        "users": [
            {
                "name": "user",
                "user": {
                    "client-certificate-data": encoded["certificate"],
                    "client-key-data": encoded["key"],
                },
            }
        ],
        "contexts": [{"name": "simulator", "context": {"cluster": "simulator", "user": "user"}}],
        "current-context": "simulator",
    } == document
