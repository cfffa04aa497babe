"""
Identities, and the files that carry them.
"""

import base64
import json
import ssl
import stat
from pathlib import Path

import pytest

from simulator.controlplane import identities
from simulator.controlplane.identities import (
    ADMIN,
    KeyPair,
    SimulatedAuthority,
    User,
    node_user,
    write_secret,
)

SERVER = identities.ServerIdentity("https://127.0.0.1:6443", b"authority")


def subject(folder: Path, pair: KeyPair) -> dict[str, list[str]]:
    """
    Read the names in a certificate's subject.
    """
    path = write_secret(folder / "certificate", pair.certificate)
    # The standard library reads certificates only by this undocumented door.
    decoded = ssl._ssl._test_decode_cert(path)  # type: ignore[attr-defined] # not in the stubs
    found: dict[str, list[str]] = {}
    for ((name, value),) in decoded["subject"]:
        found.setdefault(name, []).append(value)
    return found


def test_certificate_names_user_and_group(tmp_path: Path) -> None:
    """
    The API server finds the user in the common name and the group in the organisation.
    """
    names = subject(tmp_path, SimulatedAuthority().for_user(ADMIN))

    assert (["gpufence-admin"], ["system:masters"]) == (
        names["commonName"],
        names["organizationName"],
    )


def test_user_without_group_is_in_none(tmp_path: Path) -> None:
    """
    A user who is in no group gets a certificate without an organisation of ours.
    """
    names = subject(tmp_path, SimulatedAuthority().for_user(User("system:kube-scheduler")))

    assert ["system:kube-scheduler"] == names["commonName"]


def test_node_identity_is_the_authorizers() -> None:
    """
    A node's user and group are those that the Node authorizer knows.
    """
    assert User("system:node:a", "system:nodes") == node_user("a")


def test_certificate_and_key_belong_together(tmp_path: Path) -> None:
    """
    A certificate can be used with its key.
    """
    pair = SimulatedAuthority().for_server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(
        write_secret(tmp_path / "certificate", pair.certificate),
        write_secret(tmp_path / "key", pair.key),
    )

    with pytest.raises(ssl.SSLError, match="KEY_VALUES_MISMATCH"):
        context.load_cert_chain(
            tmp_path / "certificate", write_secret(tmp_path / "key", SimulatedAuthority().pair.key)
        )


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
    document = json.loads(identities.with_certificate(SERVER, KeyPair(b"certificate", b"key")))
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


def test_token_file_holds_the_token() -> None:
    """
    A kubeconfig for a token holds it instead of a certificate.
    """
    document = json.loads(identities.with_token(SERVER, "abc"))

    assert [{"name": "user", "user": {"token": "abc"}}] == document["users"]
