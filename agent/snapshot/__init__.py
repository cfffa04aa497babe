"""
PURE. What `/v1/snapshot` and the command `snapshot` say, made from the last moment.
"""

from agent.snapshot.build import snapshot_of

__all__ = ["snapshot_of"]
