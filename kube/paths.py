"""PURE. The paths of the API, with every name checked before it becomes part of one."""

from __future__ import annotations

from urllib.parse import quote


def core(*segments: str) -> str:
    """
    Build a path of the core group: `core("namespaces", "team-a", "pods")`.

    Raises ValueError for a name that would change the path's shape.
    """
    return "/api/v1/" + "/".join(map(_segment, segments))


def group(group_version: str, *segments: str) -> str:
    """
    Build a path of a named group: `group("apps/v1", "deployments")`.

    Raises ValueError for a name that would change the path's shape.
    """
    return f"/apis/{group_version}/" + "/".join(map(_segment, segments))


def _segment(name: str) -> str:
    # The rule of k8s.io/apimachinery IsValidPathSegmentName: quoting cannot save "." and "..".
    if name in {"", ".", ".."} or "/" in name or "%" in name:
        raise ValueError(f"{name!r} cannot be a name in a Kubernetes path")
    return quote(name, safe=":")
