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
from gpufence.snapshot.read import read_snapshot
from gpufence.snapshot.write import VERSION, write_snapshot

__all__ = [
    "VERSION",
    "CardRow",
    "NobodyRow",
    "OwnerRow",
    "PodRow",
    "ProcessRow",
    "Snapshot",
    "UseRow",
    "read_snapshot",
    "write_snapshot",
]
