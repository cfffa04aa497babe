"""What an agent knows of its node at one moment: `/v1/snapshot`, for the plugin and for people."""

from gpufence.snapshot.codec import (
    VERSION,
    read_snapshot,
    write_snapshot,
)
from gpufence.snapshot.cuts import (
    CARD_ROWS,
    CARDS_AND_PODS,
    CUTS,
    OUTLINES,
    POD_ROWS,
    SnapshotCut,
)
from gpufence.snapshot.rows import (
    BUSY,
    ActivityRow,
    CardRow,
    NobodyRow,
    PodActivityRow,
    PodRow,
    ProcessRow,
    Snapshot,
    SnapshotPart,
    UseRow,
)

__all__ = [
    "BUSY",
    "CARDS_AND_PODS",
    "CARD_ROWS",
    "CUTS",
    "OUTLINES",
    "POD_ROWS",
    "VERSION",
    "ActivityRow",
    "CardRow",
    "NobodyRow",
    "PodActivityRow",
    "PodRow",
    "ProcessRow",
    "Snapshot",
    "SnapshotCut",
    "SnapshotPart",
    "UseRow",
    "read_snapshot",
    "write_snapshot",
]
