"""
What an agent knows of its node at one moment: `/v1/snapshot`, for the plugin and for people.
"""

from gpufence.snapshot.codec import (
    VERSION,
    SnapshotCut,
    only,
    outlines,
    read_snapshot,
    write_snapshot,
)
from gpufence.snapshot.rows import (
    BUSY,
    ActivityRow,
    CardRow,
    NobodyRow,
    OwnerRow,
    PodActivityRow,
    PodRow,
    ProcessRow,
    Snapshot,
    SnapshotPart,
    UseRow,
)

__all__ = [
    "BUSY",
    "VERSION",
    "ActivityRow",
    "CardRow",
    "NobodyRow",
    "OwnerRow",
    "PodActivityRow",
    "PodRow",
    "ProcessRow",
    "Snapshot",
    "SnapshotCut",
    "SnapshotPart",
    "UseRow",
    "only",
    "outlines",
    "read_snapshot",
    "write_snapshot",
]
