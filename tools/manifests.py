"""Every manifest of a folder, as kustomize would take it: listed files and listed folders."""

import os
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tools import ROOT

DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "base"
COMPONENTS = DEPLOY / "components"
REGISTRY = "set-your-registry.invalid/gpufence"
"""Where the manifests look for images until somebody names a registry: a host that cannot be."""


def all_of(text: str) -> Iterator[dict[str, Any]]:
    """Read YAML documents, ten times as fast as by Python alone."""
    return yaml.load_all(text, Loader=yaml.CSafeLoader)


def own_overlay(folder: Path, parts: Iterable[str], base: Path = BASE) -> Path:
    """
    Write what docs/install.md asks an operator to write: the installation with some components.
    """
    here = folder.resolve()
    tree = next(path for path in base.resolve().parents if (path / "components").is_dir())
    said = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(base.resolve(), here)],
        "components": [os.path.relpath(tree / "components" / name, here) for name in parts],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    return folder


def kustomization(folder: Path) -> dict[str, Any]:
    said: dict[str, Any] = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    return said


def files(folder: Path) -> list[Path]:
    """List the manifests that the folder's kustomization takes in, patches left out."""
    found: list[Path] = []
    for name in kustomization(folder).get("resources", []):
        path = folder / name
        found += files(path) if path.is_dir() else [path]
    return found


@cache
def _parsed(folder: Path) -> list[dict[str, Any]]:
    texts = [path.read_text(encoding="utf-8") for path in files(folder)]
    return [item for text in texts for item in all_of(text)]


def objects(folder: Path = BASE) -> list[dict[str, Any]]:
    return deepcopy(_parsed(folder))


def components() -> list[str]:
    return sorted(path.name for path in COMPONENTS.iterdir() if path.is_dir())
