"""How much memory the models need: what was measured from day to day, and what follows from it."""

from gpufence.need.codec import (
    VERSION,
    bounded,
    need_configmap,
    read_need,
    write_bounded,
    write_need,
)
from gpufence.need.measured import Confidence, cards_of, merged
from gpufence.need.rows import CardNeed, NeedDay, NeedKey, NodeNeed, OwnerNeed, with_room
from gpufence.need.summary import NeedReasons, NeedSummary, ProposalTerms, summaries, summarise

__all__ = [
    "VERSION",
    "CardNeed",
    "Confidence",
    "NeedDay",
    "NeedKey",
    "NeedReasons",
    "NeedSummary",
    "NodeNeed",
    "OwnerNeed",
    "ProposalTerms",
    "bounded",
    "cards_of",
    "merged",
    "need_configmap",
    "read_need",
    "summaries",
    "summarise",
    "with_room",
    "write_bounded",
    "write_need",
]
