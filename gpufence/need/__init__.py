"""
How much memory the models need: what was measured from day to day, kept for each node.
"""

from gpufence.need.codec import VERSION, bounded, need_configmap, read_need, write_need
from gpufence.need.rows import CardNeed, NeedDay, NeedKey, NodeNeed, OwnerNeed, top_owner

__all__ = [
    "VERSION",
    "CardNeed",
    "NeedDay",
    "NeedKey",
    "NodeNeed",
    "OwnerNeed",
    "bounded",
    "need_configmap",
    "read_need",
    "top_owner",
    "write_need",
]
