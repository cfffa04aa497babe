"""
PURE. The kinds of objects an API server has: how they are called, where they are, and which of them
can be scaled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from kube.replies import objects_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kube.replies import JsonObject


MOST_RESOURCES: Final = 1024


class ApiKind(NamedTuple):
    """A namespaced kind; `called` are the words by which a person names it."""

    api_version: str
    kind: str
    plural: str
    scalable: bool = False
    called: frozenset[str] = frozenset()

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def path(self, namespace: str, *more: str) -> str:
        """Return where objects of this kind are; raises ValueError for what cannot be a name."""
        return self._path("namespaces", namespace, self.plural, *more)

    @property
    def everywhere(self) -> str:
        """Return where those of all namespaces are listed."""
        return self._path(self.plural)

    def _path(self, *segments: str) -> str:
        return group(self.api_version, *segments) if self.group else core(*segments)


def read_kinds(version: str, said: JsonObject) -> tuple[ApiKind, ...]:
    """Read the list of a version's resources."""
    listed = objects_of(said, "resources")[:MOST_RESOURCES]
    scales = {
        str(item.get("name")).removesuffix("/scale")
        for item in listed
        if item.get("kind") == "Scale" and str(item.get("name")).endswith("/scale")
    }
    return tuple(
        ApiKind(
            api_version=version,
            kind=str(item.get("kind")),
            plural=str(item.get("name")),
            scalable=item.get("name") in scales,
            called=frozenset(_words(item)),
        )
        for item in listed
        if item.get("namespaced") is True and "/" not in str(item.get("name"))
    )


def _words(item: JsonObject) -> Iterator[str]:
    short = item.get("shortNames")
    words = (item.get("name"), item.get("singularName"), item.get("kind"), *(short or ()))
    return (word.lower() for word in words if isinstance(word, str) and word)


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
