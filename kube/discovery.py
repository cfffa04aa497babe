"""Asking an API server which kinds of objects it has."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from kube.errors import KubeError, NotFoundError
from kube.kinds import ApiKind, read_kinds
from kube.replies import objects_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from kube.client import Client
    from kube.replies import JsonObject

_log = logging.getLogger(__name__)

REMEMBERED_SECONDS: Final = 300.0
"""A kind that is made later is found after so long."""
MOST_GROUPS: Final = 512
_CORE: Final = "v1"
_APPS: Final = "apps/v1"


class Kinds:
    """
    What discovery says, one version of each group: the one the server prefers. It is asked for
    when it is needed, and again after a while.
    """

    def __init__(
        self,
        client: Client,
        clock: Callable[[], float] = time.monotonic,
        remembered_seconds: float = REMEMBERED_SECONDS,
    ) -> None:
        self._client = client
        self._clock = clock
        self._remembered_seconds = remembered_seconds
        self._lock = threading.Lock()
        self._versions: tuple[str, ...] = ()
        self._versions_at: float | None = None
        self._kinds: dict[str, tuple[float, tuple[ApiKind, ...]]] = {}

    def find(self, api_version: str, kind: str) -> ApiKind | None:
        """
        Return a kind by its group and name, in the version the server prefers: references may name
        an older one. Raises KubeError.
        """
        wanted = api_version.rpartition("/")[0]
        for version in self._served():
            if version.rpartition("/")[0] == wanted:
                return next((item for item in self._of(version) if item.kind == kind), None)
        return None

    def called(self, word: str) -> ApiKind | None:
        """
        Return the kind a person means by `deploy`, `deployments`, `Deployment` or
        `deployments.apps`; kinds of Kubernetes come first. Raises KubeError.
        """
        name, _, wanted = word.lower().partition(".")
        for version in sorted(self._served(), key=_known_first):
            if wanted in {"", version.rpartition("/")[0]}:
                for item in self._of(version):
                    if name in item.called:
                        return item
        return None

    def all(self, needed: Collection[str] = ()) -> Iterator[ApiKind]:
        """
        Yield every kind. A group that does not answer is as it was when it last did; one that never
        has is left out.

        Raises KubeError where nothing can be asked, or a group that is `needed` has never answered.
        """
        for version in self._served():
            try:
                yield from self._of(version)
            except KubeError as error:
                _log.warning("the kinds of %s are not known: %s", version, error)
                kept = self._kinds.get(version)
                if kept is None and version.rpartition("/")[0] in needed:
                    raise
                yield from () if kept is None else kept[1]

    def _served(self) -> Sequence[str]:
        with self._lock:
            now = self._clock()
            at = self._versions_at
            if at is not None and now - at < self._remembered_seconds:
                return self._versions
        said = self._client.get("/apis")
        found = [_preferred(item) for item in objects_of(said, "groups")[:MOST_GROUPS]]
        with self._lock:
            self._versions = (_CORE, *filter(None, found))
            self._versions_at = now
            served = set(self._versions)
            self._kinds = {key: kept for key, kept in self._kinds.items() if key in served}
            return self._versions

    def _of(self, version: str) -> tuple[ApiKind, ...]:
        with self._lock:
            now = self._clock()
            kept = self._kinds.get(version)
        if kept is not None and now - kept[0] < self._remembered_seconds:
            return kept[1]
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        try:
            kinds = read_kinds(version, self._client.get(path))
        except NotFoundError:
            kinds = ()
        with self._lock:
            self._kinds[version] = now, kinds
        return kinds


def _preferred(api_group: JsonObject) -> str:
    preferred = api_group.get("preferredVersion")
    version = preferred.get("groupVersion") if isinstance(preferred, dict) else None
    return version if isinstance(version, str) and "/" in version else ""


def _known_first(version: str) -> tuple[bool, bool]:
    return version != _APPS, version != _CORE
