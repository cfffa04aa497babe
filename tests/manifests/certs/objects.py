"""
The manifests of the certificates' program, as they lie in the tree.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[3] / "deploy" / "base" / "certs"


def listed_files() -> list[str]:
    """
    Name the files that kustomize would take.
    """
    said = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))
    return list(said["resources"])


@cache
def _parsed() -> list[dict[str, Any]]:
    texts = [(FOLDER / name).read_text(encoding="utf-8") for name in listed_files()]
    return [item for text in texts for item in yaml.safe_load_all(text)]


def manifests() -> list[dict[str, Any]]:
    """
    Read every object of every listed file.
    """
    return deepcopy(_parsed())


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = [
        item for item in manifests() if (item["kind"], item["metadata"]["name"]) == (kind, name)
    ]
    return found
