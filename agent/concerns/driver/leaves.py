"""Where the cgroups of containers are: folders below one root, found by pod and container."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.procfs.parse import parse_cgroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agent.model.use import Owner

MOST_FOLDERS: Final = 50_000
MOST_DEPTH: Final = 10
_SUBGROUP: Final = "container"
"""Into what crun may put the processes of a container, below the container's own cgroup."""


class Leaves:
    """
    Remembers what was found, and looks again at most so often for what was not: only the leftmost
    strict match counts, as in `agent.procfs.parse`, and nothing below a container's own folder.
    """

    def __init__(self, root: str, pause_seconds: float, clock: Callable[[], float]) -> None:
        self._root = root
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._known: dict[Owner, str] = {}
        self._looked_at: float | None = None

    @property
    def is_unified(self) -> bool:
        """Return whether the root is one of cgroups of version 2."""
        return Path(self._root, "cgroup.subtree_control").exists()

    def find(self, owners: Iterable[Owner]) -> dict[Owner, str]:
        """Return the folders of those that have one."""
        wanted = set(owners)
        self._known = {
            owner: path
            for owner, path in self._known.items()
            if owner not in wanted or Path(path).is_dir()
        }
        now = self._clock()
        looked = self._looked_at is not None and now - self._looked_at < self._pause_seconds
        if not wanted <= self._known.keys() and not looked:
            self._known, self._looked_at = dict(self.all()), now
        return {owner: self._known[owner] for owner in wanted if owner in self._known}

    def all(self) -> Iterator[tuple[Owner, str]]:
        """Yield the folder of every container of a pod."""
        waiting, seen = [(self._root, 0)], 0
        while waiting and seen < MOST_FOLDERS:
            folder, depth = waiting.pop()
            for path in _folders(folder):
                seen += 1
                owner = parse_cgroup(f"0::{path.removeprefix(self._root)}")
                if owner is not None and owner.pod_uid and owner.container_id:
                    inner = f"{path}/{_SUBGROUP}"
                    yield owner, inner if Path(inner).is_dir() else path
                elif depth < MOST_DEPTH:
                    waiting.append((path, depth + 1))


def _folders(folder: str) -> list[str]:
    """Return the folders in one; it may be gone meanwhile."""
    try:
        with os.scandir(folder) as entries:
            return [item.path for item in entries if item.is_dir(follow_symlinks=False)]
    except OSError:
        return []
