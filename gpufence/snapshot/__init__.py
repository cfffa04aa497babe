"""
What an agent knows of its node at one moment: `/v1/snapshot`, for the plugin and for people.
"""

from gpufence.snapshot.model import (
    CardRow,
    NobodyRow,
    OwnerRow,
    PodRow,
    ProcessRow,
    Snapshot,
    UseRow,
)

__all__ = [
    "CardRow",
    "NobodyRow",
    "OwnerRow",
    "PodRow",
    "ProcessRow",
    "Snapshot",
    "UseRow",
]
