"""
Kubeconfigs of every kind, made from a cluster entry and a user entry.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SERVER = {"server": "https://10.0.0.1:6443"}
EXTENSIONS = [{"name": "minikube.sigs.k8s.io", "extension": {"version": "v1", "as": "x"}}]
OTHERS = {
    "users": {"name": "other", "user": {"exec": {"command": "false"}}},
    "clusters": {"name": "other", "cluster": {"server": "https://other", "unknown": 1}},
    "contexts": {"name": "other", "context": {"cluster": "other", "user": "other"}},
}
FILES = ("ca.crt", "pki/me.crt", "pki/me.key", "mine.token")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def kubeconfig(
    *,
    cluster: Mapping[str, object] | None = None,
    user: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
    top: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """
    Describe one context `here` with these fields beside the usual ones.
    """
    chosen = {"cluster": "c", "user": "u", **(context or {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {**SERVER, **(cluster or {})}}],
        "users": [{"name": "u", "user": dict(user or {})}],
        "contexts": [{"name": "here", "context": chosen}],
        **(top or {}),
    }


def with_others(content: dict[str, object], *, kinds: tuple[str, ...]) -> dict[str, object]:
    """
    Put a foreign entry in front of the lists that are named.
    """
    lists = {kind: [OTHERS[kind], *as_list(content[kind])] for kind in kinds}
    return {**content, **lists}


def twice(content: dict[str, object], kind: str) -> dict[str, object]:
    """
    Say the same entries again.
    """
    return {**content, kind: [*as_list(content[kind]), *as_list(content[kind])]}


def as_list(entries: object) -> list[object]:
    assert isinstance(entries, list)
    return entries


def written(folder: Path, content: object) -> Path:
    """
    Save a kubeconfig, as given or as YAML, among the files that samples refer to.
    """
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"content of {name}\n")
    path = folder / "config"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path
