"""
Where a kubeconfig is not plain, the plain reader leaves it to the Kubernetes client.
"""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING

import pytest

from kube.errors import AccessError
from kube.plain_kubeconfig import read_any, read_plain
from tests.contract.kubeconfig.samples import encoded, kubeconfig, twice, with_others, written

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "true"}
PAIR = {"client-certificate": "pki/me.crt", "client-key": "pki/me.key"}
NAMELESS: dict[str, list[object]] = {
    "clusters": [{"cluster": {}}],
    "users": [{"user": {}}],
    "contexts": [{"context": {}}],
}

DOUBTFUL = {
    "exec": kubeconfig(user={"exec": PLUGIN}),
    "auth-provider": kubeconfig(user={"auth-provider": {"name": "oidc"}}),
    "username": kubeconfig(user={"username": "me", "password": "secret"}),
    "as": kubeconfig(user={"token": "abc", "as": "bob"}),
    "as-groups": kubeconfig(user={"token": "abc", "as": "bob", "as-groups": ["g"]}),
    "unknown in user": kubeconfig(user={"token": "abc", "new": 1}),
    "unknown in cluster": kubeconfig(cluster={"disable-compression": True}),
    "unknown in context": kubeconfig(context={"new": 1}),
    "unknown at the top": kubeconfig(top={"new": 1}),
    "other version": kubeconfig(top={"apiVersion": "v2"}),
    "other kind": kubeconfig(top={"kind": "List"}),
    "no current-context": kubeconfig(top={"current-context": ""}),
    "null current-context": kubeconfig(top={"current-context": None}),
    "unknown current-context": kubeconfig(top={"current-context": "there"}),
    "numeric current-context": kubeconfig(top={"current-context": 1}),
    "unknown cluster": kubeconfig(context={"cluster": "missing"}),
    "unknown user": kubeconfig(context={"user": "missing"}),
    "null user": kubeconfig(context={"user": None}),
    **{f"two {kind}": twice(kubeconfig(), kind) for kind in ("clusters", "contexts", "users")},
    **{f"{kind} without names": kubeconfig(top={kind: NAMELESS[kind]}) for kind in NAMELESS},
    **{f"{kind} as mapping": kubeconfig(top={kind: {"a": 1}}) for kind in NAMELESS},
    "nameless stranger": kubeconfig(context={"user": ""}, top={"users": NAMELESS["users"]}),
    "no server": kubeconfig(cluster={"server": ""}),
    "server without scheme": kubeconfig(cluster={"server": "10.0.0.1:6443"}),
    "server in capitals": kubeconfig(cluster={"server": "HTTPS://a"}),
    "server that is no URL": kubeconfig(cluster={"server": "https://[10.0.0.1"}),
    "server without host": kubeconfig(cluster={"server": "https://"}),
    "server as number": kubeconfig(cluster={"server": 1}),
    "token as number": kubeconfig(user={"token": 123}),
    "empty token": kubeconfig(user={"token": ""}),
    "insecure as text": kubeconfig(cluster={"insecure-skip-tls-verify": "true"}),
    "namespace as list": kubeconfig(context={"namespace": ["a"]}),
    "null user entry": kubeconfig(top={"users": [{"name": "u", "user": None}]}),
    "broken base64": kubeconfig(cluster={"certificate-authority-data": "abc!"}),
    "cut base64": kubeconfig(cluster={"certificate-authority-data": encoded("abcd")[:-1]}),
    "missing CA": kubeconfig(cluster={"certificate-authority": "none.crt"}),
    "folder as CA": kubeconfig(cluster={"certificate-authority": "pki"}),
    "missing certificate": kubeconfig(user={**PAIR, "client-certificate": "none.crt"}),
    "missing token file": kubeconfig(user={"tokenFile": "none.token"}),
    "token file by a detour": kubeconfig(user={"tokenFile": "none/../mine.token"}),
    "token file at home": kubeconfig(user={"tokenFile": "~/mine.token"}),
    "token twice": kubeconfig(user={"token": "abc", "tokenFile": "mine.token"}),
    "key twice": kubeconfig(user={**PAIR, "client-key-data": encoded("key")}),
    "certificate without key": kubeconfig(user={"client-certificate": "pki/me.crt"}),
    "key without certificate": kubeconfig(user={"client-key": "pki/me.key"}),
    "CA not to be used": kubeconfig(
        cluster={"insecure-skip-tls-verify": True, "certificate-authority": "ca.crt"}
    ),
    "certificates over http": kubeconfig(cluster={"server": "http://a"}, user=PAIR),
    "tab": json.dumps(kubeconfig(), indent="\t"),
    "question mark": json.dumps(kubeconfig(top={"extensions": []})).replace("[]", "[a.b?c]"),
    "beyond ASCII": f"# é\n{json.dumps(kubeconfig())}",
    "empty": "",
    "list": "[1, 2]",
    "words": "just words",
    "broken YAML": "a: [",
    "two documents": "a: 1\n---\nb: 2\n",
    "object": "!!python/object/apply:os.getcwd []",
    "no date": "kind: 2001-99-99",
    "unhashable key": "{[a]: b}",
}


@pytest.mark.parametrize("content", DOUBTFUL.values(), ids=DOUBTFUL)
def test_the_slightest_doubt_is_not_decided_here(tmp_path: Path, content: object) -> None:
    """
    Whatever is missing, unreadable, unknown or contradictory is nothing for the plain reader.
    """
    path = written(tmp_path, content)

    assert read_plain(str(path), None) is None


def test_lists_of_files(tmp_path: Path) -> None:
    """
    Several files are not plain, even if there is but one of them.
    """
    path = written(tmp_path, kubeconfig())

    assert read_plain(str(path), None) is not None
    assert [None, None, None] == [
        read_plain(name, None) for name in (f"{path}:", f"{path}:/none", f"/none:{path}")
    ]


def test_places_without_a_plain_file(tmp_path: Path) -> None:
    """
    Folders, missing files and what is spelt like a folder are not read.
    """
    path = written(tmp_path, kubeconfig())
    names = (str(tmp_path), str(tmp_path / "none"), f"{path}/", f"{path}/.", "", "~nobody-here/c")

    assert [None] * len(names) == [read_plain(name, None) for name in names]


def test_a_context_that_the_file_has_not(tmp_path: Path) -> None:
    """
    A context asked for in vain is explained by the other reader.
    """
    path = str(written(tmp_path, with_others(kubeconfig(), kinds=("contexts",))))

    assert read_plain(path, "there") is None
    with pytest.raises(AccessError, match="has no context 'there'; contexts in it: here, other"):
        read_any(path, "there")


def test_a_pipe_is_left_for_the_other_reader(tmp_path: Path) -> None:
    """
    A kubeconfig that can be read only once, as from <(command), is not used up.
    """
    content = written(tmp_path, kubeconfig(user={"token": "abc"})).read_text()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(content,), daemon=True)
    writer.start()

    assert "Bearer abc" == read_any(str(pipe), None).credentials.header()
    writer.join(10)
