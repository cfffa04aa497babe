"""
Files for certificates and keys that came embedded: TLS in Python takes those from files alone.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


def private_file(content: bytes) -> Path:
    """
    Keep content in a file that only this user can read, and only until the program ends.

    The same content always has the same file, which appears whole: threads may ask at once.
    """
    path = _folder() / hashlib.sha256(content).hexdigest()
    if path.exists():
        return path
    descriptor, partial = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(partial).replace(path)
    return path


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="gpufence-kubeconfig-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
