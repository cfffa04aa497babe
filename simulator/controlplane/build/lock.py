"""
Let one process at a time build, while the others wait and then find the result.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simulator.progress import Progress


@contextmanager
def exclusive(path: Path, progress: Progress) -> Iterator[None]:
    """
    Hold the lock file for the duration of the block.

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
