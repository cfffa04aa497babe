"""
Where the plain reader answers, it says what the Kubernetes client would have said.
"""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest

from kube.kubeconfig import read_kubeconfig
from kube.kubeconfig_values import Kubeconfig
from kube.plain_kubeconfig import read_plain
from tests.contract.kubeconfig.samples import (
    EXTENSIONS,
    encoded,
    kubeconfig,
    with_others,
    written,
)

LISTS = ("clusters", "contexts", "users")
EMBEDDED = kubeconfig(
    cluster={"certificate-authority-data": encoded("embedded CA")},
    user={
        "client-certificate-data": encoded("embedded certificate"),
        "client-key-data": encoded("embedded key"),
    },
)
REFERENCED = kubeconfig(
    cluster={"certificate-authority": "ca.crt"},
    user={"client-certificate": "pki/../pki/me.crt", "client-key": "./pki/me.key"},
)
SECOND = {"name": "second", "context": {"cluster": "c", "namespace": "two"}}

PLAIN = {
    "nobody": kubeconfig(),
    "nobody named": kubeconfig(context={"user": ""}),
    "token": kubeconfig(user={"token": "abc"}),
    "token file": kubeconfig(user={"tokenFile": "mine.token"}),
    "token file elsewhere": kubeconfig(user={"tokenFile": "pki/../mine.token"}),
    "embedded": EMBEDDED,
    "referenced": REFERENCED,
    "certificate and token": kubeconfig(
        user={"client-certificate": "pki/me.crt", "client-key-data": encoded("k"), "token": "abc"}
    ),
    "namespace": kubeconfig(context={"namespace": "mine"}),
    "proxy": kubeconfig(cluster={"proxy-url": "http://me:secret@proxy:3128"}),
    "server name": kubeconfig(cluster={"tls-server-name": "kubernetes.example"}),
    "insecure": kubeconfig(cluster={"insecure-skip-tls-verify": True}),
    "said to be secure": kubeconfig(
        cluster={"insecure-skip-tls-verify": False, "certificate-authority": "ca.crt"}
    ),
    "closing slash": kubeconfig(cluster={"server": "https://10.0.0.1/clusters/a//"}),
    "http": kubeconfig(cluster={"server": "http://127.0.0.1:8001"}, user={"token": "abc"}),
    "several contexts": with_others(EMBEDDED, kinds=LISTS),
    "extensions": kubeconfig(
        cluster={"extensions": EXTENSIONS},
        user={"extensions": EXTENSIONS, "token": "abc"},
        context={"extensions": EXTENSIONS},
        top={"extensions": EXTENSIONS, "preferences": {"colors": True}},
    ),
    "no users": kubeconfig(context={"user": ""}, top={"users": None}),
    "json": '{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a"}}],'
    '"clusters": [{"name": "a", "cluster": {"server": "https://[fd00::1]:6443"}}]}',
    "anchors": "current-context: &n a\ncontexts: [{name: *n, context: &c {cluster: a, user: ''}},"
    " {name: b, context: {<<: *c}}]\nclusters: [{name: a, cluster: {server: 'https://a'}}]",
}


def told(found: Kubeconfig) -> dict[str, object]:
    """
    Give every field, the credentials by what they send.
    """
    values = {field.name: getattr(found, field.name) for field in fields(Kubeconfig)}
    return {**values, "credentials": found.credentials.header()}


def contents(values: dict[str, object]) -> dict[str, object]:
    """
    Replace files by what is in them.
    """
    return {
        key: value.read_bytes() if isinstance(value, Path) else value
        for key, value in values.items()
    }


@pytest.mark.parametrize("content", PLAIN.values(), ids=PLAIN)
def test_both_readers_say_the_same(tmp_path: Path, content: object) -> None:
    """
    Every field and the content of every file agree, and files referred to are the same files.
    """
    path = str(written(tmp_path, content))
    plain = read_plain(path, None)
    assert plain is not None
    ours, theirs = told(plain), told(read_kubeconfig(path, None))

    assert contents(theirs) == contents(ours)
    assert [theirs[key] for key in theirs if within(theirs[key], tmp_path)] == [
        ours[key] for key in ours if within(ours[key], tmp_path)
    ]


def within(value: object, folder: Path) -> bool:
    return isinstance(value, Path) and folder in value.parents


@pytest.mark.parametrize("current", ["here", "missing", ""])
def test_a_chosen_context_is_read_whatever_is_current(tmp_path: Path, current: str) -> None:
    """
    A context asked for by name is found beside others, with or without a current one.
    """
    content = kubeconfig(user={"token": "abc"}, top={"current-context": current})
    contexts = content["contexts"]
    assert isinstance(contexts, list)
    path = str(written(tmp_path, {**content, "contexts": [*contexts, SECOND]}))
    plain = read_plain(path, "second")

    assert plain is not None
    assert "two" == plain.namespace
    assert told(read_kubeconfig(path, "second")) == told(plain)


def test_places_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A kubeconfig named from the working folder or the home folder refers to the same files.
    """
    written(tmp_path, REFERENCED)
    monkeypatch.chdir(tmp_path / "pki")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("../config", "~/config", "./../config", str(tmp_path / "config")):
        plain = read_plain(name, None)

        assert plain is not None
        assert tmp_path / "ca.crt" == plain.ca_file
        assert told(read_kubeconfig(name, None)) == told(plain)


def test_embedded_secrets_are_kept_privately_and_once(tmp_path: Path) -> None:
    """
    Nobody else can read an embedded key, and reading twice leaves one file.
    """
    path = str(written(tmp_path, EMBEDDED))
    first, second = read_plain(path, None), read_plain(path, None)
    assert first is not None
    assert second is not None
    key = first.client_key_file
    assert key is not None

    assert (0o600, 0o700) == (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777)
    assert os.getuid() == key.stat().st_uid
    assert key == second.client_key_file
