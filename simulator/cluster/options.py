"""
PURE. What a cluster is asked to be.
"""

from dataclasses import dataclass

CARDS = "2xT4"
NODE = "gpu-1"


@dataclass(frozen=True)
class Options:
    """
    One node and its simulated cards, shared as Aliyun's gpushare shares them.
    """

    node: str = NODE
    cards: str = CARDS
    unit: str = "GiB"
