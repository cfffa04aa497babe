"""
Pods' names as the kubelet leaves them: `/var/log/pods/<namespace>_<name>_<uid>`.
"""

from __future__ import annotations

import os
from typing import Final

_PARTS: Final = 3


def names_of_pods(folder: str) -> dict[str, tuple[str, str]]:
    """
    Return namespace and name by UID; nothing where there is no such folder, or none may look.

    They are for people alone: nothing is ever decided by them.
    """
    try:
        entries = os.listdir(folder)  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return {}
    parts = (entry.split("_") for entry in entries)
    return {part[2]: (part[0], part[1]) for part in parts if len(part) == _PARTS}
