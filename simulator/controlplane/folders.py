"""
Folders and files that one process at a time owns.

A control plane has a temporary folder; those whose owner has died are cleared away. An owner holds
a kernel lock. The lock ends with the process, however that ends, and holds across PID namespaces
that share a `/tmp`, which a noted PID would not.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from simulator.controlplane.errors import StartError
from simulator.progress import Progress

PREFIX = "gpufence-controlplane-"
# A Unix socket's path must fit 108 bytes with its closing zero (man 7 unix).
LONGEST_PATH = 107 - len("/etcd-peer.sock")


@dataclass(frozen=True)
class OwnedFolder:
    """A folder that is ours alone until it is left."""

    path: Path
    lock: int
    keep: bool

    def leave(self) -> None:
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def temporary_folder(parent: Path | None = None, prefix: str = PREFIX) -> OwnedFolder:
    """Make a folder that nobody else can read, and lock it."""
    root = Path(tempfile.gettempdir()) if parent is None else parent
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
        if _is_too_long(path):
            path.rmdir()
            raise StartError(
                f"the folder for temporary files, {root}, has too long a name for sockets below it;"
                " set TMPDIR to a shorter one, such as /tmp"
            )
        lock = _lock(path)
        # Between making and locking, somebody's sweep may have taken the folder for abandoned.
        if lock is not None:
            return OwnedFolder(path, lock, keep=False)


def given_folder(path: Path) -> OwnedFolder:
    """
    Take a folder that the caller named: it must be empty, and stays afterwards for inspection.
    """
    path = path.absolute()
    if _is_too_long(path):
        raise StartError(
            f"folder {path} has a name longer than {LONGEST_PATH} bytes, which leaves no room for"
            " the sockets in it; choose a shorter one"
        )
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise StartError(f"folder {path} is not empty; name a new one or empty it")
    lock = _lock(path)
    if lock is None:
        raise StartError(f"folder {path} is used by another control plane; name another")
    return OwnedFolder(path, lock, keep=True)


def sweep(parent: Path | None = None, prefix: str = PREFIX) -> list[Path]:
    """Remove the temporary folders of that prefix whose owner has died; return them."""
    root = Path(tempfile.gettempdir()) if parent is None else parent
    removed: list[Path] = []
    for path in sorted(root.glob(f"{prefix}*")):
        lock = _lock(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)
            removed.append(path)
    return removed


@contextmanager
def exclusive(path: Path, progress: Progress) -> Iterator[None]:
    """
    Hold the lock file for the duration of the block; others wait, and then find the result.

    The kernel owns the lock, so it ends with its process, however that ends; the empty file stays.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step(f"waiting for another process that builds in {path.parent}"):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_too_long(path: Path) -> bool:
    return len(os.fsencode(path)) > LONGEST_PATH


def _lock(path: Path) -> int | None:
    """Lock an existing folder, or return nothing if it is another's or no longer there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
