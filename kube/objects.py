"""
PURE. JSON as it came: Kubernetes objects stay plain dicts, so that fields we do not know survive.
"""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]


def as_is(item: JsonObject) -> JsonObject:
    """
    Keep a listed object whole: the projection for callers who want everything.
    """
    return item
