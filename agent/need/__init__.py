"""How much memory the owners of pods need: from looks at the node to days that are remembered."""

from agent.need.ledger import entered, evicted, need_of, restored
from agent.need.store import both, configmap, stored_need

__all__ = [
    "both",
    "configmap",
    "entered",
    "evicted",
    "need_of",
    "restored",
    "stored_need",
]
